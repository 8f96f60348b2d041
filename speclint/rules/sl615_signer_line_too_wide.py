"""SL615 signer-line-too-wide: the line of the allowed signers that an entry rests on lets its key do more than it should.

A line whose principals hold a wildcard (`*@example.org`) and that is no certificate authority lets its one key sign in
anybody's name: an error, because approvers are counted by name. A line without `namespaces=`, such as one of git's own
allowed-signers file, lets whoever may sign commits approve and sign results: a warning. Lines that a change adds are judged by
`speclint check --base`.

Source: `man ssh-keygen`, ALLOWED SIGNERS.

Fails:

    results: [{signer: alice@example.com, …}]     # allowed_signers: *@example.com ssh-ed25519 AAAA…

Passes:

    results: [{signer: alice@example.com, …}]     # alice@example.com namespaces="pair-spec-result" ssh-ed25519 AAAA…

Way out: one line per person, with `namespaces="pair-spec-approval,pair-spec-result"` or the one of the two that is meant.
"""

from __future__ import annotations

from collections.abc import Iterator

from speclint.diagnostic import Finding, Severity, pointer
from speclint.entries import SECTIONS, trust_of
from speclint.releases import Release
from speclint.spec import Spec

SEVERITY = "warning"
NEEDS = "results"

SOURCE = "`man ssh-keygen`, ALLOWED SIGNERS"
HELP = 'one line per person: alice@example.com namespaces="pair-spec-approval,pair-spec-result" ssh-ed25519 AAAA…'


def check(spec: Spec, release: Release | None) -> Iterator[Finding]:
    from speclint import signers, sshsig  # on use: most specs have no entries

    text = _allowed_signers(spec)
    said: set[str] = set()
    for section, who, _ in SECTIONS.values() if text else ():
        for index, entry in spec.rows(section):
            try:
                key = sshsig.parse(str(entry.get("signature"))).public_key
            except sshsig.Malformed:
                continue  # SL602
            lines = [line for line in signers.allowed(text, str(entry.get(who))) if line.key == key]
            faults = [signers.too_wide(line) for line in lines]
            if lines and all(faults) and faults[0] not in said:
                said.add(faults[0])
                severity: Severity = "error" if all(map(signers.is_wild, lines)) else "warning"
                yield Finding(pointer(section, index, who), faults[0], HELP, severity=severity)


def _allowed_signers(spec: Spec) -> str:
    path = trust_of(spec).allowed_signers
    try:
        return path.read_text(encoding="utf-8") if path else ""
    except (OSError, ValueError):
        return ""  # SL603
