"""SL605 chain-broken: a result does not name the results before it.

Each result holds the digests of the entries that were last when it was added, so a removed or reordered one is missed. The
first names none; after a merge of two branches the next names both. Two that name none are a warning: each was the first on
its own branch, or one was left out.

Fails:

    results: [{id: r1, previous: []}, {id: r3, previous: ["sha256:… of r2, which is gone"]}]

Passes:

    results: [{id: r1, previous: []}, {id: r2, previous: ["sha256:… of r1"]}]

Way out: restore what was removed; after a merge conflict `specrun append RUN` adds the run again.
"""

from __future__ import annotations

from collections.abc import Iterator

from speclint.diagnostic import Finding, pointer
from speclint.entries import digest_of
from speclint.history import lost
from speclint.releases import Release
from speclint.spec import Spec

SEVERITY = "error"
NEEDS = "results"

HELP = "restore what was removed or reordered; `specrun append RUN` adds a run again"


def check(spec: Spec, release: Release | None) -> Iterator[Finding]:
    yield from _ids(spec)
    before: list[str | None] = []
    told = lost(spec)
    for index, entry in spec.results:
        previous = spec.at("results", index, "previous", kind=list)
        path = pointer("results", index, "previous")
        if previous is not None:
            unknown = [digest for digest in previous if digest not in before and not (isinstance(digest, str) and digest in told)]
            if unknown:
                yield Finding(path, f"it follows {unknown[0]}, which is not among the results above", HELP, on_key=True)
            elif before and not previous:
                message = "it names no result before it: two branches were merged here, or one was left out"
                yield Finding(path, message, HELP, on_key=True, severity="warning")
        before.append(digest_of(entry))


def _ids(spec: Spec) -> Iterator[Finding]:
    for section, rows in (("approvals", spec.approvals), ("results", spec.results)):
        first: dict[object, int] = {}
        for index, entry in rows:
            name = entry.get("id")
            if isinstance(name, str) and first.setdefault(name, index) != index:
                related = ((pointer(section, first[name], "id"), "first here"),)
                yield Finding(pointer(section, index, "id"), f"`{name}` stands twice in {section}", HELP, related=related)
