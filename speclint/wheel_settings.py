"""`speculative_config` of a release, read from its `SpeculativeConfig` class."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from typing import Any

from speclint.wheel import MISSING, Wheel, keyword, statements, texts
from speclint.wheel_types import json_schema

Json = dict[str, Any]

ARGUMENTS = "vllm.engine.arg_utils"
RANGES = {"gt": "exclusiveMinimum", "ge": "minimum", "lt": "exclusiveMaximum", "le": "maximum"}
REFUSED_BELOW = {ast.Lt: "minimum", ast.LtE: "exclusiveMinimum"}


def config_class(wheel: Wheel) -> tuple[str, ast.ClassDef]:
    """Module and node of `SpeculativeConfig`. Raises ValueError if the wheel has none."""
    found = wheel.find("vllm.config", "SpeculativeConfig")
    if found is None or not isinstance(found.node, ast.ClassDef):
        raise ValueError("not a vLLM wheel from 0.8.2 on: it has no vllm.config.SpeculativeConfig")
    return found.module, found.node


def speculative_schema(wheel: Wheel) -> Json:
    """JSON Schema of `speculative_config`.

    `x-internal` names keys that the engine fills itself, `x-trap` keys that exist only to be refused, `x-validation` is
    `pydantic` (types and ranges enforced, with lax conversion) or `none`, `x-hyphens` says whether hyphens in keys are
    read as underscores. A property's `x-checked` holds ranges that code tests later, `x-any-case` marks names read in any case.
    """
    module, node = config_class(wheel)
    internal = {*_engine_filled(wheel), *_configs(node)}
    properties = {name: _property(wheel, module, node, field) for field, name in fields(node) if name not in internal}
    for name, limits in _checked(node):
        if name in properties:
            properties[name].setdefault("x-checked", {}).update(limits)
    return {
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
        "x-internal": sorted(internal),
        "x-trap": sorted(_traps(node) & properties.keys()),
        "x-validation": "pydantic" if _is_pydantic(wheel, module, node) else "none",
        "x-hyphens": _hyphens(wheel),
    }


def unknown_keys(wheel: Wheel) -> str:
    """`type_error`, `dropped` (without a word) or `refused` (validation error)."""
    module, node = config_class(wheel)
    if not _is_pydantic(wheel, module, node):
        return "type_error"
    decorators = [d.func if isinstance(d, ast.Call) else d for d in node.decorator_list]
    makers = (wheel.find(module, ast.unparse(d)) for d in decorators if ast.unparse(d) != "dataclass")
    sources = [*(m.node for m in makers if m), *node.decorator_list]
    return "refused" if any(re.search(r"extra=['\"]forbid", ast.unparse(n)) for n in sources) else "dropped"


def methods(wheel: Wheel) -> list[str]:
    """Names accepted for `method`; where the field is a plain string, the names that code compares it with."""
    module, node = config_class(wheel)
    field = next(f for f, name in fields(node) if name == "method")
    values = [v for v in json_schema(wheel, module, field.annotation).get("enum", []) if v]
    if values:
        return sorted(values)
    compares = (n for n in ast.walk(node) if isinstance(n, ast.Compare) and own_field(n.left) == "method")
    assigns = (n for n in ast.walk(node) if isinstance(n, ast.Assign) and own_field(n.targets[0]) == "method")
    named = [t for c in compares for part in c.comparators for t in texts(part)]
    return sorted({t for t in (*named, *(t for a in assigns for t in texts(a.value))) if t.isidentifier()})


def method_aliases(wheel: Wheel) -> dict[str, str]:
    """Names that are read as another method (`deepseek_mtp` as `mtp`), from the test that logs the replacement."""
    module, node = config_class(wheel)
    for item in ast.walk(node):
        if isinstance(item, ast.If) and any("deprecated and replaced with" in t for t in texts(ast.Module(item.body, []))):
            named = [v for part in ast.walk(item.test) for v in _named_values(wheel, module, part)]
            new = next(t for s in item.body if isinstance(s, ast.Assign) for t in texts(s.value))
            return dict.fromkeys(sorted(set(named) - {new}), new)
    return {}


def _named_values(wheel: Wheel, module: str, node: ast.AST) -> list[str]:
    if not isinstance(node, ast.Name):
        return []
    found = wheel.lookup(module, node)
    if found is None or not isinstance(found.node, ast.expr):
        return []
    listed = wheel.value(found.module, found.node)
    values = listed if isinstance(listed, list | tuple) else json_schema(wheel, found.module, found.node).get("enum", [])
    return [v for v in values if isinstance(v, str)]


def fields(node: ast.ClassDef) -> Iterator[tuple[ast.AnnAssign, str]]:
    """Annotated fields in their order; class variables, private ones and those not set at construction are left out."""
    for item in node.body:
        if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
            is_hidden = item.target.id.startswith("_") or "ClassVar" in ast.unparse(item.annotation)
            init = keyword(item.value, "init") if isinstance(item.value, ast.Call) else None
            if not is_hidden and not (isinstance(init, ast.Constant) and init.value is False):
                yield item, item.target.id


def default(wheel: Wheel, module: str, node: ast.expr | None) -> Json:
    """`{"default": …}` where the default is a literal that JSON can hold; None is left out, as is what cannot be read."""
    value = wheel.value(module, node)
    try:
        json.dumps(value)
    except TypeError:
        return {}
    return {} if value is None or value is MISSING else {"default": value}


def own_field(node: ast.expr) -> str | None:
    """The field's name if an expression is `self.field`."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self":
        return node.attr
    return None


def _property(wheel: Wheel, module: str, node: ast.ClassDef, field: ast.AnnAssign) -> Json:
    schema = json_schema(wheel, module, field.annotation)
    words = dict(_parsed_fields(node)).get(ast.unparse(field.target))
    if words is not None:
        schema = {"enum": [*(m for m in schema.get("enum", []) if m is not None), *words, None], "x-any-case": True}
    return schema | _limits(wheel, module, field) | default(wheel, module, field.value)


def _limits(wheel: Wheel, module: str, node: ast.AnnAssign) -> Json:
    if not isinstance(node.value, ast.Call):
        return {}
    given = ((word, keyword(node.value, key)) for key, word in RANGES.items())
    return {word: wheel.value(module, value) for word, value in given if value is not None}


def _engine_filled(wheel: Wheel) -> set[str]:
    """Keys that `EngineArgs` adds to the user's dictionary."""
    owner = wheel.find(ARGUMENTS, "EngineArgs")
    calls = (n for n in ast.walk(owner.node) if isinstance(n, ast.Call)) if owner else iter(())
    updates = (c for c in calls if ast.unparse(c.func) == "self.speculative_config.update" and c.args)
    dicts = (c.args[0] for c in updates if isinstance(c.args[0], ast.Dict))
    return {k.value for d in dicts for k in d.keys if isinstance(k, ast.Constant) and isinstance(k.value, str)}


def _configs(node: ast.ClassDef) -> set[str]:
    """Fields that hold another configuration object of the engine's making."""
    return {n for f, n in fields(node) if re.search(r"\b(Model|Parallel)Config\b", ast.unparse(f.annotation))}


def _parsed_fields(node: ast.ClassDef) -> Iterator[tuple[str, list[str]]]:
    """Fields that a validator reads as an enum's member name in any case, with further words it knows."""
    for item in node.body:
        if isinstance(item, ast.FunctionDef) and ".upper()" in ast.unparse(item):
            words = [t for t in texts(ast.Module(item.body, [])) if t.isidentifier()]
            for call in (d for d in item.decorator_list if isinstance(d, ast.Call)):
                if ast.unparse(call.func).endswith("field_validator"):
                    yield from ((str(ast.literal_eval(a)), words) for a in call.args)


def _checked(node: ast.ClassDef) -> Iterator[tuple[str, Json]]:
    """Ranges that methods test themselves: `if self.field < 1: raise`, `if not 0 <= self.field <= 1: raise`."""
    for function in (item for item in node.body if isinstance(item, ast.FunctionDef)):
        for test in _raising(function.body):
            if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not) and isinstance(test.operand, ast.Compare):
                yield from _between(test.operand)
            elif isinstance(test, ast.Compare) and len(test.ops) == 1 and (name := own_field(test.left)):
                word, limit = REFUSED_BELOW.get(type(test.ops[0])), _number(test.comparators[0])
                if word and limit is not None:
                    yield name, {word: limit}


def _raising(body: list[ast.stmt]) -> Iterator[ast.expr]:
    """Tests that raise at once; looked for inside other tests only where those ask for the method or for presence."""
    for item in (s for s in body if isinstance(s, ast.If)):
        parts = item.test.values if isinstance(item.test, ast.BoolOp) else [item.test]
        if isinstance(item.body[0], ast.Raise):
            plain = [part for part in parts if "is not None" not in ast.unparse(part)]
            yield from plain if len(plain) == 1 else []
        elif all(re.search(r"self\.method\b|is not None|prompt_lookup", ast.unparse(part)) for part in parts):
            yield from _raising(item.body)
        yield from _raising(item.orelse)


def _between(compare: ast.Compare) -> Iterator[tuple[str, Json]]:
    if len(compare.ops) == 2 and (name := own_field(compare.comparators[0])):
        limits = {"minimum": _number(compare.left), "maximum": _number(compare.comparators[1])}
        yield name, {word: limit for word, limit in limits.items() if limit is not None}


def _number(node: ast.expr) -> int | float | None:
    value = node.value if isinstance(node, ast.Constant) else None
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _traps(node: ast.ClassDef) -> set[str]:
    """Fields whose mere presence is refused: a method's own statement `if self.field is not None: raise`."""
    functions = (item for item in node.body if isinstance(item, ast.FunctionDef))
    tests = (s.test for f in functions for s in f.body if isinstance(s, ast.If) and isinstance(s.body[0], ast.Raise))
    found = (re.fullmatch(r"self\.(\w+) is not None", ast.unparse(test)) for test in tests)
    return {match[1] for match in found if match}


def _hyphens(wheel: Wheel) -> bool:
    owner = wheel.find(ARGUMENTS, "EngineArgs")
    functions = (f for f in ast.walk(owner.node) if isinstance(f, ast.FunctionDef)) if owner else iter(())
    return any("replace('-', '_')" in ast.unparse(f) for f in functions if f.name == "create_speculative_config")


def _is_pydantic(wheel: Wheel, module: str, node: ast.ClassDef) -> bool:
    names = [ast.unparse(d.func if isinstance(d, ast.Call) else d) for d in node.decorator_list]
    return any(_dataclass_origin(wheel, module, name).startswith("pydantic") for name in names)


def _dataclass_origin(wheel: Wheel, module: str, name: str) -> str:
    """Module that `dataclass` comes from, as a decorator itself or inside vLLM's own decorator of that name."""
    if name == "dataclass":
        return _origin(wheel, module)
    found = wheel.find(module, name)
    is_maker = found is not None and any(
        isinstance(n, ast.Call) and ast.unparse(n.func) == "dataclass" for n in ast.walk(found.node)
    )
    return _origin(wheel, found.module) if found and is_maker else ""


def _origin(wheel: Wheel, module: str) -> str:
    tree = wheel.tree(module)
    imports = (n for n in statements(tree.body if tree else []) if isinstance(n, ast.ImportFrom))
    return next((n.module or "" for n in imports if any((a.asname or a.name) == "dataclass" for a in n.names)), "")
