from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from speclint.canonical import (
    NotCanonical,
    canonical,
    digest,
    entry_digest,
    heads,
    rounded,
    section_digests,
    spec_digest,
)

DATA: dict[str, Any] = {
    "schema": "pair-spec/v1",
    "name": "x",
    "purpose": "free",
    "pair": {"target": {"model": "a"}},
    "protocol": {"criteria": [{"id": "c", "at_most": 0.9}], "confidence": 0.95, "load": {"requests": 8}},
}


def test_bytes_are_those_of_rfc_8785() -> None:
    # Appendix B of the RFC for numbers, section 3.2.3 for the order of keys.
    assert canonical([333333333.33333329, 1e30, 4.50, 2e-3, 1e-27]) == b"[333333333.3333333,1e+30,4.5,0.002,1e-27]"
    names = {"\u20ac": 1, "\r": 2, "\ufb33": 3, "1": 4, "\U0001f600": 5, "\u0080": 6, "\u00f6": 7}
    assert list(json.loads(canonical(names)).values()) == [2, 4, 6, 7, 1, 5, 3]


def test_spelling_of_a_number_is_no_difference_its_value_is() -> None:
    assert digest({"a": 1, "b": 0}) == digest({"b": -0.0, "a": 1.0})
    assert digest({"a": 1}) != digest({"a": True}) != digest({"a": "1"})


@pytest.mark.parametrize(
    ("value", "pointer"),
    [
        ({"sampling": {"seed": 2**53}}, "/sampling/seed"),
        ({"list": [1, -(2**53)]}, "/list/1"),
        ({"a/b~c": float("nan")}, "/a~1b~0c"),
        ([{"x": float("inf")}], "/0/x"),
        ({"k": {1: 2}}, "/k"),
        ({"k": {"\ud800": 2}}, "/k"),
        (b"bytes", ""),
    ],
)
def test_what_has_no_canonical_form_is_named_by_its_pointer(value: Any, pointer: str) -> None:
    with pytest.raises(NotCanonical) as caught:
        canonical(value)
    assert caught.value.pointer == pointer


@pytest.mark.parametrize("key", ["schema", "name", "pair", "protocol"])
def test_spec_digest_covers_what_is_approved(key: str) -> None:
    changed = copy.deepcopy(DATA) | {key: "other"}
    assert spec_digest(changed) != spec_digest(DATA)


def test_spec_digest_leaves_out_purpose_and_entries_and_takes_in_the_lock() -> None:
    more = {**DATA, "purpose": "other", "approvals": [1], "results": [2]}
    assert spec_digest(more) == spec_digest(DATA)
    assert spec_digest({**DATA, "lock": {"format": 1}}) != spec_digest(DATA)


def test_section_digests_tell_what_changed() -> None:
    changed = copy.deepcopy(DATA)
    changed["protocol"]["load"]["requests"] = 9
    before, after = section_digests(DATA), section_digests(changed)
    assert {name for name in before if before[name] != after[name]} == {"protocol"}
    changed["protocol"]["criteria"][0]["at_most"] = 0.91
    assert section_digests(changed)["criteria"] != before["criteria"]
    assert section_digests(DATA | {"protocol": {**DATA["protocol"], "confidence": 0.9}})["criteria"] != before["criteria"]
    assert before["lock"] == digest(None)


@pytest.mark.parametrize("protocol", [None, 3, [], "text"])
def test_section_digests_of_a_malformed_spec(protocol: Any) -> None:
    assert set(section_digests({"protocol": protocol})) == {"pair", "protocol", "criteria", "lock"}


def test_entry_digest_is_the_same_after_signing_again() -> None:
    entry = {"id": "r", "signature": "one"}
    assert entry_digest(entry) == entry_digest({"signature": "two", "id": "r"}) == digest({"id": "r"})
    assert entry_digest(entry) != entry_digest({**entry, "id": "s"})


def test_heads_are_the_results_that_none_follows() -> None:
    first: dict[str, Any] = {"id": "1", "previous": []}
    left: dict[str, Any] = {"id": "2", "previous": [entry_digest(first)]}
    right: dict[str, Any] = {"id": "3", "previous": [entry_digest(first)]}
    both = {"id": "4", "previous": [entry_digest(left), entry_digest(right)]}
    assert heads([]) == []
    assert heads([first, left, right]) == [entry_digest(left), entry_digest(right)]
    assert heads([first, left, right, both]) == [entry_digest(both)]


@pytest.mark.parametrize(
    ("x", "stored"),
    [(0.12345649, 0.123456), (0.12345651, 0.123457), (1234565.0, 1234560.0), (1234575.0, 1234580.0), (-0.0, 0.0), (1e300, 1e300)],
)
def test_rounded_keeps_six_digits_ties_to_even(x: float, stored: float) -> None:
    assert rounded(x) == stored
    assert str(rounded(-0.0)) == "0.0"


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_rounding_twice_changes_nothing(x: float) -> None:
    assert rounded(rounded(x)) == rounded(x)
