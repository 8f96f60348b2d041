"""Plain scalars: the YAML 1.2 core values that every reader agrees on, and a reason for each that readers do not."""

from __future__ import annotations

import re
from typing import NamedTuple

CONSTANTS: dict[str, bool | None] = {
    "": None,
    "~": None,
    **dict.fromkeys(("null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]{0,299})")
DECIMAL = re.compile(r"[-+]?((0|[1-9][0-9]*)\.[0-9]*([eE][-+][0-9]+)?|\.[0-9]+)")
SWITCHES = frozenset("yes Yes YES no No NO on On ON off Off OFF".split())
LOOKS_NUMERIC = re.compile(r"[-+]?\.?[0-9]")
LONGEST = 80  # a digest with its prefix is 71
NOT_FINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")

# of scalars that are in doubt: compiled when one is met
DATE = r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([Tt \t].*)?"
EXPONENT = r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)[eE][-+]?[0-9]+"
DIGITS = r"[-+]?[0-9]+(\.[0-9]*)?"
UNDERSCORED = r"(?i:[-+]?[0-9.][0-9_.]*(e[-+]?[0-9_]+)?)"
SEXAGESIMAL = r"[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?"
BASED = r"(?i:[-+]?0([xob])[0-9a-f_]*)"


class NotPlain(NamedTuple):
    """Why readers do not agree on a scalar, and what to write instead."""

    why: str
    help: str


def plain(text: str) -> str | int | float | bool | NotPlain | None:
    """Value of a plain (unquoted) scalar, or why it must not be left unquoted."""
    if text in CONSTANTS:
        return CONSTANTS[text]
    if text in SWITCHES:
        value = "true" if text.lower() in ("yes", "on") else "false"
        why = "YAML 1.1 readers take it for true or false, YAML 1.2 readers for text"
        return NotPlain(why, f"write {value}, or {_quoted(text)}")
    if text in ("=", "<<"):
        return NotPlain("it has a meaning of its own in YAML 1.1", _quoted(text))
    if NOT_FINITE.fullmatch(text):
        return NotPlain("infinity and nan are not values of a spec", "write a number, or quote the text")
    return _number(text) if LOOKS_NUMERIC.match(text) else text


def _number(text: str) -> str | int | float | NotPlain:
    if INTEGER.fullmatch(text):
        return int(text)
    if DECIMAL.fullmatch(text) and abs(value := float(text)) != float("inf"):
        return value
    why = _why(text)
    return NotPlain(why, _quoted(text)) if why else text


def _why(text: str) -> str | None:
    if re.fullmatch(DATE, text):
        return "YAML 1.1 readers and many others take it for a date"
    if re.fullmatch(EXPONENT, text):
        return _exponent(text)
    if re.fullmatch(DIGITS, text):
        return "leading zeros are lost or read as octal" if len(text) < 300 else "too long for a number"
    if re.fullmatch(SEXAGESIMAL, text):
        return "YAML 1.1 readers take it for a number in base 60"
    if re.fullmatch(BASED, text):
        return "readers differ on hexadecimal, octal and binary"
    return "readers differ on underscores in numbers" if "_" in text and re.fullmatch(UNDERSCORED, text) else None


def _exponent(text: str) -> str:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        return "YAML 1.2 readers take it for infinity, YAML 1.1 readers for text"
    return f"YAML 1.2 readers take it for {value:g}, YAML 1.1 readers for text"


def _quoted(text: str) -> str:
    way_out = quoted(text)
    if re.fullmatch(UNDERSCORED, text) and INTEGER.fullmatch(number := text.replace("_", "")):
        return f"write {number}, or {way_out} if it is text"
    return f"{way_out}, or write a plain decimal" if re.fullmatch(EXPONENT, text) else way_out


def quoted(text: str) -> str:
    """How to write an unquoted value that is meant as text; whole, so that it can be pasted."""
    return f'quote it: "{text}"' if len(text) <= LONGEST else "quote it"


def short(text: str) -> str:
    """The text, cut to what fits in a message."""
    return text if len(text) <= 60 else text[:57] + "..."
