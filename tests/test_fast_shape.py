"""The quick answer to "is this the schema's shape" is jsonschema's own, on valid and on damaged documents."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from spec_cases import good, overlaid

from speclint import document
from speclint.data import spec_schema
from speclint.fast_shape import ALLOW_ALL, CHECKS, fits
from speclint.shape import validator

VALIDATOR = validator(spec_schema())
EXAMPLES = sorted(Path(__file__).parent.parent.glob("examples/**/*.spec.yaml"))
DIGEST = "sha256:" + "0" * 64
RESULTS = {
    "/results": [{"id": "r", "verdicts": [{"id": "x", "verdict": "met", "cells": []}], "figures": {"columns": [], "rows": []}}],
    "/approvals": [{"id": "a", "approver": "a@b", "spec": DIGEST, "sections": {"pair": DIGEST}, "signature": "x"}],
}
WHOLE = overlaid(dict(RESULTS))
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-2, 3), st.sampled_from([10**20, 1.0, 1.5, -0.0, 0.9]), st.text(max_size=3),
    st.sampled_from(["", "cpu", "aa", "all", "sha256:", DIGEST, "pair-spec/v1", "2026-01-02T03:04:05Z", "generator\n"]),
)  # fmt: skip
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
)


def keywords(schema: Any) -> Iterator[str]:
    """Every keyword of a schema and of those in it."""
    for word, value in schema.items():
        yield word
        inner = value.values() if word in ("properties", "$defs") else value if isinstance(value, list) else [value]
        for part in inner:
            if isinstance(part, dict) and word not in ("default", "enum", "const", "examples", "x-also"):
                yield from keywords(part)


def places(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    for key, value in data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ():
        yield from places(value, (*path, key))


PLACES = [path for path in places(WHOLE) if path]
KNOWN_KEYS = sorted({key for path in PLACES for key in path if isinstance(key, str)})


@st.composite
def damaged(draw: st.DrawFn) -> Any:
    """The good document after one to three changes: a value replaced, removed, added or written twice in a list."""
    data = copy.deepcopy(WHOLE)
    for _ in range(draw(st.integers(1, 3))):
        *way, last = draw(st.sampled_from(PLACES))
        holder = data
        try:
            for key in way:
                holder = holder[key]
            change(draw, holder, last)
        except (KeyError, IndexError, TypeError):
            continue  # an earlier change took the place away
    return data


def change(draw: st.DrawFn, holder: Any, last: Any) -> None:
    how = draw(st.sampled_from(["replace", "remove", "add", "repeat"]))
    if how == "replace":
        holder[last] = draw(VALUES)
    elif how == "remove":
        del holder[last]
    elif how == "add" and isinstance(holder, dict):
        holder[draw(st.sampled_from(KNOWN_KEYS))] = draw(VALUES)
    elif isinstance(holder, list):
        holder.append(copy.deepcopy(holder[last]))


def test_every_keyword_of_the_schema_is_known() -> None:
    assert set(keywords(spec_schema())) <= CHECKS.keys() | ALLOW_ALL


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_agrees_on_examples(path: Path) -> None:
    data = document.read(path).data
    assert fits(data, spec_schema()) is VALIDATOR.is_valid(data)


def test_good_spec_fits() -> None:
    assert fits(good(), spec_schema()) and VALIDATOR.is_valid(good())


@settings(max_examples=300, deadline=None)
@given(damaged())
def test_agrees_on_damaged_documents(data: Any) -> None:
    assert fits(data, spec_schema()) is VALIDATOR.is_valid(data)


@settings(max_examples=100, deadline=None)
@given(VALUES)
def test_agrees_on_anything(data: Any) -> None:
    assert fits(data, spec_schema()) is VALIDATOR.is_valid(data)


def parts(schema: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every schema within the schema, by its pointer."""
    if isinstance(schema, dict):
        yield path, schema
        for word, value in schema.items():
            if word in ("properties", "$defs"):
                for name, inner in value.items():
                    yield from parts(inner, f"{path}/{word}/{name}")
            elif word in ("items", "additionalProperties", "not", "oneOf"):
                for number, inner in enumerate(value if isinstance(value, list) else [value]):
                    yield from parts(inner, f"{path}/{word}/{number}")


def probes(schema: Any) -> list[Any]:
    """Values at and around what a schema asks for, and some of every type."""
    found = [
        None,
        True,
        False,
        0,
        1,
        -1,
        2,
        0.0,
        1.0,
        1.5,
        -0.5,
        10**20,
        1e20,
        "",
        "a",
        "1",
        [],
        {},
        [1],
        [1, 1.0],
        [1, True],
        [0, False],
        ["a", "a"],
    ]
    for word, value in schema.items():
        if word in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"):
            found += [value - 1, value - 0.5, value, float(value), value + 0.5, value + 1]
        elif word in ("minItems", "maxItems", "minProperties", "minLength"):
            for count in (value - 1, value, value + 1):
                found += [["x"] * count, list(range(max(count, 0))), "x" * count, {str(n): n for n in range(count)}]
        elif word in ("enum", "const"):
            found += value if isinstance(value, list) else [value]
        elif word == "required":
            found += [dict.fromkeys(value, 1), dict.fromkeys(value[1:], 1)]
    keys = sorted({key for branch in schema.get("oneOf", []) for key in branch.get("required", [])})
    return found + [dict.fromkeys(some, "repetitive") for n in range(len(keys) + 1) for some in combinations(keys, n)]


@pytest.mark.parametrize(
    ("path", "schema"), list(parts(spec_schema())), ids=lambda value: value if isinstance(value, str) else ""
)
def test_agrees_on_every_part(path: str, schema: Any) -> None:
    """Each schema by itself, so that one fault elsewhere does not hide a wrong answer here."""
    part = {**schema, "$defs": spec_schema()["$defs"]}
    whole = validator(part)
    assert [(p, fits(p, part)) for p in probes(schema)] == [(p, whole.is_valid(p)) for p in probes(schema)]
