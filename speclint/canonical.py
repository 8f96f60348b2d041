"""The bytes that are hashed and signed: RFC 8785, and the digests made of them.

In RFC 8785 `1` and `1.0` are the same bytes, and so are `0.0` and `-0.0`: how a number is spelled in the YAML never
changes a digest, only its value does.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import rfc8785

DIGESTED = ("schema", "name", "pair", "protocol", "lock")


class NotCanonical(ValueError):
    """A value has no RFC 8785 form; `pointer` is the JSON Pointer of the value at fault."""

    def __init__(self, pointer: str, reason: str) -> None:
        super().__init__(f"{pointer or '/'}: {reason}")
        self.pointer = pointer
        self.reason = reason


def canonical(value: Any) -> bytes:
    """RFC 8785 bytes of plain data. Raises NotCanonical for integers beyond ±(2^53 − 1), nan, inf, dates, odd keys."""
    try:
        return rfc8785.dumps(value)
    except ValueError as error:
        pointer = next(_at_fault(value, ""), "")
        raise NotCanonical(pointer, str(error)) from error


def digest(value: Any) -> str:
    """`sha256:` and the hexadecimal sha256 of the RFC 8785 bytes."""
    return "sha256:" + hashlib.sha256(canonical(value)).hexdigest()


def spec_digest(data: Mapping[str, Any]) -> str:
    """Digest of what an approval or a result is for: schema, name, pair, protocol and, once it is there, lock."""
    return digest({key: data[key] for key in DIGESTED if key in data})


def section_digests(data: Mapping[str, Any]) -> dict[str, str]:
    """Digest of each section, so that a stale approval can say which one changed. An absent section counts as null."""
    protocol = data.get("protocol")
    judged = protocol if isinstance(protocol, dict) else {}
    return {
        "pair": digest(data.get("pair")),
        "protocol": digest(protocol),
        "criteria": digest({key: judged.get(key) for key in ("criteria", "confidence")}),
        "lock": digest(data.get("lock")),
    }


def entry_digest(entry: Mapping[str, Any]) -> str:
    """Digest of an approval or result without its `signature`: signing again leaves it as it is."""
    return digest(unsigned(entry))


def unsigned(entry: Mapping[str, Any]) -> dict[str, Any]:
    """The entry as it is signed: all of it except `signature`."""
    return {key: value for key, value in entry.items() if key != "signature"}


def heads(results: Iterable[Mapping[str, Any]]) -> list[str]:
    """Digests of the results that no other one names in `previous`: what the next result names, in file order."""
    entries = list(results)
    named = {before for entry in entries for before in entry.get("previous", [])}
    return [own for own in map(entry_digest, entries) if own not in named]


def rounded(x: float) -> float:
    """To 6 significant digits, ties of the exact binary value to even; the figure that is stored, judged and signed."""
    return float(f"{x:.5e}") + 0.0


def _at_fault(value: Any, pointer: str) -> Iterator[str]:
    """Pointers of the innermost values that RFC 8785 cannot hold, in document order."""
    children = _children(value)
    inner = [at for step, child in children for at in _at_fault(child, f"{pointer}/{_escaped(step)}")]
    yield from inner
    if not inner and not _holds(value):
        yield pointer


def _children(value: Any) -> list[tuple[str, Any]]:
    if isinstance(value, dict):
        return [(str(key), child) for key, child in value.items()]
    return [(str(index), child) for index, child in enumerate(value)] if isinstance(value, list) else []


def _holds(value: Any) -> bool:
    try:
        rfc8785.dumps(value)
    except ValueError:
        return False
    return True


def _escaped(step: str) -> str:
    return step.replace("~", "~0").replace("/", "~1")
