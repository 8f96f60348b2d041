"""SL606 history-rewritten: an approval or result of the base branch was edited, removed, moved or reordered.

`speclint check --base origin/main` holds the whole repository against the merge base of that branch and HEAD, whatever files are
named: every approval and result of every spec file there must stand unchanged, in its order, in one spec file here. A file may
be renamed. Signatures are judged by the allowed signers, revocations and policy of the branch's tip, never by those of the
change: whoever changes them does so in a change of its own, which is a warning that lists who came and went; together with
entries it is an error.

Fails:

    results: []                     # r1 stands in the merge base

Passes:

    results: [{id: r1, …}, {id: r2, …}]

Way out: restore what the base has (the finding names the git command), then add yours below; land changes of who may sign first.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from speclint.canonical import unsigned
from speclint.diagnostic import Finding, pointer
from speclint.history import Base, Entry, Past, differing, edited, few, missing
from speclint.releases import Release
from speclint.spec import Spec

SEVERITY = "error"
NEEDS = "spec"

SHOWN = 5


def check(spec: Spec, release: Release | None) -> Iterator[Finding]:
    base = spec.base
    if base is None:
        return
    changed = edited(spec)
    for (section, index), (old, past) in changed.items():
        yield _edited(base, spec.data[section][index], (section, index), old, past)
    known_elsewhere = {entry.digest for entry, _ in changed.values()}
    for past in base.past:
        gone = [entry for entry in missing(base, past) if entry.digest not in known_elsewhere]
        yield from _gone(base, gone, past)
        yield from _reordered(base, past)
    yield from (_taken(base, past) for past in base.taken)
    yield from _signed_anew(base)


def _edited(base: Base, now: dict[str, Any], place: tuple[str, int], old: Entry, past: Past) -> Finding:
    found = list(differing(unsigned(old.value), unsigned(now)))
    what = f"{old.name} is not what it is in {past.shown}: {few(found)}"
    return Finding(pointer(*place, *found[0].at), what, _restore(base, past), on_key=True)


def _restore(base: Base, past: Past) -> str:
    back = past.brought_back_to(base.file)
    if base.file == past.file:
        return f"{back} brings the file back as it was; then add what is new below (`specrun append RUN`)"
    return f"{back} shows the file as it was: restore the entries from it; new ones go below"


def _gone(base: Base, gone: list[Entry], past: Past) -> Iterator[Finding]:
    for section in dict.fromkeys(entry.section for entry in gone):
        lost = [entry for entry in gone if entry.section == section]
        moved = sorted({file for entry in lost for file in past.elsewhere.get(entry.digest, ())})
        where = f"; {'it stands' if len(lost) == 1 else 'some stand'} in {', '.join(moved)} now" if moved else ""
        be = "is" if len(lost) == 1 else "are"
        message = f"{names(lost)} of {past.shown} {be} gone from here{where}"
        yield Finding(pointer(section), message, _restore(base, past), on_key=True)


def names(found: list[Entry]) -> str:
    """Entries by name, as many as can be read."""
    more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    return ", ".join(entry.name for entry in found[:SHOWN]) + more


def _reordered(base: Base, past: Past) -> Iterator[Finding]:
    places = {entry.digest: entry for entry in base.own}
    for section in ("approvals", "results"):
        there = [places[old.digest] for old in past.entries if old.section == section and old.digest in places]
        for before, after in pairwise(there):
            if after.place < before.place:
                message = f"{after.name} stands above {before.name}, which it follows in {past.shown}"
                yield Finding(pointer(section, after.place, "id"), message, _restore(base, past))
                break


def _taken(base: Base, past: Past) -> Finding:
    lacking = missing(base, past)
    held = [entry for entry in past.entries if entry not in lacking]
    message = f"it takes {names(held)} over from {past.shown} and leaves out {names(lacking)}"
    return Finding("/name", message, "take all over or none; `specrun fork` makes a copy with none", on_key=True)


def _signed_anew(base: Base) -> Iterator[Finding]:
    digests = {digest for digest, _ in base.known}
    for entry in base.own:
        if entry.digest in digests and entry.signed not in base.known:
            message = f"{entry.name} carries another signature than in the base: it is judged as a new one"
            yield Finding(pointer(entry.section, entry.place, "signature"), message, on_key=True, severity="warning")
