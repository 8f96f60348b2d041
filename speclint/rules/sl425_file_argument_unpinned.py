"""SL425 file-argument-unpinned: an engine argument names a file whose bytes the lock does not hold.

A chat template, an adapter or a plugin changes what is measured as a weight does. `lock.files` pins each by its path.

Fails:

    engine_args: {chat_template: chat.jinja}

Passes:

    engine_args: {chat_template: chat.jinja}
    lock: {files: {chat.jinja: "sha256:…"}}

Way out: `speclint lock FILE`, or write a short template into the spec itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from speclint.diagnostic import Finding, pointer
from speclint.file_arguments import named_files
from speclint.lock.tree import file_digest
from speclint.releases import Release
from speclint.spec import Spec

SEVERITY = "error"
NEEDS = "lock"

MOST_BYTES = 64_000_000


def check(spec: Spec, release: Release | None) -> Iterator[Finding]:
    locked = spec.section("lock", "files")
    for path, name in named_files(spec.engine_args):
        if name not in locked:
            yield Finding(path, f"nothing pins the bytes of `{name}`", "`speclint lock FILE` pins it")
        elif (found := _digest(spec.folder / name)) and found != locked[name]:
            related = ((pointer("lock", "files", name), "locked"),)
            yield Finding(path, f"`{name}` here is {found}", "restore the file, or lock again", related=related)


def _digest(path: Path) -> str | None:
    """None if it is not here, is a folder, or is too large to be read by a check."""
    try:
        small = path.is_file() and path.stat().st_size <= MOST_BYTES
        return "sha256:" + file_digest(path) if small else None
    except (OSError, ValueError):
        return None
