"""SL611 established-without-evidence: a result says that the method ran and shows no check that says so.

Whether the intended method ran comes before any verdict: without it a fast pair may be the target alone.

Fails:

    results: [{established: {verdict: established, checks: []}}]

Passes:

    results: [{established: {verdict: established, checks: [{check: drafts, outcome: ok, detail: …}]}}]

Way out: none by hand; `specrun append RUN` writes the checks of the run.
"""

from __future__ import annotations

from collections.abc import Iterator

from speclint.diagnostic import Finding, pointer
from speclint.releases import Release
from speclint.spec import Spec

SEVERITY = "error"
NEEDS = "results"

HELP = "`specrun append RUN` writes the checks of the run"


def check(spec: Spec, release: Release | None) -> Iterator[Finding]:
    for index, _ in spec.results:
        keys = ("results", index, "established")
        outcomes = [(place, row.get("outcome")) for place, row in spec.rows(*keys, "checks")]
        failed = [place for place, outcome in outcomes if outcome == "failed"]
        verdict, path = spec.at(*keys, "verdict", kind=str), pointer(*keys, "verdict")
        if verdict == "established" and failed:
            related = ((pointer(*keys, "checks", failed[0]), "failed"),)
            yield Finding(path, "established, although a check failed", HELP, related=related)
        elif verdict == "established" and all(outcome != "ok" for _, outcome in outcomes):
            yield Finding(path, "established, and no check says so", HELP)
        elif verdict == "not_established" and not failed:
            yield Finding(path, "not established, and no check failed", HELP)
