"""SL206 artifact-differs-from-lock: a local model folder is not the one that the spec pins.

The tree digest covers every file that changes what runs. If it differs, the weights here are not the reviewed ones.
Folders above 256 MB are left to `speclint lock --check` and to the run.

Fails:

    target: {model: models/tiny-target, revision: "sha256:0000…"}    # the folder hashes to something else

Passes:

    target: {model: models/tiny-target, revision: "sha256:…"}        # as `speclint lock` prints it

Way out: restore the folder, or pin the new digest and run `speclint lock` again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from speclint.diagnostic import Finding, pointer
from speclint.lock.errors import LockError
from speclint.lock.tree import tree_digest
from speclint.releases import Release
from speclint.spec import Spec

SEVERITY = "error"
NEEDS = "spec"

TREE = re.compile(r"sha256:[0-9a-f]{64}")
REFERENCES = (("pair", "target"), ("pair", "target", "tokenizer"), ("pair", "speculative"))
MOST_BYTES = 256_000_000


def check(spec: Spec, release: Release | None) -> Iterator[Finding]:
    for keys in REFERENCES:
        model, revision = spec.at(*keys, "model", kind=str), spec.at(*keys, "revision", kind=str)
        if model and revision and TREE.fullmatch(revision):
            yield from _folder(spec.folder / model, model, revision, pointer(*keys, "revision"))


def _folder(folder: Path, model: str, revision: str, path: str) -> Iterator[Finding]:
    try:
        if not folder.is_dir() or _bytes(folder) > MOST_BYTES:
            return
        found = tree_digest(folder)
    except (LockError, OSError, ValueError) as error:
        yield Finding(path, f"`{model}` cannot be hashed: {error}", "restore the folder as it was published")
        return
    if found != revision:
        yield Finding(path, f"`{model}` here is {found}", "restore the folder, or pin this digest and lock again")


def _bytes(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
