"""SL614 spec-changed-after-results: pair, protocol, criteria or lock were changed after a result was added.

A spec with results is frozen. Changing a threshold afterwards would judge a figure that is already known. A result holds the
digests of the sections it was measured with, so the section is named; `--base REF` knows the values and names each.

Fails:

    criteria: [{id: faster, …, at_most: 0.95}]      # was 0.90 when the result was added

Passes:

    criteria: [{id: faster, …, at_most: 0.90}]

Way out: restore the values; `specrun fork FILE NEW` starts a new spec from this one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from speclint.canonical import DIGESTED, section_digests
from speclint.diagnostic import Finding, pointer
from speclint.entries import current_digest
from speclint.history import ABSENT, Difference, differing
from speclint.releases import Release
from speclint.rules.sl604_result_of_another_spec import is_foreign
from speclint.spec import Spec

SEVERITY = "error"
NEEDS = "results"

SHOWN = 3
HELP = "restore the values; `specrun fork FILE NEW` starts a new spec"
PLACES = {"pair": "/pair", "protocol": "/protocol", "criteria": "/protocol/criteria", "lock": "/lock"}


def check(spec: Spec, release: Release | None) -> Iterator[Finding]:
    current = current_digest(spec)
    if current is None:
        return
    now = section_digests(spec.data)
    for index, entry in spec.results:
        if entry.get("spec") in (None, current) or is_foreign(now, entry):
            continue
        values = _values(spec, entry.get("spec"))
        changed = _changed(now, entry)
        what = "; ".join(map(_in_words, values[:SHOWN])) + (f" and {len(values) - SHOWN} more" if len(values) > SHOWN else "")
        places = list(filter(None, (_place(spec, value) for value in values))) or [PLACES[name] for name in changed]
        message = f"the spec was changed after this result: {what or ', '.join(changed) or 'name or schema'}"
        help = HELP if values or not changed else f"`--base REF`, a branch that has it as it was, names the values. {HELP}"
        related = tuple((place, "changed since") for place in places[:SHOWN])
        yield Finding(pointer("results", index, "spec"), message, help, related=related)


def _values(spec: Spec, measured: Any) -> list[Difference]:
    """What differs from the spec that was measured, if a file of the base holds it."""
    pasts = (*spec.base.past, *spec.base.taken) if spec.base else ()
    old = next((past.data for past in pasts if current_digest(Spec(past.data)) == measured), None)
    return [] if old is None else list(differing(_criteria_by_id(old), _criteria_by_id(spec.data)))


def _criteria_by_id(data: dict[str, Any]) -> dict[str, Any]:
    """What the digest is of, in which a criterion keeps its name wherever it stands."""
    found = {key: data[key] for key in DIGESTED if key in data}
    criteria = {str(row.get("id")): row for _, row in Spec(data).criteria}
    return found | {"protocol": Spec(data).section("protocol") | {"criteria": criteria}}


def _in_words(value: Difference) -> str:
    if value.at[:2] != ("protocol", "criteria"):
        return value.in_words(pointer(*value.at))
    criterion, *inner = value.at[2:]
    if inner:
        return value.in_words(f"criterion {criterion}, {pointer(*inner)[1:]}")
    return f"criterion {criterion} is {'new' if value.was is ABSENT else 'gone'}"


def _place(spec: Spec, value: Difference) -> str:
    """Where the value stands now; nothing if it is gone."""
    at = value.at
    if at[:2] == ("protocol", "criteria"):
        index = next((index for index, row in spec.criteria if row.get("id") == at[2]), None)
        return "" if index is None else pointer("protocol", "criteria", index, *at[3:])
    return "" if value.now is ABSENT else pointer(*at)


def _changed(now: dict[str, str], entry: dict[str, Any]) -> list[str]:
    stated = entry.get("sections")
    stated = stated if isinstance(stated, dict) else {}
    changed = [name for name, digest in now.items() if stated.get(name) != digest]
    if "criteria" in changed and "protocol" in changed:
        changed.remove("protocol")  # criteria lie within it
    return changed
