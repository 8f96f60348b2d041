"""The YAML that the tools write: one fixed shape that every YAML reader, 1.1 or 1.2, reads back as it was meant.

Strings are double-quoted with JSON's escapes and never wrapped, numbers are spelled so that 1.1 and 1.2 agree, a list
of rows has one row a line, and a signature is a literal block as `ssh-keygen` printed it.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any

WIDTH = 120
PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
READ_AS_OTHER = {"y", "n", "yes", "no", "on", "off", "true", "false", "null"}
# Printable for JSON, but a line break, a byte order mark or not allowed at all for YAML.
YAML_ONLY = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
ARMOUR = re.compile(r"(?:[!-~][ -~]*\n)+")


def section(key: str, value: Any) -> str:
    """`key: value` as a top-level block of lines that end in `\\n`."""
    return "".join(line + "\n" for line in _pair(key, value))


def entry(value: dict[str, Any], indent: int = 2) -> str:
    """One item of a block sequence whose dash stands at column `indent`; lines end in `\\n`."""
    return "".join(" " * indent + line + "\n" for line in _item(value))


def scalar(value: Any) -> str:
    """One scalar, spelled so that it reads back the same. Raises ValueError for nan and inf, TypeError for other types."""
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    if type(value) is int:
        return str(value)
    if type(value) is float:
        return _number(value)
    if type(value) is str:
        quoted = json.dumps(value, ensure_ascii=False)
        return YAML_ONLY.sub(lambda match: f"\\u{ord(match.group()):04x}", quoted)
    raise TypeError(f"not plain data: {type(value).__name__}")


def _number(value: float) -> str:
    if not math.isfinite(value):
        raise ValueError(f"{value} cannot be stored: no reader of the file would accept it")
    mantissa, e, exponent = repr(value).partition("e")
    # YAML 1.1 reads `1e-07` as a string; with a point in it, both versions read a number.
    return mantissa + (".0" if e and "." not in mantissa else "") + e + exponent


def _pair(name: str, value: Any) -> list[str]:
    key = _key(name)
    if name == "signature" and isinstance(value, str) and ARMOUR.fullmatch(value):
        return [f"{key}: |", *("  " + line for line in value.splitlines())]
    if _on_one_line(value):
        return [f"{key}: {_flow(value)}"]
    return [f"{key}:", *("  " + line for line in _block(value))]


def _block(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [line for key, child in value.items() for line in _pair(key, child)]
    return [line for child in value for line in _item(child)]


def _item(value: Any) -> list[str]:
    # A row of a table stays on its line however long it is; any other collection is a block.
    row = isinstance(value, list) and all(_is_scalar(child) for child in value)
    if row or not value or _is_scalar(value):
        return ["- " + _flow(value)]
    first, *rest = _block(value)
    return ["- " + first, *("  " + line for line in rest)]


def _on_one_line(value: Any) -> bool:
    if _is_scalar(value) or not value:
        return True
    return isinstance(value, list) and all(_is_scalar(child) for child in value) and len(_flow(value)) <= WIDTH


def _flow(value: Any) -> str:
    if isinstance(value, dict):
        return "{}"
    return "[" + ", ".join(scalar(child) for child in value) + "]" if isinstance(value, list) else scalar(value)


def _key(name: str) -> str:
    plain = PLAIN_KEY.fullmatch(name) and name.lower() not in READ_AS_OTHER
    return name if plain else scalar(name)


def _is_scalar(value: Any) -> bool:
    return not isinstance(value, dict | list)
