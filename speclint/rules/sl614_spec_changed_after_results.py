"""SL614 spec-changed-after-results: pair, protocol, criteria or lock were changed after a result was added.

A spec with results is frozen. Changing a threshold afterwards would judge a figure that is already known.

Fails:

    criteria: [{id: faster, …, at_most: 0.95}]      # was 0.90 when the result was added

Passes:

    criteria: [{id: faster, …, at_most: 0.90}]

Way out: restore the values; `specrun fork FILE NEW` starts a new spec from this one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from speclint.canonical import section_digests
from speclint.diagnostic import Finding, pointer
from speclint.entries import current_digest
from speclint.releases import Release
from speclint.rules.sl604_result_of_another_spec import is_foreign
from speclint.spec import Spec

SEVERITY = "error"
NEEDS = "results"

PLACES = {"pair": "/pair", "protocol": "/protocol", "criteria": "/protocol/criteria", "lock": "/lock"}


def check(spec: Spec, release: Release | None) -> Iterator[Finding]:
    current = current_digest(spec)
    if current is None:
        return
    now = section_digests(spec.data)
    for index, entry in spec.results:
        if entry.get("spec") in (None, current) or is_foreign(now, entry):
            continue
        changed = _changed(now, entry)
        message = f"the spec was changed after this result: {', '.join(changed) or 'name or schema'}"
        related = tuple((PLACES[name], "changed since") for name in changed if name in PLACES)
        help = "restore the values; `specrun fork FILE NEW` starts a new spec"
        yield Finding(pointer("results", index, "spec"), message, help, related=related)


def _changed(now: dict[str, str], entry: dict[str, Any]) -> list[str]:
    stated = entry.get("sections")
    stated = stated if isinstance(stated, dict) else {}
    changed = [name for name, digest in now.items() if stated.get(name) != digest]
    if "criteria" in changed and "protocol" in changed:
        changed.remove("protocol")  # criteria lie within it
    return changed
