"""Credentials: how they are told by name and by form, and the same text or data without them.

Replaced are: the value of a field with a credential's name, the user in a URL, tokens of well-known form, and, wherever
it stands, every value that this process's environment holds under a credential's name.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

MASK = "redacted"
# Repetitions are bounded, so that no text takes time that grows with its square.
SHORTEST = 8  # characters of an environment value that is looked for; a shorter one would be found in anything
NAMES = (
    r"[\w-]{0,40}(?:(?:hf|hub|auth|access|api|bearer|session|refresh)[_-]?token|api[_-]?keys?|access[_-]?key(?:[_-]?id)?|"
    r"secret(?:[_-]\w{0,20}key)?|passw(?:or)?d|passphrase|private[_-]?key|credentials?|authorization|cookie)"
)
NAME = re.compile(rf"token|{NAMES}", re.IGNORECASE)
VARIABLE = re.compile(r"\w*(?:TOKEN|KEY|KEY_ID|SECRET|PASSWO?R?D|PASSPHRASE|CREDENTIALS?|AUTH)", re.IGNORECASE)
NAMED = re.compile(
    rf"""(?P<name>\b{NAMES}["']?\s*[:=]\s*|--{NAMES}(?:=|\s+))"""
    r"""(?!None\b|null\b|""|'')(?:\[[^\]]{0,4000}\]|"[^"]{0,4000}"|'[^']{0,4000}'|(?:Bearer|Basic)\s+\S+|[^\s,;)}\]"']+)""",
    re.IGNORECASE,
)
USER_OF_URL = re.compile(r"""(?<=://)[^\s/@"']+(?=@)""")
FORMS = re.compile(
    r"\b(?:hf_|gh[opsur]_|github_pat_|glpat-|xox[abprs]-|sk-)[A-Za-z0-9_-]{16,}|\b(?:AKIA|ASIA)[A-Z0-9]{16}\b|"
    r"(?<=[Bb]earer )[A-Za-z0-9._~+/=-]{8,}|-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)",
    re.DOTALL,
)


def masked(text: str, environment: Mapping[str, str] = os.environ) -> str:
    """The text without credentials, those of the environment included."""
    for value in sorted(_values(environment), key=len, reverse=True):
        text = text.replace(value, MASK)
    return without(text)


def without(text: str) -> str:
    """The text without what has the name or form of a credential; depends on the text alone."""
    return USER_OF_URL.sub(MASK, FORMS.sub(MASK, NAMED.sub(rf"\g<name>{MASK}", text)))


def is_credential(name: str, text: str) -> bool:
    """Whether a field of this name with this text is or holds a credential."""
    return bool(text) and (bool(NAME.fullmatch(name)) or without(text) != text)


def redacted(value: Any) -> Any:
    """The same document without credentials, keys untouched."""
    if isinstance(value, dict):
        return {key: _hidden(inner) if _is_name(key) else redacted(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [redacted(inner) for inner in value]
    return masked(value) if isinstance(value, str) else value


def _hidden(value: Any) -> Any:
    """A field with a credential's name: all its text is one."""
    if isinstance(value, dict):
        return {key: _hidden(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_hidden(inner) for inner in value]
    return MASK if isinstance(value, str) and value else value


def _is_name(key: Any) -> bool:
    return isinstance(key, str) and bool(NAME.fullmatch(key))


def _values(environment: Mapping[str, str]) -> set[str]:
    return {value for name, value in environment.items() if VARIABLE.fullmatch(name) and len(value) >= SHORTEST}
