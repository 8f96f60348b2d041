"""Reading: positions, byte offsets, plain values, and any bytes whatever."""

from __future__ import annotations

import math
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError
from spec_cases import RULES

from speclint.document import parse, read
from speclint.scalar import NotPlain, plain

TEXT = b'a: 1\nb:\n  - x\n  - {y: 0.90, z: "q"}   # why\n# c\nc: |\n  lit\n\n# d\n'
FILES = sorted(RULES.rglob("*.yaml"))


@pytest.mark.parametrize(
    ("pointer", "on_key", "span"),
    [
        ("/a", False, (1, 4, 1, 5)),
        ("/a", True, (1, 1, 1, 2)),
        ("/b", False, (2, 1, 2, 2)),
        ("/b/1/z", False, (4, 18, 4, 21)),
        ("/b/1/z", True, (4, 15, 4, 16)),
        ("/b/7/z", False, (2, 1, 2, 2)),
        ("/c", True, (6, 1, 6, 2)),
    ],
)
def test_span(pointer: str, on_key: bool, span: tuple[int, int, int, int]) -> None:
    found = parse(TEXT, "").span(pointer, on_key)
    assert (found.line, found.column, found.end_line, found.end_column) == span


@pytest.mark.parametrize("source", [TEXT, b"\xef\xbb\xbf" + TEXT, TEXT.replace(b"\n", b"\r\n"), "é: ü\n".encode() + TEXT])
def test_offset_is_the_section_without_what_follows_it(source: bytes) -> None:
    document = parse(source, "")
    begin, end = document.offset("/b")
    assert source[begin:end].startswith(b"b:") and source[begin:end].endswith(b'z: "q"}')
    begin, end = document.offset("/c")
    assert source[begin:end].replace(b"\r", b"") == b"c: |\n  lit"


def test_crlf_and_bom_do_not_move_lines() -> None:
    for source in (TEXT, TEXT.replace(b"\n", b"\r\n"), b"\xef\xbb\xbf" + TEXT):
        assert parse(source, "").span("/c", on_key=True).line == 6


def test_duplicate_names_both_places_and_keeps_the_first() -> None:
    document = parse(b"a: {x: 1}\nb: 2\na: {y: 3}\n", "")
    assert document.data == {"a": {"x": 1}, "b": 2}
    (problem,) = document.problems
    assert (problem.code, problem.span.line, problem.related[0][0].line) == ("SL002", 3, 1)
    assert document.span("/a/x").line == 1


AMBIGUOUS = "yes No on OFF = << .inf -.INF .nan 010 00 1_000 0x1F 0o17 0b1 12e7890 1e3 1.5e3 12:30:45".split()
DATES = ["2026-01-02", "2026-1-2", "2026-01-02T03:04:05Z", "2026-01-02 03:04:05"]


@pytest.mark.parametrize("text", [*AMBIGUOUS, *DATES, "1" * 301, "1.0e+999"])
def test_scalars_that_readers_differ_on(text: str) -> None:
    assert isinstance(plain(text), NotPlain)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0.90", 0.9), ("-3", -3), ("+1", 1), ("0", 0), (".5", 0.5), ("1.5e-3", 0.0015), ("true", True), ("~", None), ("", None),
        ("0.32.0", "0.32.0"), ("y", "y"), ("n", "n"), ("v1", "v1"), ("1a2b", "1a2b"), ("10.0.0.1:80", "10.0.0.1:80"),
        ("2026-01-02x", "2026-01-02x"), ("1e", "1e"), ("-", "-"), ("2x3", "2x3"),
    ],
)  # fmt: skip
def test_scalars_that_readers_agree_on(text: str, value: object) -> None:
    found = plain(text)
    assert found == value and type(found) is type(value)


HOSTILE = {
    "alias bomb": b"a: &a [x,x]\n" + b"".join(b"b%d: &b%d [*a,*a,*a,*a,*a,*a,*a,*a,*a]\n" % (i, i) for i in range(20)),
    "deep flow": b"a: " + b"[" * 5000 + b"]" * 5000,
    "deep block": b"a:\n" + b"".join(b" " * i + b"-\n" for i in range(1, 1200)),
    "deep dashes": b"a:\n  " + b"- " * 5000,
    "ten megabytes": b"a: b\n" * 2_000_000,
    "binary": bytes(range(256)) * 1000,
    "zeros": b"\0" * 100_000,
    "many nodes": b"".join(b"k%d: v\n" % i for i in range(80_000)),
    "bad escape": b'a: "\\UFFFFFFFF"\n',
    "directive": b"%YAML 1.1\n---\na: 1\n",
    "recursive": b"a: &a [*a]\n",
    "utf-16": "a: 1".encode("utf-16"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_file_gives_one_problem_quickly(name: str) -> None:
    start = time.process_time()
    document = parse(HOSTILE[name], "")
    assert time.process_time() - start < 2.0  # the bar of 1 s is held in benchmarks, on a quiet machine
    assert len(document.problems) == 1 and document.data is None


def test_a_file_larger_than_the_limit_is_not_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "large.yaml"
    path.write_bytes(b"a: b\n" * 400_000)
    document = read(path)
    assert document.problems[0].code == "SL006" and len(document.source) < 1_100_000


@given(st.binary(max_size=300))
@settings(max_examples=150, deadline=None)
def test_any_bytes_give_a_document(source: bytes) -> None:
    parse(source, "")


@given(st.text(alphabet="ab:-?[]{}#&*!|>'\"%@`,~ \n\r\t0129.eE_<=\\\x85\u2028é\ufeff", max_size=80))
@settings(max_examples=400, deadline=None)
def test_accepted_text_is_what_ruamel_reads(text: str) -> None:
    document = parse(text.encode(), "")
    if document.problems or document.data is None:
        return
    try:
        expected = YAML(typ="safe", pure=True).load(document.text)
    except YAMLError:
        return  # ruamel's constructor refuses what its parser gives; the data here is plain all the same
    assert _equal(document.data, expected), (document.data, expected)


@given(st.sampled_from(FILES), st.data())
@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_mutated_specs_give_a_document(path: Path, data: st.DataObject) -> None:
    source = bytearray(path.read_bytes()[:2000])
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(source)))
        source[at : at + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
    document = parse(bytes(source), "")
    for pointer in list(document.nodes)[:50]:
        span = document.span(pointer)
        assert 1 <= span.line <= span.end_line <= len(document.line_starts)


def _equal(a: object, b: object) -> bool:
    if isinstance(a, dict) and isinstance(b, dict):
        return list(a) == list(b) and all(_equal(a[key], b[key]) for key in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(_equal, a, b))
    if isinstance(a, float) and isinstance(b, float):
        return math.isclose(a, b)
    return type(a) is type(b) and a == b
