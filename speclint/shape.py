"""The schema's findings (SL101-SL105, and SL004 where a number stands for text), every one, in words of ours."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from itertools import islice
from typing import Any, NamedTuple

from speclint.data import spec_schema
from speclint.diagnostic import Finding, pointer
from speclint.document import Document
from speclint.fast_shape import fits
from speclint.scalar import short

WORDS = {
    "object": "a mapping",
    "array": "a list",
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "null": "nothing",
}
BOUNDS = {
    "minimum": "at least {}",
    "maximum": "at most {}",
    "exclusiveMinimum": "above {}",
    "exclusiveMaximum": "below {}",
    "minItems": "{} items at least",
    "maxItems": "{} items at most",
    "minLength": "{} characters at least",
    "minProperties": "{} keys at least",
}


class ShapeFinding(NamedTuple):
    """A finding with its code: one check yields several rules' findings."""

    code: str
    finding: Finding


MOST = 200  # findings a file; a file with more is no spec with mistakes in it


def check(document: Document) -> list[ShapeFinding]:
    """Every place where the data is not what the schema says, each once; of more than `MOST`, the first ones."""
    if fits(document.data, spec_schema()):
        return []
    known = {problem.path for problem in document.problems if problem.path}
    errors = _validator().iter_errors(document.data)
    found = dict.fromkeys(islice((item for error in errors for item in _of(error, document)), MOST))
    return [item for item in found if item.finding.path not in known]


@cache
def _validator() -> Any:
    # imported for files that need it: it takes longer than everything else together
    from jsonschema import Draft202012Validator

    return Draft202012Validator(spec_schema())


def did_you_mean(word: str, words: Iterable[str]) -> str:
    """`did you mean …?`, or nothing if no word is near."""
    from difflib import get_close_matches

    near = get_close_matches(word, list(words), n=1, cutoff=0.6)
    return f"did you mean `{near[0]}`?" if near else ""


def one_of(words: Iterable[Any]) -> str:
    """`a`, `b` or `c`."""
    shown = [f"`{word}`" for word in words]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} or {shown[-1]}"


def _of(error: Any, document: Document) -> Iterator[ShapeFinding]:
    path = pointer(*error.absolute_path)
    say = _SAY.get(error.validator, _other)
    yield from say(error, path, document)


def _unknown(error: Any, path: str, document: Document) -> Iterator[ShapeFinding]:
    known = error.schema.get("properties", {})
    for key in error.instance:
        if key in known:
            continue
        help = did_you_mean(key, [name for name in known if name not in error.instance])
        help = help or f"known here: {', '.join(known)}"
        yield _shape("SL101", path + pointer(key), f"unknown key `{short(key)}`", help, on_key=True)


def _missing(error: Any, path: str, document: Document) -> Iterator[ShapeFinding]:
    known = error.schema.get("properties", {})
    for key in error.validator_value:
        if key not in error.instance:
            help = _to_add(key, _resolve(known.get(key, {})))
            yield _shape("SL102", path, f"{_named(path)} lacks `{key}`", help, on_key=True)


def _to_add(key: str, schema: dict[str, Any]) -> str:
    """How to write a key that is missing, and what it stands for."""
    choices = schema.get("enum") or ([schema["const"]] if "const" in schema else [])
    form = f"add `{key}`, {one_of(choices)}" if choices else f"add `{key}`"
    return ": ".join(filter(None, (form, _about(schema))))


def _type(error: Any, path: str, document: Document) -> Iterator[ShapeFinding]:
    allowed = error.validator_value if isinstance(error.validator_value, list) else [error.validator_value]
    wanted = " or ".join(WORDS[name] for name in allowed)
    written = _written(document, path)
    value = error.instance
    if "string" in allowed and isinstance(value, (bool, int, float)):
        kind = "the truth value" if isinstance(value, bool) else "the number"
        message = f"`{short(written)}` is read as {kind} {value}, not as text"
        yield _shape("SL004", path, message, f'quote it: "{short(written)}"')
        return
    yield _shape("SL103", path, f"expected {wanted}, found {_kind(value)}", _about(error.schema))


def _choice(error: Any, path: str, document: Document) -> Iterator[ShapeFinding]:
    allowed = error.validator_value if error.validator == "enum" else [error.validator_value]
    help = did_you_mean(str(error.instance), map(str, allowed)) or _about(error.schema)
    yield _shape("SL104", path, f"{_value(error.instance)} is not allowed; expected {one_of(allowed)}", help)


def _pattern(error: Any, path: str, document: Document) -> Iterator[ShapeFinding]:
    message = f"{_value(error.instance)} does not have the form {error.validator_value}"
    yield _shape("SL104", path, message, _about(error.schema))


def _bound(error: Any, path: str, document: Document) -> Iterator[ShapeFinding]:
    wanted = BOUNDS[error.validator].format(error.validator_value)
    yield _shape("SL105", path, f"{_value(error.instance)} is out of range: {wanted}", _about(error.schema))


def _repeated(error: Any, path: str, document: Document) -> Iterator[ShapeFinding]:
    yield _shape("SL105", path, "an item stands twice in this list", "remove one of the two")


def _branches(error: Any, path: str, document: Document) -> Iterator[ShapeFinding]:
    branches = error.validator_value
    if all("const" in branch for branch in branches):
        names = [branch["const"] for branch in branches]
        help = did_you_mean(str(error.instance), names) or f"known: {', '.join(names)}"
        yield _shape("SL104", path, f"{_value(error.instance)} is not a {error.schema.get('title', 'value').lower()}", help)
    elif all("required" in branch for branch in branches):
        if isinstance(error.instance, dict):  # another type is an error of its own
            yield _either(error.instance, branches, path)
    else:
        wanted = " or ".join(_branch(branch) for branch in branches)
        yield _shape("SL104", path, f"{_value(error.instance)} is not allowed; expected {wanted}", _about(error.schema))


def _either(instance: dict[str, Any], branches: list[dict[str, Any]], path: str) -> ShapeFinding:
    heads = [branch["required"][0] for branch in branches]
    given = [head for head in heads if head in instance]
    if len(given) > 1:
        return _shape("SL104", path, f"{one_of(given).replace(' or ', ' and ')} exclude each other", "keep one")
    for branch in branches:
        lacking = [key for key in branch["required"] if key not in instance]
        if branch["required"][0] in given and lacking:
            return _shape("SL102", path, f"`{given[0]}` needs {one_of(lacking)} beside it", "", on_key=True)
    return _shape("SL102", path, f"one of {one_of(heads)} is needed", "", on_key=True)


def _branch(branch: dict[str, Any]) -> str:
    branch = _resolve(branch)
    if "const" in branch:
        return f"`{branch['const']}`"
    bounds = [BOUNDS[name].format(branch[name]) for name in BOUNDS if name in branch]
    return ", ".join([WORDS.get(branch.get("type", ""), "a value"), *bounds])


def _other(error: Any, path: str, document: Document) -> Iterator[ShapeFinding]:
    yield _shape("SL104", path, f"{_value(error.instance)} is not allowed here", _about(error.schema))


_SAY = {
    "additionalProperties": _unknown,
    "required": _missing,
    "type": _type,
    "enum": _choice,
    "const": _choice,
    "pattern": _pattern,
    "uniqueItems": _repeated,
    "oneOf": _branches,
    **dict.fromkeys(BOUNDS, _bound),
}


def _shape(code: str, path: str, message: str, help: str, on_key: bool = False) -> ShapeFinding:
    return ShapeFinding(code, Finding(path, message, help, on_key=on_key))


def _resolve(schema: dict[str, Any]) -> dict[str, Any]:
    name = schema.get("$ref", "").rpartition("/")[2]
    resolved: dict[str, Any] = spec_schema()["$defs"][name] if name else schema
    return resolved


def _about(schema: dict[str, Any]) -> str:
    return str(schema.get("description", ""))


def _named(path: str) -> str:
    """The place in words: a key, or an item of a list."""
    parent, _, key = path.rpartition("/")
    if not path:
        return "the file"
    return f"item {int(key) + 1} of `{parent.rpartition('/')[2]}`" if key.isdecimal() else f"`{key}`"


def _written(document: Document, path: str) -> str:
    node = document.nodes.get(path)
    return document.text[node.start : node.end] if node else ""


def _value(value: Any) -> str:
    return _kind(value) if isinstance(value, (dict, list)) else f"`{short(str(value))}`"


def _kind(value: Any) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    kind = "true or false" if isinstance(value, bool) else "a number" if isinstance(value, (int, float)) else "text"
    return f"{kind} (`{short(str(value))}`)"
