"""SL209 prompt-file-differs: a prompt file is missing or its bytes are not those of the spec's sha256.

The run would measure other prompts than were reviewed. A private file need not be here. The digest stands without a prefix, as
`sha256sum` prints it; where it is missing or another, the help gives the one to write.

Fails:

    prompts: {file: prompts/varied.jsonl, sha256: "0000…"}

Passes:

    prompts: {file: prompts/varied.jsonl, sha256: "…"}     # as sha256sum prints it

Way out: restore the file, or write its present digest and have the spec approved again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

from speclint.diagnostic import Finding, pointer
from speclint.releases import Release
from speclint.spec import Spec

SEVERITY = "error"
NEEDS = "spec"


def check(spec: Spec, release: Release | None) -> Iterator[Finding]:
    for index, row in spec.rows("protocol", "workloads"):
        prompts = row.get("prompts")
        if isinstance(prompts, dict) and isinstance(prompts.get("file"), str):
            yield from _file(spec, prompts, pointer("protocol", "workloads", index, "prompts"))


def _file(spec: Spec, prompts: dict[str, Any], where: str) -> Iterator[Finding]:
    path = spec.folder / prompts["file"]
    try:
        with path.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
    except (OSError, ValueError):
        if prompts.get("private") is not True:
            help = "paths are relative to the spec; `private: true` says that the file is not published"
            yield Finding(f"{where}/file", f"`{prompts['file']}` cannot be read", help)
        return
    stated = prompts.get("sha256")
    write = f'write `sha256: "{found}"`'
    if stated is None:
        yield Finding(f"{where}/file", f"nothing pins the bytes of `{prompts['file']}`", write)
    elif str(stated).lower().removeprefix("sha256:") != found:  # another form of the same digest is SL104
        help = f"restore the file, or {write} and have the spec approved again"
        yield Finding(f"{where}/sha256", f"`{prompts['file']}` has another sha256: {found}", help)
