"""Approvals and results of a spec: who signed each, and what each is about."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from speclint.canonical import NotCanonical, entry_digest, spec_digest
from speclint.diagnostic import pointer
from speclint.spec import Spec

if TYPE_CHECKING:
    from speclint.signature import Kind, Outcome
    from speclint.trust import Trust

SECTIONS: dict[Kind, tuple[str, str, str]] = {
    "approval": ("approvals", "approver", "time"),
    "result": ("results", "signer", "ended"),
}
"""Kind to its section, the key that names its principal, and the key of its time."""


def current_digest(spec: Spec) -> str | None:
    """Digest of the spec as it stands; None if it has no canonical form."""
    try:
        return spec_digest(spec.data)
    except NotCanonical:
        return None


def digest_of(entry: dict[str, Any]) -> str | None:
    """Digest of an entry; None if it has no canonical form."""
    try:
        return entry_digest(entry)
    except NotCanonical:
        return None


def trust_of(spec: Spec) -> Trust:
    """Who may approve and sign this spec: as its own speclint.toml says, or the base branch's where there is one."""
    from speclint.trust import load_trust

    if spec.base is None:
        return load_trust(spec.folder)
    absent = f"{spec.base.ref} has no speclint.toml that names allowed signers: land it there first, in a change of its own"
    return load_trust(spec.base.policy)._replace(absent=absent)


def outcomes(spec: Spec) -> Iterator[tuple[str, Outcome]]:
    """Pointer of each entry's signature and whether it holds.

    The time is the one that the entry itself states; now, for an entry that is new against a base branch.
    """
    from speclint.signature import Outcome, statement  # on use: most specs have no entries

    trust = trust_of(spec)
    lists = _lists(trust)
    for kind, (section, who, when) in SECTIONS.items():
        for index, entry in spec.rows(section):
            signature, principal = entry.get("signature"), entry.get(who)
            if not isinstance(signature, str) or not isinstance(principal, str) or not spec.name:
                continue  # a shape error, reported as such
            path = pointer(section, index, "signature")
            try:
                signed = statement(kind, spec.name, str(entry.get("spec")), entry)
                new = spec.base is not None and (entry_digest(entry), signature) not in spec.base.known
            except NotCanonical as error:
                yield path, Outcome(False, "SL602", f"the entry cannot be put into canonical form: {error}")
                continue
            asked = (signed, signature, kind, principal, trust, lists)
            outcome = _verified(*asked, _time(entry.get(when)))
            if new and spec.base and outcome.ok:
                outcome = _now_too(outcome, _verified(*asked, spec.base.now), str(entry.get(when)))
            yield path, _saying(outcome, spec.base.in_words(outcome.reason)) if spec.base else outcome


def _now_too(then: Outcome, now: Outcome, when: str) -> Outcome:
    """A new entry must hold now: its own time is only what its signer says."""
    return now if now.ok else _saying(now, f"{now.reason}; its own time, {when}, is the signer's word and does not count")


def _saying(outcome: Outcome, reason: str) -> Outcome:
    from dataclasses import replace

    return replace(outcome, reason=reason)


@lru_cache(maxsize=256)
def _verified(
    signed: bytes, signature: str, kind: Kind, principal: str, trust: Trust, lists: tuple[bytes, ...], at: datetime | None
) -> Outcome:
    """Verify once, however many rules ask. `lists` are the trust files' bytes: an outcome holds as long as they do."""
    from speclint.signature import NAMESPACES, verify

    return verify(signed, signature, NAMESPACES[kind], principal, trust, at)


def _lists(trust: Trust) -> tuple[bytes, ...]:
    paths = filter(None, (trust.allowed_signers, trust.revoked))
    return tuple(path.read_bytes() if path.is_file() else b"" for path in paths)


def _time(text: object) -> datetime | None:
    try:
        return datetime.strptime(str(text), "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    except ValueError:
        return None
