"""The SSHSIG format (PROTOCOL.sshsig of OpenSSH), read strictly: one spelling of each signature, nothing left over.

Strict about what OpenSSH is lenient about: text outside the armour, a reserved field that holds something, a hash other
than sha512. Signing by `ssh-keygen -Y sign` produces none of these.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from dataclasses import dataclass

ARMOUR = re.compile(r"-----BEGIN SSH SIGNATURE-----\n((?:[A-Za-z0-9+/=]{1,76}\n)+)-----END SSH SIGNATURE-----\n?", re.ASCII)
MAGIC = b"SSHSIG"
VERSION = 1
HASH = "sha512"
ED25519 = "ssh-ed25519"


class Malformed(ValueError):
    """The text is no SSH signature, or not one that is accepted here."""


@dataclass(frozen=True, slots=True)
class Signature:
    """The fields of a signature; `public_key` and `signature` are SSH wire blobs."""

    public_key: bytes
    key_type: str
    namespace: str
    signature: bytes

    @property
    def fingerprint(self) -> str:
        return fingerprint(self.public_key)


def parse(armored: str) -> Signature:
    """Read an armoured signature. Raises Malformed with the reason."""
    blob = _Reader(_dearmoured(armored))
    if blob.take(len(MAGIC)) != MAGIC or blob.number() != VERSION:
        raise Malformed("it is not an SSHSIG signature of version 1")
    public_key, namespace, reserved, hash_name, signature = (blob.field() for _ in range(5))
    blob.end()
    if reserved:
        raise Malformed("its reserved field is not empty")
    if hash_name != HASH.encode():
        raise Malformed(f"its hash is {_shown(hash_name)}; only {HASH}, the default of ssh-keygen, is accepted")
    return Signature(public_key, _shown(_Reader(public_key).field()), _shown(namespace), signature)


def signed_bytes(message: bytes, namespace: str) -> bytes:
    """What the key signs: the message's sha512, bound to the namespace."""
    fields = (namespace.encode(), b"", HASH.encode(), hashlib.sha512(message).digest())
    return MAGIC + b"".join(len(field).to_bytes(4, "big") + field for field in fields)


def ed25519_key(public_key: bytes) -> bytes:
    """The 32 bytes of an Ed25519 public key blob. Raises Malformed for any other key."""
    return _typed(public_key, 32, "key")


def ed25519_signature(signature: bytes) -> bytes:
    """The 64 bytes of an Ed25519 signature blob. Raises Malformed for any other, whatever the key is."""
    return _typed(signature, 64, "signature")


def fingerprint(public_key: bytes) -> str:
    """As `ssh-keygen -l` prints it."""
    return "SHA256:" + base64.b64encode(hashlib.sha256(public_key).digest()).decode().rstrip("=")


def _typed(blob: bytes, length: int, what: str) -> bytes:
    reader = _Reader(blob)
    kind, value = reader.field(), reader.field()
    reader.end()
    if kind != ED25519.encode() or len(value) != length:
        raise Malformed(f"its {what} is {_shown(kind)} of {len(value)} bytes, not {ED25519} of {length}")
    return value


def _dearmoured(armored: str) -> bytes:
    match = ARMOUR.fullmatch(armored)
    if not match:
        raise Malformed("it is not an armoured SSH signature and nothing else")
    joined = match.group(1).replace("\n", "")
    try:
        blob = base64.b64decode(joined, validate=True)
    except binascii.Error:
        raise Malformed("its base64 is damaged") from None
    if base64.b64encode(blob).decode() != joined:
        raise Malformed("its base64 is not in canonical form")
    return blob


def _shown(name: bytes) -> str:
    return name.decode("ascii", "backslashreplace")


class _Reader:
    """Takes SSH wire fields off a blob; Malformed when it is too short or too long."""

    def __init__(self, blob: bytes) -> None:
        self.rest = blob

    def take(self, length: int) -> bytes:
        if len(self.rest) < length:
            raise Malformed("it is cut short")
        taken, self.rest = self.rest[:length], self.rest[length:]
        return taken

    def number(self) -> int:
        return int.from_bytes(self.take(4), "big")

    def field(self) -> bytes:
        return self.take(self.number())

    def end(self) -> None:
        if self.rest:
            raise Malformed(f"{len(self.rest)} bytes follow its end")
