"""What an approval or a result signs, and whether the signature holds.

The signed bytes are the RFC 8785 form of an in-toto-shaped statement about a spec's name and digest; the whole entry but
its `signature` is the predicate. They are checked by `ssh-keygen -Y verify` where OpenSSH is installed, else by a strict
Ed25519 verifier on `cryptography`. A valid signature says who vouches for these bytes; it does not prove that a GPU ran.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from speclint import signers, sshsig
from speclint.canonical import NotCanonical, canonical, unsigned
from speclint.trust import Trust, load_trust

__all__ = [
    "NAMESPACES", "Kind", "Outcome", "Trust", "load_trust", "signed_at", "statement", "verify", "verify_entry",
    "verify_openssh", "verify_strict",
]  # fmt: skip

Kind = Literal["approval", "result"]
NAMESPACES: dict[Kind, str] = {"approval": "pair-spec-approval", "result": "pair-spec-result"}
PRINCIPAL_KEY: dict[Kind, str] = {"approval": "approver", "result": "signer"}
TIME_KEY: dict[Kind, str] = {"approval": "time", "result": "ended"}
PRINCIPAL = re.compile(r"[!-~]{1,256}")
KRL_MAGIC = b"SSHKRL\n\0"
TIMEOUT = 20.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """Whether a signature holds; if not, SL602 (not a signature of these bytes) or SL603 (by nobody who may)."""

    ok: bool
    code: str
    reason: str
    fingerprint: str = ""


def statement(kind: Kind, name: str, spec_digest: str, entry: Mapping[str, Any]) -> bytes:
    """The bytes to sign. `spec_digest` is `sha256:…` as in the entry's `spec`. Raises NotCanonical."""
    return canonical(
        {
            "_type": "https://in-toto.io/Statement/v1",
            "subject": [{"name": name, "digest": {"sha256": spec_digest.removeprefix("sha256:")}}],
            "predicateType": f"urn:pair-spec:{kind}:v1",
            "predicate": unsigned(entry),
        }
    )


def verify_entry(kind: Kind, name: str, entry: Mapping[str, Any], trust: Trust, at: datetime | None = None) -> Outcome:
    """Whether an entry of the spec called `name`, as it stands in the file, carries the signature it should.

    The statement is about the spec digest that the entry itself names; whether that is this file's is another question.
    """
    needed = {key: entry.get(key) for key in ("spec", "signature", PRINCIPAL_KEY[kind])}
    absent = [key for key, value in needed.items() if not isinstance(value, str)]
    if absent:
        return Outcome(False, "SL602", f"the entry has no {' and no '.join(absent)}")
    spec, armored, principal = (str(value) for value in needed.values())
    try:
        signed = statement(kind, name, spec, entry)
    except NotCanonical as error:
        return Outcome(False, "SL602", f"the entry cannot have been signed: {error}")
    return verify(signed, armored, NAMESPACES[kind], principal, trust, at)


def signed_at(kind: Kind, entry: Mapping[str, Any]) -> datetime | None:
    """When the entry says it was signed (an approval's `time`, a result's `ended`): the signer's word, no proof."""
    try:
        return datetime.strptime(str(entry.get(TIME_KEY[kind])), "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    except ValueError:
        return None


def verify(statement: bytes, armored: str, namespace: str, principal: str, trust: Trust, at: datetime | None = None) -> Outcome:
    """Whether `principal` may sign in `namespace` at the time `at` (now if None), and signed exactly these bytes."""
    check = verify_openssh if shutil.which("ssh-keygen") else verify_strict
    return check(statement, armored, namespace, principal, trust, at)


def verify_openssh(
    statement: bytes, armored: str, namespace: str, principal: str, trust: Trust, at: datetime | None = None
) -> Outcome:
    """Verify with `ssh-keygen -Y`: any key type, certificates, hardware keys, key revocation lists."""
    parsed = _parsed(armored, namespace)
    if isinstance(parsed, Outcome):
        return parsed
    with tempfile.TemporaryDirectory(prefix="speclint-") as folder:
        file = Path(folder, "signature")
        file.write_text(armored if armored.endswith("\n") else armored + "\n", encoding="ascii")
        blocked = _untrusted(trust, principal, parsed)
        outcome = blocked or _allowed_by_openssh(statement, file, parsed, namespace, principal, trust, at or _now())
        if outcome.ok:
            return outcome
        told = _ssh_keygen(["check-novalidate", "-n", namespace, "-s", str(file)], statement)
        return _forged(_words(told), parsed) if told else outcome


def verify_strict(
    statement: bytes, armored: str, namespace: str, principal: str, trust: Trust, at: datetime | None = None
) -> Outcome:
    """Verify without OpenSSH: Ed25519 only, no certificates, revocation only by a plain list of public keys."""
    parsed = _parsed(armored, namespace)
    if isinstance(parsed, Outcome):
        return parsed
    wrong = _wrong_ed25519(parsed, sshsig.signed_bytes(statement, namespace))
    if wrong:
        return _forged(wrong, parsed)
    return _untrusted(trust, principal, parsed) or _allowed_by_us(parsed, namespace, principal, trust, at or _now())


def _parsed(armored: str, namespace: str) -> sshsig.Signature | Outcome:
    try:
        parsed = sshsig.parse(armored)
    except sshsig.Malformed as error:
        return Outcome(False, "SL602", f"the signature cannot be read: {error}")
    if parsed.namespace != namespace:
        return _forged(f"it was made for {parsed.namespace!r}, not for {namespace!r}", parsed)
    return parsed


def _forged(reason: str, parsed: sshsig.Signature) -> Outcome:
    return Outcome(False, "SL602", f"the signature does not hold: {reason}", parsed.fingerprint)


def _stranger(reason: str, parsed: sshsig.Signature) -> Outcome:
    return Outcome(False, "SL603", reason, parsed.fingerprint)


def _untrusted(trust: Trust, principal: str, parsed: sshsig.Signature) -> Outcome | None:
    """What forbids trust whatever the lists say."""
    if trust.problem:
        return _stranger(trust.problem, parsed)
    if trust.allowed_signers is None:
        where = f"{trust.source} names no allowed_signers" if trust.source else trust.absent
        return _stranger(f"well formed, by key {parsed.fingerprint}, but nobody is trusted yet: {where}", parsed)
    if not PRINCIPAL.fullmatch(principal) or principal.startswith("-"):
        return _stranger(f"{principal!r} cannot be a principal", parsed)
    return None


def _allowed_by_openssh(
    statement: bytes, file: Path, parsed: sshsig.Signature, namespace: str, principal: str, trust: Trust, at: datetime
) -> Outcome:
    when = f"-Overify-time={at.astimezone(UTC):%Y%m%d%H%M%S}"
    revoked = ["-r", str(trust.revoked)] if trust.revoked else []
    arguments = ["verify", when, "-f", str(trust.allowed_signers), "-I", principal, "-n", namespace, "-s", str(file)]
    told = _ssh_keygen([*arguments, *revoked], statement)
    if not told:
        return Outcome(True, "", f"signed by {principal}", parsed.fingerprint)
    ours = _allowed_by_us(parsed, namespace, principal, trust, at)
    return ours if not ours.ok else _stranger(f"ssh-keygen refuses {principal}: {_words(told)}", parsed)


def _allowed_by_us(parsed: sshsig.Signature, namespace: str, principal: str, trust: Trust, at: datetime) -> Outcome:
    assert trust.allowed_signers is not None
    try:
        text = trust.allowed_signers.read_text(encoding="utf-8")
        revoked = trust.revoked is not None and _is_revoked(trust.revoked, parsed.public_key)
    except (OSError, ValueError) as error:
        return _stranger(f"the trust files cannot be read: {error}", parsed)
    if revoked:
        return _stranger(f"key {parsed.fingerprint} is revoked ({trust.revoked})", parsed)
    reason = signers.why_not(text, parsed.public_key, principal, namespace, at.astimezone(UTC))
    if reason:
        return _stranger(f"{reason} ({trust.allowed_signers})", parsed)
    return Outcome(True, "", f"signed by {principal}", parsed.fingerprint)


def _is_revoked(path: Path, key: bytes) -> bool:
    content = path.read_bytes()
    if content.startswith(KRL_MAGIC):
        raise ValueError(f"{path} is a binary revocation list, which needs OpenSSH")
    return signers.revoked(content.decode("utf-8"), key)


def _wrong_ed25519(parsed: sshsig.Signature, signed: bytes) -> str:
    try:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    except ImportError:
        return "it cannot be checked here: install OpenSSH (ssh-keygen), or `pip install cryptography`"
    try:
        key, signature = sshsig.ed25519_key(parsed.public_key), sshsig.ed25519_signature(parsed.signature)
        Ed25519PublicKey.from_public_bytes(key).verify(signature, signed)
    except sshsig.Malformed as error:
        other = parsed.key_type != sshsig.ED25519
        return f"{error}; only OpenSSH can check it, and it is not installed" if other else str(error)
    except InvalidSignature:
        return "these are not the bytes that were signed"
    return ""


def _ssh_keygen(arguments: list[str], message: bytes) -> str:
    """What `ssh-keygen -Y …` complains of; empty if it is content."""
    # Times without a zone in an allowed-signers file are local times: one zone for every machine.
    environment = {"PATH": os.environ.get("PATH", os.defpath), "TZ": "UTC", "LC_ALL": "C"}
    try:
        done = subprocess.run(
            ["ssh-keygen", "-Y", *arguments], input=message, capture_output=True, env=environment, timeout=TIMEOUT
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"ssh-keygen did not answer: {error}"
    return "" if done.returncode == 0 else done.stderr.decode("utf-8", "replace") or f"status {done.returncode}"


def _words(told: str) -> str:
    lines = [line.strip() for line in told.splitlines() if line.strip() and "Could not verify" not in line]
    if any("incorrect signature" in line for line in lines):
        return "these are not the bytes that were signed"
    return "; ".join(lines) or "no reason given"


def _now() -> datetime:
    return datetime.now(UTC)
