"""How a key that is missing could be written: the schema's own example of it, on one line."""

from __future__ import annotations

import json
import re
from typing import Any

from speclint.data import spec_schema
from speclint.scalar import plain

LONGEST = 300  # of a line that a reader will copy
BARE = re.compile(r"[A-Za-z][\w./-]*")


def to_add(key: str, schema: dict[str, Any]) -> str:
    """How to write the key and what it stands for; of one too long to copy, which keys it needs."""
    schema = resolved(schema)
    line, about = written(key, schema), schema.get("description", "").split(". ")[0].rstrip(".")
    if "enum" in schema:
        form = f"add `{key}`, {' or '.join(f'`{choice}`' for choice in schema['enum'])}"
    elif line == key or "const" in schema:
        form = f"add `{line}`"
    elif len(line) <= LONGEST:
        form = f"add `{key}`, such as `{line}`"
    else:
        form = f"add `{key}` with {', '.join(schema['required'])}"
    return f"{form}: {about}" if about else form


def written(key: str, schema: dict[str, Any]) -> str:
    """`key: value` with the schema's example as value; the key alone if there is none."""
    value = example(schema)
    return key if value is None else f"{key}: {flow(value)}"


def example(schema: dict[str, Any]) -> Any:
    """The schema's example, or one put together from those of the keys that it requires; None if there is none."""
    schema = resolved(schema)
    if "examples" in schema:
        return schema["examples"][0]
    if "const" in schema:
        return schema["const"]
    parts = {key: example(schema["properties"][key]) for key in schema.get("required", ()) if key in schema.get("properties", {})}
    return parts or None


def resolved(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema that a reference names."""
    name = schema.get("$ref", "").rpartition("/")[2]
    found: dict[str, Any] = spec_schema()["$defs"][name] if name else schema
    return found


def flow(value: Any) -> str:
    """A value as one line of YAML, text without quotes where every reader takes it for text."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {flow(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(flow, value)) + "]"
    bare = isinstance(value, str) and BARE.fullmatch(value) and plain(value) == value
    return value if bare else json.dumps(value, ensure_ascii=False)
