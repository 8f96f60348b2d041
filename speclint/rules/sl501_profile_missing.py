"""SL501 profile-missing: the workloads do not cover both profiles, short repetitive and varied long text.

Speculation gains most where text repeats itself. Judged on one kind alone, a pair says nothing about the other. A service
that has one workload only gets a warning.

Fails:

    workloads: [{id: varied, profile: varied_long, …}, {id: more, profile: varied_long, …}]

Passes:

    workloads: [{id: lists, profile: short_repetitive, …}, {id: varied, profile: varied_long, …}]

Way out: add a workload of the other profile; `generator: repetitive` and `generator: varied` need no files.
"""

from __future__ import annotations

from collections.abc import Iterator

from speclint.diagnostic import Finding, Severity
from speclint.releases import Release
from speclint.shape import one_of
from speclint.spec import Spec

SEVERITY = "error"
NEEDS = "spec"

PROFILES = ("short_repetitive", "varied_long")


def check(spec: Spec, release: Release | None) -> Iterator[Finding]:
    rows = spec.workloads
    found = [row.get("profile") for row in rows]
    missing = [profile for profile in PROFILES if profile not in found]
    if not rows or not missing or any(profile not in PROFILES for profile in found):
        return  # a profile by another name (SL104) may be the one that is missing
    severity: Severity = "warning" if len(rows) == 1 else "error"
    message = f"no workload has profile {one_of(missing)}"
    help = "add one, or say in `purpose` that the service has this workload only"
    yield Finding("/protocol/workloads", message, help, on_key=True, severity=severity)
