"""SL601 not-approved: no approval speaks of this spec as it stands; a run would be refused or marked unapproved.

Before a run this is a note. An approval holds for one digest of schema, name, pair, protocol and lock: any change of a value
there needs a new one, and so does a suppression that the approver did not see. How many approvers are needed, and whether the
signer of a result counts as one, says [approvals] of speclint.toml.

Fails:

    approvals: []

Passes:

    approvals: [{id: a1, approver: reviewer@example.org, spec: "sha256:…", …}]

Way out: `specrun approve FILE --key KEY`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from speclint.canonical import section_digests
from speclint.diagnostic import Finding, pointer
from speclint.entries import current_digest, outcomes, trust_of
from speclint.history import missing
from speclint.releases import Release
from speclint.spec import Spec

SEVERITY = "info"
NEEDS = "spec"

HELP = "`specrun approve FILE --key KEY` adds an approval"


def check(spec: Spec, release: Release | None) -> Iterator[Finding]:
    current = current_digest(spec)
    if spec.results or current is None:
        return
    trust = trust_of(spec)
    people = {str(entry.get("approver")) for _, entry in spec.approvals if entry.get("spec") == current}
    if len(people) >= trust.min_approvals or _said_already(spec, bool(people)):
        return
    if not spec.approvals:
        yield Finding("/name", "nobody has approved this spec yet", HELP, on_key=True)
    elif not people:
        index, entry = spec.approvals[-1]
        message = f"the approvals are for another digest; since the last one changed: {_changed(spec, entry)}"
        yield Finding(pointer("approvals", index, "spec"), message, HELP)
    else:
        message = f"{len(people)} of the {trust.min_approvals} approvers that speclint.toml asks for"
        help = HELP + ("; whoever will sign the result does not count" if trust.other_than_signer else "")
        yield Finding("/approvals", message, help, on_key=True)


def _said_already(spec: Spec, approved: bool) -> bool:
    """Whether another rule says that an approval was removed (SL606), is malformed (SL103) or, the last one, damaged (SL602)."""
    if spec.base and any(entry.section == "approvals" for past in spec.base.past for entry in missing(spec.base, past)):
        return True
    if not spec.approvals:
        return bool(spec.listing("approvals"))
    last = pointer("approvals", spec.approvals[-1][0], "signature")
    return not approved and any(outcome.code == "SL602" for path, outcome in outcomes(spec) if path == last)


def _changed(spec: Spec, entry: dict[str, Any]) -> str:
    stated = entry.get("sections")
    stated = stated if isinstance(stated, dict) else {}
    changed = [name for name, digest in section_digests(spec.data).items() if stated.get(name) != digest]
    if "criteria" in changed and "protocol" in changed:
        changed.remove("protocol")  # criteria lie within it
    return ", ".join(changed) or "the name"
