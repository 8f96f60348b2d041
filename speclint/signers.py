"""OpenSSH's allowed-signers file and a plain revocation list, for explanations and for the verifier without OpenSSH.

The format is that of `man ssh-keygen`, ALLOWED SIGNERS. As in OpenSSH a line that cannot be read allows nothing. Times
without a zone are read as UTC, so that a file means the same on every machine.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from speclint.sshsig import fingerprint

LINE = re.compile(r'(?:"(?P<quoted>[^"]*)"|(?P<bare>[^\s"]+))[ \t]+(?P<rest>\S.*)')
KEY = re.compile(r"(?P<type>[a-z0-9@.-]+)[ \t]+(?P<blob>[A-Za-z0-9+/]+={0,2})(?:[ \t].*)?")
OPTION = re.compile(r'(?P<name>[A-Za-z-]+)(?:="(?P<value>[^"\\]*)")?')
OPTIONS = re.compile(rf"{OPTION.pattern}(?:,{re.sub(r'[?]P<[a-z]+>', '?:', OPTION.pattern)})*")
KNOWN = {"cert-authority", "namespaces", "valid-after", "valid-before"}
TIMES = {8: "%Y%m%d", 12: "%Y%m%d%H%M", 14: "%Y%m%d%H%M%S"}


class Unreadable(ValueError):
    """A line that cannot be read; the message says why."""


@dataclass(frozen=True, slots=True)
class Signer:
    """One line of an allowed-signers file."""

    line: int
    principals: str
    key: bytes
    authority: bool = False
    namespaces: str | None = None
    valid_after: datetime | None = None
    valid_before: datetime | None = None


def allowed(text: str, principal: str | None = None) -> Iterator[Signer]:
    """The readable lines of an allowed-signers file, or those that are for `principal`."""
    for number, line in enumerate(text.split("\n"), 1):
        match = LINE.fullmatch(line.strip())
        if match is None or line.lstrip().startswith("#"):
            continue
        principals = match["bare"] if match["quoted"] is None else match["quoted"]
        if principal is None or matches(principal, principals):
            try:
                yield _signer(number, principals, match["rest"])
            except Unreadable:
                continue


def why_not(text: str, key: bytes, principal: str, namespace: str, at: datetime) -> str:
    """Why no line of an allowed-signers file lets `key` sign for `principal`; empty if one does."""
    reasons = [_why_not(signer, namespace, at) for signer in allowed(text, principal) if signer.key == key]
    if reasons:
        return "" if "" in reasons else reasons[0]
    others = ", ".join(sorted({signer.principals for signer in allowed(text) if signer.key == key}))
    if others:
        return f"key {fingerprint(key)} is listed for {others}, not for {principal}"
    listed = any(True for _ in allowed(text, principal))
    return f"key {fingerprint(key)} is not listed" + (f" for {principal}, who has another key there" if listed else "")


def is_wild(signer: Signer) -> bool:
    """Whether a line names principals by a pattern for a key that is no certificate authority: it may sign as any of them."""
    return not signer.authority and bool(set("*?") & set(signer.principals))


def too_wide(signer: Signer) -> str:
    """What a line lets its key do beyond signing as one person, for us; empty if nothing."""
    who = f"line {signer.line} of the allowed signers ({signer.principals}, key {fingerprint(signer.key)})"
    if is_wild(signer):
        return f"{who} lets one key sign in the name of anybody that the pattern matches"
    anything = signer.namespaces is None or "*" in signer.namespaces.split(",")
    return f"{who} names no namespaces: whatever else the key is trusted for, it may approve and sign results" if anything else ""


def revoked(text: str, key: bytes) -> bool:
    """Whether a plain revocation list names `key`. Raises Unreadable for anything but public keys, blanks, comments."""
    found = False
    for line in map(str.strip, text.split("\n")):
        if line and not line.startswith("#"):
            found |= public_key(line) == key
    return found


def matches(name: str, patterns: str) -> bool:
    """OpenSSH's pattern list: `*`, `?`, comma-separated; a match behind `!` beats every other."""
    hits = [pattern.startswith("!") for pattern in patterns.split(",") if _matches(name, pattern.removeprefix("!"))]
    return bool(hits) and not any(hits)


def _matches(name: str, pattern: str) -> bool:
    parts = {"*": ".*", "?": "."}
    return re.fullmatch("".join(parts.get(char, re.escape(char)) for char in pattern), name, re.DOTALL) is not None


def _why_not(signer: Signer, namespace: str, at: datetime) -> str:
    who = f"line {signer.line} ({signer.principals})"
    if signer.authority:
        return f"{who} is a certificate authority, and this key is no certificate"
    if signer.namespaces is not None and not matches(namespace, signer.namespaces):
        return f'{who} allows namespaces "{signer.namespaces}", not {namespace}'
    if signer.valid_after and at < signer.valid_after:
        return f"{who} is valid from {signer.valid_after:%Y-%m-%d %H:%M:%S} UTC, after {at:%Y-%m-%d %H:%M:%S} UTC"
    if signer.valid_before and at > signer.valid_before:
        return f"{who} expired {signer.valid_before:%Y-%m-%d %H:%M:%S} UTC, before {at:%Y-%m-%d %H:%M:%S} UTC"
    return ""


def _signer(number: int, principals: str, rest: str) -> Signer:
    try:
        return Signer(number, principals, public_key(rest))
    except Unreadable:
        options = OPTIONS.match(rest)
    if options is None or rest[options.end() : options.end() + 1] not in (" ", "\t"):
        raise Unreadable("neither a key nor options follow the principals")
    named = _options(options.group())
    after, before = _time(named.get("valid-after")), _time(named.get("valid-before"))
    if after and before and before <= after:
        raise Unreadable("valid-before is not after valid-after")
    key = public_key(rest[options.end() :].strip())
    return Signer(number, principals, key, "cert-authority" in named, named.get("namespaces"), after, before)


def _options(text: str) -> dict[str, str | None]:
    found: dict[str, str | None] = {}
    for option in OPTION.finditer(text):
        name = option["name"].lower()
        if name not in KNOWN or name in found or (option["value"] is None) != (name == "cert-authority"):
            raise Unreadable(f"option {name} is unknown, repeated or without its value")
        found[name] = option["value"]
    return found


def public_key(text: str) -> bytes:
    """The blob of a public key line, `TYPE BASE64 [COMMENT]`. Raises Unreadable."""
    match = KEY.fullmatch(text)
    try:
        blob = base64.b64decode(match["blob"], validate=True) if match else b""
    except binascii.Error:
        blob = b""
    name = match["type"].encode() if match else b""
    if not blob.startswith(len(name).to_bytes(4, "big") + name) or not name:
        raise Unreadable("not a public key")
    return blob


def _time(text: str | None) -> datetime | None:
    if text is None:
        return None
    digits = text.removesuffix("Z")
    try:
        return datetime.strptime(digits if digits.isdigit() else "", TIMES[len(digits)]).replace(tzinfo=UTC)
    except (KeyError, ValueError):
        raise Unreadable(f"{text!r} is not a time") from None
