"""Where the published schemas and the release data lie."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any


@cache
def schemas_path() -> Path:
    """Folder of the JSON Schemas; inside the installed package, or `schemas/` of a checkout."""
    inside = Path(__file__).parent / "schemas"
    return inside if inside.is_dir() else Path(__file__).parent.parent / "schemas"


@cache
def spec_schema() -> dict[str, Any]:
    """The JSON Schema of `pair-spec/v1`."""
    schema: dict[str, Any] = json.loads((schemas_path() / "spec.schema.json").read_text(encoding="utf-8"))
    return schema


@cache
def metrics() -> dict[str, dict[str, Any]]:
    """Each metric of the schema's closed list: name to kind, unit, better side, definition, `requests` that a percentile needs
    in a window (None if it is none), and `vllm`, what `vllm bench serve` has under the nearest name.
    """
    return {
        row["const"]: {
            "kind": row["x-kind"],
            "unit": row["x-unit"],
            "better": row["x-better"],
            "definition": row["description"],
            "requests": row.get("x-requests"),
            "vllm": row["x-vllm"],
        }
        for row in spec_schema()["$defs"]["metric"]["oneOf"]
    }
