"""SL607 results-not-last: `results` is not the last key of the file, or tools' sections are out of order.

Results are appended as text at the end. Your own keys come first, then `lock`, `approvals`, `results`.

Fails:

    results: []
    protocol: …

Passes:

    protocol: …
    results: []

Way out: move the section, text and all, to its place.
"""

from __future__ import annotations

from collections.abc import Iterator

from speclint.diagnostic import Finding, pointer
from speclint.releases import Release
from speclint.spec import Spec

SEVERITY = "error"
NEEDS = "spec"

ORDER = ("lock", "approvals", "results")


def check(spec: Spec, release: Release | None) -> Iterator[Finding]:
    keys = list(spec.data)
    if "results" in keys and keys[-1] != "results":
        message = f"`results` must be the last key; `{keys[-1]}` comes after it"
        related = ((pointer(keys[-1]), "last here"),)
        yield Finding("/results", message, "move it to the end of the file", on_key=True, related=related)
        return
    tools = [key for key in keys if key in ORDER]
    if tools != [key for key in ORDER if key in tools]:
        yield Finding(pointer(tools[0]), "the order is lock, approvals, results", "move the sections", on_key=True)
