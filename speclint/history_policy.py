"""Who may approve and sign, and what is checked: the files that say so, as the base branch has them and as a change leaves them.

These are every `speclint.toml`, the lists it names, and `[tool.speclint]` of every `pyproject.toml`.
"""

from __future__ import annotations

import hashlib
import posixpath
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from speclint import signers, sshsig
from speclint.config import PYPROJECT, SPECLINT
from speclint.history_git import Files

NAMES = (SPECLINT, PYPROJECT)
LISTS = ("allowed_signers", "revoked")
SHOWN = 8


class Change(NamedTuple):
    """What a change does to one policy file, in words; `line` of the new file, from 1, is where to look."""

    path: str
    content: bytes
    said: str
    line: int = 1


def policy(files: Files) -> dict[str, bytes]:
    """Path to bytes of the policy files."""
    tables = files.read(path for path in files.names if posixpath.basename(path) in NAMES)
    return tables | files.read(path for name, content in tables.items() for path in _named(name, content))


def copy_to(folder: Path, found: dict[str, bytes]) -> None:
    """Write the files under a folder, which is marked as the top of a repository: nothing above it counts."""
    (folder / ".git").mkdir()
    for path, content in found.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)


def changes(old: dict[str, bytes], new: dict[str, bytes]) -> Iterator[Change]:
    """The policy files whose meaning differs; comments and line ends mean nothing."""
    lists = {path for found in (old, new) for name, content in found.items() for path in _named(name, content)}
    for path in sorted(old.keys() | new.keys()):
        before, after = old.get(path), new.get(path)
        if before == after:
            continue
        said = _list(before, after) if path in lists else _tables(path, before, after)
        if said:
            yield Change(path, after or b"", said, _line(before or b"", after or b""))


def added_signers(old: dict[str, bytes], new: dict[str, bytes]) -> Iterator[tuple[str, signers.Signer]]:
    """The lines of allowed-signers files that are new, with the file's path."""
    for path in sorted({path for name, content in new.items() for path in _named(name, content, LISTS[:1])}):
        before = {_person(line) for line in signers.allowed(_text(old.get(path)))}
        yield from ((path, line) for line in signers.allowed(_text(new.get(path))) if _person(line) not in before)


def _named(name: str, content: bytes, keys: tuple[str, ...] = LISTS) -> Iterator[str]:
    """Paths, from the top, of the lists that a speclint.toml names."""
    trust = _toml(content).get("trust", {}) if posixpath.basename(name) == SPECLINT else {}
    for key in keys:
        path = trust.get(key) if isinstance(trust, dict) else None
        if isinstance(path, str):
            yield posixpath.normpath(posixpath.join(posixpath.dirname(name), path))


def _tables(path: str, before: bytes | None, after: bytes | None) -> str:
    old, new = (_leaves(_relevant(path, content)) for content in (before, after))
    parts = [
        f"{key}: {old.get(key, 'unset')} before, {new.get(key, 'unset')} now"
        for key in dict.fromkeys([*old, *new])
        if old.get(key) != new.get(key)
    ]
    return _few(parts, "; ")


def _relevant(path: str, content: bytes | None) -> Any:
    data = _toml(content or b"")
    if posixpath.basename(path) == SPECLINT:
        return data
    tool = data.get("tool")
    return {"tool": {"speclint": tool["speclint"]}} if isinstance(tool, dict) and "speclint" in tool else {}


def _toml(content: bytes) -> dict[str, Any]:
    try:
        return tomllib.loads(content.decode("utf-8"))
    except ValueError:
        return {"not readable as TOML": hashlib.sha256(content).hexdigest()[:12]}


def _leaves(value: Any, at: str = "") -> dict[str, str]:
    """Dotted key to value, such as `approvals.min` to `2`."""
    if not isinstance(value, dict):
        return {at: repr(value)}
    return {key: leaf for name, child in value.items() for key, leaf in _leaves(child, f"{at}.{name}".strip(".")).items()}


def _list(before: bytes | None, after: bytes | None) -> str:
    old, new = _people(before), _people(after)
    added, removed = ([line for line in one if line not in other] for one, other in ((new, old), (old, new)))
    parts = [f"{verb} {_few(lines, ', ')}" for verb, lines in (("adds", added), ("removes", removed)) if lines]
    return "; ".join(parts)


def _people(content: bytes | None) -> list[str]:
    """Each line that means something: person, key and options, or the key of a plain list, or the line as it is."""
    if content is not None and b"\0" in content:
        return [f"a binary list (sha256 {hashlib.sha256(content).hexdigest()[:12]}…)"]
    lines = [line.strip() for line in _text(content).split("\n")]
    return [_line_in_words(line) for line in lines if line and not line.startswith("#")]


def _line_in_words(line: str) -> str:
    known = next(signers.allowed(line), None)
    if known:
        return _person(known)
    try:
        return f"key {sshsig.fingerprint(signers.public_key(line))}"
    except signers.Unreadable:
        return f"the line `{line}`"


def _person(signer: signers.Signer) -> str:
    limits = [
        "certificate authority" if signer.authority else "",
        f"for {signer.namespaces}" if signer.namespaces is not None else "for anything",
        f"from {signer.valid_after:%Y-%m-%d %H:%M:%S} UTC" if signer.valid_after else "",
        f"until {signer.valid_before:%Y-%m-%d %H:%M:%S} UTC" if signer.valid_before else "",
    ]
    return f"{signer.principals} (key {sshsig.fingerprint(signer.key)}, {', '.join(filter(None, limits))})"


def _line(before: bytes, after: bytes) -> int:
    """The first line that the old file does not have."""
    known = {line.strip() for line in before.splitlines()}
    return next((number for number, line in enumerate(after.splitlines(), 1) if line.strip() not in known), 1)


def _few(parts: list[str], joint: str) -> str:
    return joint.join(parts[:SHOWN]) + (f" and {len(parts) - SHOWN} more" if len(parts) > SHOWN else "")


def _text(content: bytes | None) -> str:
    return (content or b"").decode("utf-8", "replace")
