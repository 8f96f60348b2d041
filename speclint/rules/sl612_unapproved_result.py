"""SL612 unapproved-result: a result that did not run under an approval of this file.

`--unapproved` allows a run for a first look. Its result says so for ever. Where [approvals] of speclint.toml asks for several
approvers, or for others than the signer, a result with fewer is one that was not approved.

Fails:

    results: [{id: r1, approvals: []}]

Passes:

    results: [{id: r1, approvals: ["sha256:… of an approval above"]}]

Way out: have the spec approved and run it again.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from speclint.diagnostic import Finding, pointer
from speclint.entries import digest_of, trust_of
from speclint.history import lost
from speclint.releases import Release
from speclint.spec import Spec

SEVERITY = "warning"
NEEDS = "results"

HELP = "have the spec approved and run it again"


def check(spec: Spec, release: Release | None) -> Iterator[Finding]:
    approved = {digest_of(entry): entry for _, entry in spec.approvals}
    for index, entry in spec.results:
        named = spec.at("results", index, "approvals", kind=list)
        path = pointer("results", index, "approvals")
        if named is None:
            continue
        if not named:
            yield Finding(path, "this run was not approved", HELP, on_key=True)
            continue
        if lost(spec).intersection(map(str, named)):
            continue  # SL606
        faults = [fault for digest in map(str, named) if (fault := _fault(digest, approved, entry))]
        for fault in faults:
            yield Finding(path, fault, HELP, on_key=True, severity="error")
        if not faults and (missing := _missing(spec, entry, [approved[digest] for digest in map(str, named)])):
            yield Finding(path, missing, HELP, on_key=True)


def _fault(digest: str, approved: dict[str | None, dict[str, Any]], entry: dict[str, Any]) -> str:
    if digest not in approved:
        return f"no approval here has digest {digest}"
    return "" if approved[digest].get("spec") == entry.get("spec") else f"approval {digest} is for another spec"


def _missing(spec: Spec, entry: dict[str, Any], named: list[dict[str, Any]]) -> str:
    """How the named approvals fall short of the policy, if they do."""
    trust = trust_of(spec)
    people = {str(approval.get("approver")) for approval in named}
    people -= {str(entry.get("signer"))} if trust.other_than_signer else set()
    short = len(people) < trust.min_approvals
    return f"{len(people)} approvers count, and speclint.toml asks for {trust.min_approvals}" if short else ""
