"""The schema's findings (SL101-SL105, and SL004 where a number stands for text), every one, in words of ours."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import islice
from typing import Any, NamedTuple

from speclint.canonical import NotCanonical, spec_digest
from speclint.data import spec_schema
from speclint.diagnostic import Finding, pointer
from speclint.document import Document
from speclint.fast_shape import fits, is_kind
from speclint.newer import written_by_newer
from speclint.scalar import LONGEST, plain, quoted, short
from speclint.snippet import resolved, to_add, written

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
    "minItems": "at least {}",
    "maxItems": "at most {}",
    "minLength": "at least {}",
    "minProperties": "at least {}",
}


PERCENT = re.compile(r"[0-9]+(\.[0-9]+)? ?%")


class ShapeFinding(NamedTuple):
    """A finding with its code: one check yields several rules' findings."""

    code: str
    finding: Finding


MOST = 200  # findings a file; a file with more is no spec with mistakes in it


def check(document: Document) -> list[ShapeFinding]:
    """Every place where the data is not what the schema says, each once; of more than `MOST`, the first ones."""
    if fits(document.data, spec_schema()):
        return _without_digest(document)
    known = {problem.path for problem in document.problems if problem.path}
    errors = validator(spec_schema()).iter_errors(document.data)
    found = dict.fromkeys(islice((item for error in errors for item in _of(error, document)), MOST))
    return [_for_newer(item, document) for item in found if item.finding.path not in known]


def _without_digest(document: Document) -> list[ShapeFinding]:
    """A value in a place that is the engine's own, which the schema cannot judge and nobody could sign."""
    try:
        spec_digest(document.data)
    except NotCanonical as error:
        message = f"out of range: {error.reason}, so nothing that holds it can be approved"
        return [_shape("SL105", error.pointer, message, "JSON readers keep whole numbers up to 9007199254740991 (2^53 - 1)")]
    return []


def _for_newer(item: ShapeFinding, document: Document) -> ShapeFinding:
    help = written_by_newer(document.data, item.finding.path)
    return item._replace(finding=item.finding._replace(help=help)) if help else item


def validator(schema: dict[str, Any]) -> Any:
    """jsonschema's own answer, to which 3.0 is no whole number here."""
    return _strict()(schema)


@cache
def _strict() -> Any:
    # imported for files that need it: it takes longer than everything else together
    from jsonschema import Draft202012Validator, validators

    types = Draft202012Validator.TYPE_CHECKER.redefine("integer", lambda _, value: type(value) is int)
    return validators.extend(Draft202012Validator, type_checker=types)  # type: ignore[no-untyped-call]


def did_you_mean(word: str, words: Iterable[str]) -> str:
    """`did you mean …?`, or nothing if no word is near."""
    from difflib import get_close_matches

    known = {known.lower(): known for known in words}
    near = get_close_matches(word.lower(), list(known), n=1, cutoff=0.6)
    return f"did you mean `{known[near[0]]}`?" if near else ""


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
            help = to_add(key, known.get(key, {}))
            yield _shape("SL102", path, f"{_named(path)} lacks `{key}`", help, on_key=True)


def _type(error: Any, path: str, document: Document) -> Iterator[ShapeFinding]:
    allowed = error.validator_value if isinstance(error.validator_value, list) else [error.validator_value]
    wanted = " or ".join(WORDS[name] for name in allowed)
    text = _written(document, path)
    value = error.instance
    if "string" in allowed and isinstance(value, (bool, int, float)):
        kind = "the truth value" if isinstance(value, bool) else "the number"
        message = f"`{short(text)}` is read as {kind} {short(json.dumps(value))}, not as text"
        yield _shape("SL004", path, message, quoted(text))
        return
    help = _first(_retyped(value, text, allowed), error.schema)
    yield _shape("SL103", path, f"expected {wanted}, found {_kind(value)}", help)


def _retyped(value: Any, text: str, allowed: list[str]) -> str:
    """How to write the value so that it has one of the types, if that is plain."""
    meant = plain(value) if isinstance(value, str) else value
    if isinstance(meant, float) and meant.is_integer():
        meant = int(meant)
    if isinstance(meant, (bool, int, float)) and any(is_kind(meant, kind) for kind in allowed):
        return f"write {short(json.dumps(meant))}" + (" without quotes" if isinstance(value, str) else "")
    if isinstance(value, str) and "number" in allowed and PERCENT.fullmatch(value):
        return f"write {float(value.rstrip(' %')) / 100:g}"
    if "array" in allowed and isinstance(value, (int, float)) and not isinstance(value, bool):
        return f"write [{short(text)}]"
    return "write a list: each item begins with `- `" if allowed == ["array"] else ""


def _choice(error: Any, path: str, document: Document) -> Iterator[ShapeFinding]:
    allowed = error.validator_value if error.validator == "enum" else [error.validator_value]
    help = _meant(str(error.instance), allowed, error.schema) or _about(error.schema)
    yield _shape("SL104", path, f"{_value(error.instance)} is not allowed; expected {one_of(allowed)}", help)


def _meant(word: str, allowed: Iterable[Any], schema: dict[str, Any]) -> str:
    """The value that goes by another name elsewhere, or the nearest one."""
    also = schema.get("x-also", {}).get(word.lower())
    return f"write `{also}`" if also else did_you_mean(word, map(str, allowed))


def _pattern(error: Any, path: str, document: Document) -> Iterator[ShapeFinding]:
    message = f"{_value(error.instance)} does not have the form {error.validator_value}"
    mended = _mended(error.instance, error.validator_value)
    help = _first(f'write "{mended}"' if mended else "", error.schema)
    yield _shape("SL104", path, message, help)


def _mended(text: str, pattern: str) -> str | None:
    """The text in the form that is asked for, if it differs from it in case, blanks or the prefix of a digest alone."""
    lower = text.lower().strip()
    forms = (lower, lower.removeprefix("sha256:"), f"sha256:{lower}", re.sub(r"[^a-z0-9]+", "-", lower).strip("-"))
    return next((form for form in forms if len(form) <= LONGEST and re.search(pattern, form)), None)


def _bound(error: Any, path: str, document: Document) -> Iterator[ShapeFinding]:
    wanted = BOUNDS[error.validator].format(error.validator_value)
    is_number = isinstance(error.instance, (int, float))
    length = "" if is_number else f" of length {len(error.instance)}"
    share = is_number and error.validator == "maximum" and error.validator_value <= 1 < error.instance <= 100
    help = _first(in_percent(error.instance) if share else "", error.schema)
    yield _shape("SL105", path, f"{_value(error.instance)}{length} is out of range: {wanted}", help)


def in_percent(number: float) -> str:
    """How to write a share that was given in per cent."""
    return f"write {number / 100:g} for {number:g} %"


def _repeated(error: Any, path: str, document: Document) -> Iterator[ShapeFinding]:
    yield _shape("SL105", path, "an item stands twice in this list", "remove one of the two")


def _branches(error: Any, path: str, document: Document) -> Iterator[ShapeFinding]:
    branches = error.validator_value
    if all("const" in branch for branch in branches):
        names = [branch["const"] for branch in branches]
        help = _meant(str(error.instance), names, error.schema) or f"known: {', '.join(names)}"
        yield _shape("SL104", path, f"{_value(error.instance)} is not a {error.schema.get('title', 'value').lower()}", help)
    elif all("required" in branch for branch in branches):
        if isinstance(error.instance, dict):  # another type is an error of its own
            yield _either(error.instance, error.schema, path)
    else:
        wanted = " or ".join(_branch(branch) for branch in branches)
        retyped = _retyped(error.instance, _written(document, path), [branch["type"] for branch in branches if "type" in branch])
        message = f"{_kind(error.instance)} is not allowed; expected {wanted}"
        yield _shape("SL104", path, message, _first(retyped, error.schema))


def _either(instance: dict[str, Any], schema: dict[str, Any], path: str) -> ShapeFinding:
    branches, known = schema["oneOf"], schema["properties"]
    heads = [branch["required"][0] for branch in branches]
    given = [head for head in heads if head in instance]
    if len(given) > 1:
        return _shape("SL104", path, f"{one_of(given).replace(' or ', ' and ')} exclude each other", "keep one")
    for branch in branches:
        lacking = [key for key in branch["required"] if key not in instance]
        if branch["required"][0] in given and lacking:
            help = ". ".join(to_add(key, known[key]) for key in lacking)
            return _shape("SL102", path, f"`{given[0]}` needs {one_of(lacking)} beside it", help, on_key=True)
    help = "add " + " or ".join(f"`{written(head, known[head])}`" for head in heads)
    return _shape("SL102", path, f"one of {one_of(heads)} is needed", help, on_key=True)


def _branch(branch: dict[str, Any]) -> str:
    branch = resolved(branch)
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


def _first(way_out: str, schema: dict[str, Any]) -> str:
    """The way out, if there is one, and what the key stands for."""
    return ". ".join(filter(None, (way_out, _about(schema))))


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
    return _kind(value) if isinstance(value, (dict, list)) else f"`{_shown(value)}`"


def _kind(value: Any) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    kind = "true or false" if isinstance(value, bool) else "a number" if isinstance(value, (int, float)) else "text"
    return f"{kind} (`{_shown(value)}`)"


def _shown(value: Any) -> str:
    return short(value if isinstance(value, str) else json.dumps(value))
