"""SL604 result-of-another-spec: a result was measured with another pair and protocol than this file's.

It was copied from another file, or the file was rewritten around it.

Fails:

    results: [{…, spec: the digest of another file, sections: {pair: …, protocol: …}}]

Passes:

    results: [{…, spec: the digest of this file}]

Way out: move the result to the file it belongs to; `specrun fork` starts a new spec without results.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from speclint.canonical import section_digests
from speclint.diagnostic import Finding, pointer
from speclint.entries import current_digest
from speclint.releases import Release
from speclint.spec import Spec

SEVERITY = "error"
NEEDS = "results"


def check(spec: Spec, release: Release | None) -> Iterator[Finding]:
    current = current_digest(spec)
    if current is None:
        return
    now = section_digests(spec.data)
    for index, entry in spec.results:
        if entry.get("spec") != current and is_foreign(now, entry):
            message = "this result was measured with another pair and another protocol"
            help = "move it to its own file; `specrun fork` starts a new spec without results"
            yield Finding(pointer("results", index, "spec"), message, help)


def is_foreign(now: dict[str, str], entry: dict[str, Any]) -> bool:
    """Whether neither pair nor protocol of the entry is the spec's: another file, not a changed one (SL614).

    `now` are the section digests of the spec as it stands.
    """
    stated = entry.get("sections")
    stated = stated if isinstance(stated, dict) else {}
    return all(stated.get(name) != now[name] for name in ("pair", "protocol"))
