"""SL602 signature-invalid: a signature does not belong to the bytes of its entry.

The entry, the spec's name or the digest it states was changed after signing, or the signature is damaged. A signature
covers the whole entry, so a single changed figure is enough. It says who vouches for these bytes; it does not prove that a
GPU ran.

Source: OpenSSH PROTOCOL.sshsig; `ssh-keygen -Y verify`.

Fails:

    results: [{…, verdicts: [{id: faster-alone, verdict: met, …}], signature: made for "not_met"}]

Passes:

    results: [as `specrun` appended it]

Way out: restore the entry from the run (`specrun append RUN`) or from the repository's history.
"""

from __future__ import annotations

from collections.abc import Iterator

from speclint.diagnostic import Finding, pointer
from speclint.entries import outcomes
from speclint.history import edited
from speclint.releases import Release
from speclint.spec import Spec

SEVERITY = "error"
NEEDS = "results"


def check(spec: Spec, release: Release | None) -> Iterator[Finding]:
    said = {pointer(*place, "signature") for place in edited(spec)}  # SL606 says what was edited
    for path, outcome in outcomes(spec):
        if outcome.code == "SL602" and path not in said:
            help = "restore the entry from its run (`specrun append RUN`) or from the repository's history"
            yield Finding(path, outcome.reason, help, "OpenSSH PROTOCOL.sshsig", on_key=True)
