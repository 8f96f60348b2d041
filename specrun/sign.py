"""Signing with OpenSSH: a key file, a key in the agent, or a hardware key. No key material enters this process."""

from __future__ import annotations

import subprocess
from pathlib import Path

from speclint import signers, sshsig
from speclint.trust import Trust
from specrun.errors import EnvironmentTrouble

PATIENCE = 120.0
"""Seconds for a passphrase to be typed or a hardware key to be touched."""
WILD = set("*?!")


def sign(statement: bytes, key: Path, namespace: str) -> str:
    """Armoured OpenSSH signature of the bytes. `key`: a private key, or the public key of one that the agent holds.

    Raises EnvironmentTrouble when ssh-keygen or the key is missing, or signing fails.
    """
    armored = _ssh_keygen(["-Y", "sign", "-f", str(_present(key)), "-n", namespace], statement)
    try:
        sshsig.parse(armored)
    except sshsig.Malformed as error:
        raise EnvironmentTrouble(f"ssh-keygen made a signature that would not be accepted: {error}") from None
    return armored


def fingerprint(key: Path) -> str:
    """`SHA256:…` of a key file, private or public; no passphrase is needed. Raises EnvironmentTrouble."""
    words = _ssh_keygen(["-l", "-E", "sha256", "-f", str(_present(key))]).split()
    return words[1] if len(words) > 1 else ""


def public_line(key: Path) -> str:
    """Type and base64 of the public key, as a line of an allowed-signers file ends; empty if there is no .pub file."""
    public = key if key.suffix == ".pub" else key.with_name(key.name + ".pub")
    return " ".join(public.read_text(encoding="utf-8").split()[:2]) if public.is_file() else ""


def principal_of(key: Path, trust: Trust, namespace: str | None = None) -> str | None:
    """The first principal under which the allowed-signers file lists the key by name, and for `namespace` if given."""
    if trust.problem or trust.allowed_signers is None:
        return None
    own = fingerprint(key)
    for signer in signers.allowed(trust.allowed_signers.read_text(encoding="utf-8")):
        fits = namespace is None or signer.namespaces is None or signers.matches(namespace, signer.namespaces)
        if fits and not signer.authority and sshsig.fingerprint(signer.key) == own:
            named = [name for name in signer.principals.split(",") if name and not WILD & set(name)]
            if named:
                return named[0]
    return None


def _present(key: Path) -> Path:
    path = key.expanduser().absolute()
    if not path.is_file():
        hint = f"name one with --key, or make one: ssh-keygen -t ed25519 -f {path}"
        raise EnvironmentTrouble(f"there is no key {path}", hint)
    return path


def _ssh_keygen(arguments: list[str], message: bytes = b"") -> str:
    try:
        done = subprocess.run(["ssh-keygen", *arguments], input=message, capture_output=True, timeout=PATIENCE)
    except FileNotFoundError:
        raise EnvironmentTrouble("ssh-keygen is not installed", "install OpenSSH (package openssh-client)") from None
    except subprocess.TimeoutExpired:
        hint = "is it waiting for a passphrase or a touch? A key in the agent needs neither: ssh-add KEY"
        raise EnvironmentTrouble(f"ssh-keygen did not answer within {PATIENCE:.0f} s", hint) from None
    if done.returncode:
        told = done.stderr.decode("utf-8", "replace").strip()
        raise EnvironmentTrouble(f"ssh-keygen: {' '.join(told.split())}", _way_out(told))
    return done.stdout.decode("utf-8", "replace")


def _way_out(told: str) -> str:
    hints = {
        "UNPROTECTED PRIVATE KEY": "chmod 600 the key file",
        "passphrase": "load the key into the agent first: ssh-add KEY",
        "No private key found": "load the private key into the agent: ssh-add KEY",
        "agent": "is ssh-agent running, and SSH_AUTH_SOCK set?",
        "key file": "--key takes an OpenSSH key; make one: ssh-keygen -t ed25519",
        "invalid format": "--key takes an OpenSSH key; make one: ssh-keygen -t ed25519",
    }
    return next((hint for sign, hint in hints.items() if sign in told), "")
