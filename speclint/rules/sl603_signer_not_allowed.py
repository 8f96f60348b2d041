"""SL603 signer-not-allowed: the signature is well formed, but its signer may not make it.

`speclint.toml` names the allowed signers: principal, key, namespaces and validity. The key must belong to the principal that
the entry names, be valid at the entry's time, allow this namespace and not be revoked. An entry that is new against
`--base REF` must be valid now as well: its own time is only what its signer says.

Fails:

    approvals: [{approver: stranger@example.org, …}]

Passes:

    approvals: [{approver: reviewer@example.org, …}]     # in allowed_signers

Way out: have the entry signed by someone who may, or add the signer to the allowed signers in a change of its own.
"""

from __future__ import annotations

from collections.abc import Iterator

from speclint.diagnostic import Finding
from speclint.entries import outcomes
from speclint.releases import Release
from speclint.spec import Spec

SEVERITY = "error"
NEEDS = "results"


def check(spec: Spec, release: Release | None) -> Iterator[Finding]:
    for path, outcome in outcomes(spec):
        if outcome.code == "SL603":
            help = "allowed signers are named in speclint.toml, [trust] allowed_signers"
            yield Finding(path, outcome.reason, help, on_key=True)
