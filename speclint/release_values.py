"""Would a release take these settings and arguments? Keys, types, lists and ranges only, no rule between two settings."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping
from typing import Any

from speclint.releases import Release

Json = dict[str, Any]

TRUTH = {"0", "off", "f", "false", "n", "no", "1", "on", "t", "true", "y", "yes"}
LIMITS: dict[str, Callable[[Any, Any], bool]] = {
    "minimum": operator.ge,
    "exclusiveMinimum": operator.gt,
    "maximum": operator.le,
    "exclusiveMaximum": operator.lt,
}


def refusals(release: Release, settings: Mapping[str, Any]) -> dict[str, str]:
    """Each setting that the release refuses when it reads the dictionary, with the reason in a few words.

    Unknown keys count only where the release refuses them; values only where it validates them, with its own lax
    conversions ("3" is an integer, 1 is true).
    """
    schema = release.raw["speculative_config"]
    found: dict[str, str] = {}
    for key, value in settings.items():
        name = key.replace("-", "_") if schema["x-hyphens"] else key
        if name not in schema["properties"]:
            if name not in schema["x-internal"] and release.unknown_keys != "dropped":
                found[key] = "unknown key"
        elif schema["x-validation"] == "pydantic" and (reason := _refused(schema["properties"][name], value)):
            found[key] = reason
    return found


def is_choice(value: Any, schema: dict[str, Any]) -> bool:
    """Whether an engine argument may have the value, as far as its schema lists them."""
    by_number = isinstance(value, int) and isinstance(schema.get("default"), int)  # an IntEnum, listed by its names
    if "enum" not in schema or value in schema["enum"] or by_number:
        return True
    members = [str(member) for member in schema["enum"] if member is not None]
    any_case = schema.get("x-any-case") or all(member.isupper() for member in members)  # names of an Enum class
    return bool(any_case) and str(value).upper() in [member.upper() for member in members]


def _refused(schema: Json, value: Any) -> str | None:
    if "anyOf" in schema:
        reasons = [_refused(alternative, value) for alternative in schema["anyOf"]]
        return reasons[0] if all(reasons) else None
    if "enum" in schema:
        return None if _is_member(schema, value) else "not one of the values allowed"
    if "type" not in schema or (value is None and "null" in _kinds(schema)):
        return None
    read = next((r for kind in _kinds(schema) if (r := _read(kind, value)) is not None), None)
    if read is None:
        return f"not {' or '.join(_kinds(schema))}"
    return _out_of_range(schema, read) or _bad_item(schema, read)


def _kinds(schema: Json) -> list[str]:
    kind = schema["type"]
    return kind if isinstance(kind, list) else [kind]


def _is_member(schema: Json, value: Any) -> bool:
    values = schema["enum"]
    if schema.get("x-any-case") and isinstance(value, str):
        return value.upper() in {v.upper() for v in values if v is not None}
    return any(value == member and type(value) is type(member) for member in values)


def _read(kind: str, value: Any) -> Any:
    """The value as pydantic's lax mode reads it for a JSON type, or None."""
    if kind == "string":
        return value if isinstance(value, str) else None
    if kind == "boolean":
        return _boolean(value)
    if kind == "integer":
        return _integer(value)
    if kind == "number":
        return _number(value)
    expected = {"array": list, "object": dict}.get(kind)
    return value if expected and isinstance(value, expected) else None


def _boolean(value: Any) -> bool | None:
    if isinstance(value, str):
        return True if value.lower() in TRUTH else None
    return bool(value) if isinstance(value, int | float) and value in (0, 1) else None


def _integer(value: Any) -> int | None:
    if isinstance(value, str):
        match = re.fullmatch(r"([+-]?\d+(?:_\d+)*)(?:\.0*)?", value.strip())
        return int(match[1]) if match else None
    return int(value) if isinstance(value, int | float) and math.isfinite(value) and value == int(value) else None


def _number(value: Any) -> float | None:
    try:
        return float(value) if isinstance(value, int | float | str) else None
    except ValueError:
        return None


def _out_of_range(schema: Json, value: Any) -> str | None:
    broken = (word for word, holds in LIMITS.items() if word in schema and not holds(value, schema[word]))
    return next((f"{word} is {schema[word]}" for word in broken), None)


def _bad_item(schema: Json, value: Any) -> str | None:
    if not isinstance(value, list):
        return None
    if len(value) < schema.get("minItems", 0) or len(value) > schema.get("maxItems", len(value)):
        return f"not {schema['minItems']} items"
    shapes = schema.get("prefixItems") or [schema.get("items", {})] * len(value)
    return next((r for shape, item in zip(shapes, value, strict=False) if (r := _refused(shape, item))), None)
