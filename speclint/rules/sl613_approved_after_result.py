"""SL613 approved-after-result: an approval that a result names is later than the run, or already knew the result.

A spec is approved before its result is known, or the criteria may have been chosen for it.

Fails:

    approvals: [{id: a1, time: "2026-03-02T00:00:00Z"}]
    results: [{id: r1, started: "2026-03-01T00:00:00Z", approvals: ["sha256:… of a1"]}]

Passes:

    approvals: [{id: a1, time: "2026-02-28T00:00:00Z"}]
    results: [{id: r1, started: "2026-03-01T00:00:00Z", approvals: ["sha256:… of a1"]}]

Way out: run again under the approval.
"""

from __future__ import annotations

from collections.abc import Iterator

from speclint.diagnostic import Finding, pointer
from speclint.entries import digest_of
from speclint.releases import Release
from speclint.spec import Spec

SEVERITY = "error"
NEEDS = "results"


def check(spec: Spec, release: Release | None) -> Iterator[Finding]:
    approvals = {digest_of(entry): (index, entry) for index, entry in spec.approvals}
    for index, entry in spec.results:
        for digest in map(str, spec.listing("results", index, "approvals")):
            place, approval = approvals.get(digest, (0, {}))
            time, started = approval.get("time"), entry.get("started")
            # RFC 3339 times in UTC are in order as text
            late = isinstance(time, str) and isinstance(started, str) and time > started
            known = approval.get("results_known")
            if late or (isinstance(known, list) and digest_of(entry) in known):
                related = ((pointer("approvals", place, "time"), "approved here"),)
                message = "this run began before the approval that it names was given"
                yield Finding(pointer("results", index, "started"), message, "run again under it", related=related)
