"""Whether data has the schema's shape: yes or no, without jsonschema.

Most files are valid, and importing jsonschema takes longer than all the rest of a check. Only the keywords that the schema
uses are known here; another one raises KeyError. A test holds every answer against jsonschema's.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

Json = dict[str, Any]

KINDS: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "null": (type(None),),
    "number": (int, float),
    "integer": (int,),
}
ALLOW_ALL = frozenset(
    (
        *("$schema", "$id", "$defs", "title", "description", "default", "examples"),
        *("x-also", "x-kind", "x-unit", "x-better", "x-requests", "x-vllm"),
    )
)


def fits(data: Any, schema: Json) -> bool:
    """Whether `data` is valid under `schema`, a JSON Schema whose references are all `#/$defs/NAME`."""
    return _fits(data, schema, schema["$defs"])


def _fits(data: Any, schema: Json, named: Json) -> bool:
    return all(CHECKS[word](data, wanted, schema, named) for word, wanted in schema.items() if word not in ALLOW_ALL)


def is_kind(data: Any, kind: str) -> bool:
    """JSON Schema takes 3.0 for a whole number; whoever reads it with Python's `int` in mind does not, so it is none here."""
    return kind == "boolean" if isinstance(data, bool) else isinstance(data, KINDS[kind])


def _is_number(data: Any) -> bool:
    return isinstance(data, int | float) and not isinstance(data, bool)


def _same(a: Any, b: Any) -> bool:
    """Equality of JSON: 1 is 1.0, and true is not 1. The schema's own values are scalars."""
    return a == b and isinstance(a, bool) is isinstance(b, bool)


def _type(data: Any, wanted: Any, schema: Json, named: Json) -> bool:
    return any(is_kind(data, kind) for kind in ([wanted] if isinstance(wanted, str) else wanted))


def _properties(data: Any, wanted: Json, schema: Json, named: Json) -> bool:
    return not isinstance(data, dict) or all(_fits(data[key], wanted[key], named) for key in wanted.keys() & data.keys())


def _additional(data: Any, wanted: Any, schema: Json, named: Json) -> bool:
    if not isinstance(data, dict):
        return True
    others = data.keys() - schema.get("properties", {}).keys()
    return not others if wanted is False else all(_fits(data[key], wanted, named) for key in others)


def _unique(data: Any, wanted: bool, schema: Json, named: Json) -> bool:
    """The lists that this is asked of hold scalars; anything else in them is not valid in the first place."""
    if not isinstance(data, list):
        return True
    scalars = [(isinstance(item, bool), item) for item in data if not isinstance(item, dict | list)]
    return len(set(scalars)) == len(scalars)


CHECKS: dict[str, Callable[[Any, Any, Json, Json], bool]] = {
    "type": _type,
    "properties": _properties,
    "additionalProperties": _additional,
    "uniqueItems": _unique,
    "$ref": lambda data, wanted, _, named: _fits(data, named[wanted.removeprefix("#/$defs/")], named),
    "required": lambda data, wanted, *_: not isinstance(data, dict) or all(key in data for key in wanted),
    "items": lambda data, wanted, _, named: not isinstance(data, list) or all(_fits(item, wanted, named) for item in data),
    "oneOf": lambda data, wanted, _, named: sum(_fits(data, branch, named) for branch in wanted) == 1,
    "not": lambda data, wanted, _, named: not _fits(data, wanted, named),
    "const": lambda data, wanted, *_: _same(data, wanted),
    "enum": lambda data, wanted, *_: any(_same(data, value) for value in wanted),
    "pattern": lambda data, wanted, *_: not isinstance(data, str) or re.search(wanted, data) is not None,
    "minLength": lambda data, wanted, *_: not isinstance(data, str) or len(data) >= wanted,
    "minItems": lambda data, wanted, *_: not isinstance(data, list) or len(data) >= wanted,
    "maxItems": lambda data, wanted, *_: not isinstance(data, list) or len(data) <= wanted,
    "minProperties": lambda data, wanted, *_: not isinstance(data, dict) or len(data) >= wanted,
    "minimum": lambda data, wanted, *_: not _is_number(data) or data >= wanted,
    "maximum": lambda data, wanted, *_: not _is_number(data) or data <= wanted,
    "exclusiveMinimum": lambda data, wanted, *_: not _is_number(data) or data > wanted,
    "exclusiveMaximum": lambda data, wanted, *_: not _is_number(data) or data < wanted,
}
"""What each keyword asks of data: its value, the schema that it stands in, and the schemas that have names."""
