"""Python annotations as JSON Schema."""

from __future__ import annotations

import ast
from typing import Any

from speclint.wheel import Found, Wheel

Json = dict[str, Any]

SIMPLE = {"int": "integer", "float": "number", "bool": "boolean", "str": "string"}
OBJECTS = {"dict", "Dict", "Mapping", "MutableMapping"}
LISTS = {"list", "List", "Sequence", "set", "Set", "frozenset", "Iterable"}
TRANSPARENT = {"SkipValidation", "Annotated", "Required", "NotRequired", "Final", "InitVar"}


def json_schema(wheel: Wheel, module: str, node: ast.expr) -> Json:
    """The JSON Schema of an annotation in `module`; `{}` where it is not a thing that JSON can hold."""
    if isinstance(node, ast.Constant):
        return _constant(wheel, module, node)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return _union([json_schema(wheel, module, side) for side in (node.left, node.right)])
    if isinstance(node, ast.Subscript):
        return _subscript(wheel, module, node)
    if isinstance(node, ast.Name | ast.Attribute):
        return _named(wheel, module, node)
    return {}


def _constant(wheel: Wheel, module: str, node: ast.Constant) -> Json:
    if node.value is None:
        return {"type": "null"}
    return json_schema(wheel, module, ast.parse(node.value, mode="eval").body) if isinstance(node.value, str) else {}


def _named(wheel: Wheel, module: str, node: ast.Name | ast.Attribute) -> Json:
    name = ast.unparse(node).rsplit(".", 1)[-1]
    if name in SIMPLE:
        return {"type": SIMPLE[name]}
    if name in OBJECTS or name in LISTS:
        return {"type": "object" if name in OBJECTS else "array"}
    found = wheel.lookup(module, node)
    if found is None:
        return {}
    if isinstance(found.node, ast.ClassDef):
        return _class(wheel, found)
    return json_schema(wheel, found.module, found.node) if isinstance(found.node, ast.expr) else {}


def _class(wheel: Wheel, found: Found) -> Json:
    """An enum is its members' names, a configuration class an object, anything else not JSON."""
    assert isinstance(found.node, ast.ClassDef)
    bases = [ast.unparse(base) for base in found.node.bases]
    members = [t.id for n in found.node.body if isinstance(n, ast.Assign) for t in n.targets if isinstance(t, ast.Name)]
    if any("Enum" in base for base in bases):
        is_text = any(base.startswith(("str", "StrEnum")) for base in bases)
        values = [wheel.attribute(found, m) for m in members] if is_text else members
        return {"enum": [v for v in values if isinstance(v, str) and not v.startswith("__")]}
    return {"type": "object"} if found.node.name.endswith("Config") else {}


def _subscript(wheel: Wheel, module: str, node: ast.Subscript) -> Json:
    outer = ast.unparse(node.value).rsplit(".", 1)[-1]
    inner = list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]
    if outer == "Literal":
        return {"enum": [value for part in inner for value in _literals(wheel, module, part)]}
    if outer in {"Optional", "Union"}:
        parts = [json_schema(wheel, module, part) for part in inner]
        return _union([*parts, {"type": "null"}] if outer == "Optional" else parts)
    if outer in TRANSPARENT:
        return json_schema(wheel, module, inner[0])
    if outer in LISTS:
        items = json_schema(wheel, module, inner[0])
        return {"type": "array", "items": items} if items else {"type": "array"}
    if outer in {"tuple", "Tuple"}:
        return _tuple(wheel, module, inner)
    return {"type": "object"} if outer in OBJECTS else {}


def _tuple(wheel: Wheel, module: str, inner: list[ast.expr]) -> Json:
    if len(inner) == 2 and isinstance(inner[1], ast.Constant) and inner[1].value is Ellipsis:
        return {"type": "array", "items": json_schema(wheel, module, inner[0])}
    prefix = [json_schema(wheel, module, part) for part in inner]
    return {"type": "array", "prefixItems": prefix, "minItems": len(prefix), "maxItems": len(prefix)}


def _literals(wheel: Wheel, module: str, node: ast.expr) -> list[Any]:
    """Members of a `Literal`, those of other literals named in it included."""
    if isinstance(node, ast.Constant):
        return [node.value]
    return list(json_schema(wheel, module, node).get("enum", []))


def _union(parts: list[Json]) -> Json:
    """One schema for several: types merged, values of an enum swallowed by a plain string beside them."""
    if any(not part for part in parts):
        return {}
    flat = [alternative for part in parts for alternative in part.get("anyOf", [part])]
    types = _distinct(t for p in flat if set(p) == {"type"} for t in _as_list(p["type"]))
    values = _distinct(v for p in flat if "enum" in p for v in p["enum"])
    others = [p for p in flat if "enum" not in p and set(p) != {"type"}]
    if "string" in types:
        values = [v for v in values if not isinstance(v, str)]
    if values and set(types) <= {"null"} and not others:
        return {"enum": [*values, *([None] if "null" in types and None not in values else [])]}
    alternatives = others + ([{"enum": values}] if values else []) + ([_typed(types)] if types else [])
    return alternatives[0] if len(alternatives) == 1 else {"anyOf": alternatives}


def _typed(types: list[str]) -> Json:
    return {"type": types[0] if len(types) == 1 else types}


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _distinct(values: Any) -> list[Any]:
    return list(dict.fromkeys(values))
