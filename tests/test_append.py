"""Adding text to a spec: every shape is appended to correctly or refused with the file untouched."""

from __future__ import annotations

import os
import re
import stat
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from trust_sample import SPEC, data_of, make_key, result, write_trust

from speclint import document, edit, emit, replace
from speclint.canonical import spec_digest
from specrun.append import append_entry, appended
from specrun.approve import approve
from specrun.errors import NotWritten

ENTRY: dict[str, Any] = {
    "id": "r1",
    "n": [1, 2.5, 1e-07, 1e22, -0.0, True, None, 'é \U0001f600 \u2028\x85\x7f\ufeff\t\n"\\'],
    "rows": [["a", 1], ["b", None]],
    "deep": [{"cells": [{"blocks": [0.9, 1.1]}, {}]}, [[[1]], []]],
    "no": {"on": "yes", "0123": "2026-01-02", "": "~", "a: b": "- x"},
    "long": "w " * 200,
    "words": ["x" * 90, "y" * 90],
    "signature": "-----BEGIN SSH SIGNATURE-----\nU1NI+/=\n-----END SSH SIGNATURE-----\n",
}

# name: (source, whether it is appended to; else words of the reason)
SHAPES: dict[str, tuple[str, str]] = {
    "plain": ("a: 1\nb: x\n", ""),
    "no final newline": ("a: 1\nb: x", ""),
    "CRLF": ("a: 1\r\nb: x\r\n", ""),
    "CRLF, no final newline": ("a: 1\r\nb: x", ""),
    "mixed line breaks": ("a: 1\r\nb: x\nc: 2\r\n", ""),
    "BOM": ("\ufeffa: 1\n", ""),
    "document start": ("---\na: 1\n", ""),
    "comment before document start": ("# c\n---\na: 1 # d\n", ""),
    "literal last": ("a: |\n  x\n  y\n", ""),
    "literal strip last": ("a: |-\n  x\n", ""),
    "literal strip last, no final newline": ("a: |-\n  x", ""),
    "folded last": ("a: >\n  x\n  y\n\n", ""),
    "literal keep last": ("a: |+\n  x\n\n\n", ""),
    "multi-line plain last": ("a: x\n  y\n  z\n", ""),
    "multi-line quoted last": ('a: "x\n  y"\n', ""),
    "deeper comment last": ("a:\n  b: 1\n  # deeper\n", ""),
    "comment last": ("a: 1\n\n# end\n", ""),
    "comment last, no final newline": ("a: 1\n# end", ""),
    "blank lines last": ("a: 1\n\n\n", ""),
    "blanks last, no final newline": ("a: 1\n   ", ""),
    "null last": ("a: 1\nb:\n", ""),
    "null last, no final newline": ("a: 1\nb:", ""),
    "flow mapping last": ("a: {b: [1, 2]}\n", ""),
    "sequence last at the key's indent": ("a:\n- 1\n- 2\n", ""),
    "explicit key": ("? a\n: 1\n", ""),
    "quoted keys": ("'a': 1\n\"b\": 2\n", ""),
    "indent of 4": ("a:\n    b:\n        - c: 1\n", ""),
    "empty list": ("a: 1\nresults: []\n", ""),
    "empty list, comment, no final newline": ("a: 1\n'results':  [ ]   # none yet", ""),
    "empty list in the middle, CRLF": ("a: 1\r\nresults: []\r\nb: 2\r\n", ""),
    "empty value": ("a: 1\nresults:\n", ""),
    "has entries": ("a: 1\nresults:\n  - id: r0\n    n: [1]\n", ""),
    "has entries at column 0": ("a: 1\nresults:\n- id: r0\n- id: r00\n", ""),
    "has entries at column 4, no final newline": ("a: 1\nresults:\n    -   id: r0", ""),
    "has entries, comments between": ("results:\n# c\n  # - d\n  - id: r0\n\n  # e\n# f\n", ""),
    "has entries, then another key": ("results:\n  - id: r0\n\n# about b\nb: 1\n", ""),
    "has entries, a literal keep, then another key": ("results:\n  - id: |+\n      r0\n\n\n# b\nb: 1\n", ""),
    "last entry ends in a literal": ("results:\n  - signature: |\n      x\n      y\n", ""),
    "last entry in brackets": ("results:\n  - {id: r0}\n", ""),
    "entries under a quoted key": ("a: 1\n'results':\n  - id: r0\n", ""),
    "entries under an explicit key": ("? results\n:\n  - id: r0\n", ""),
    "comments after entries": ("results:\n  - id: r0\n# after\n\n  # deeper after\n", ""),
    "null": ("a: 1\nresults: null # none\nb: 1\n", ""),
    "tilde, CRLF": ("a: 1\r\nresults: ~\r\n", ""),
    "empty value, comment": ("results: # none\n# c\nb: 1\n", ""),
    "next line in a quoted value": ("a: 'x\x85# y'\nresults:\n  - id: r0\n", ""),
    "next line in a plain value": ("a: x\x85# y\n", ""),
    "next line in a comment": ("a: 1\n# c\x85# d\nresults:\n  - id: r0\n", ""),
    "line separator in a literal": ("a: |\n  x\u2028# y\n", ""),
    "carriage returns alone": ("a: 1\rb: x\r", ""),
    "BOM, document start, CRLF": ("\ufeff---\r\na: 1\r\n", ""),
    "markers inside values": ('a: |\n  ...\nb: "\n  ---\n  "\n', ""),
    "literal with an indent of its own": ("a: |2\n    x\n", ""),
    "literal with blanks in its last line": ("a: |\n  x\n    \n", ""),
    "text that looks like a key": ('a: "x\n  results: []\n  "\n', ""),
    "end marker": ("a: 1\n...\n", "marker `...`"),
    "end marker, no final newline": ("a: 1\n...", "marker `...`"),
    "second document": ("a: 1\n---\nb: 1\n", "second document"),
    "flow root": ("{a: 1}\n", "not a block mapping"),
    "sequence root": ("- a\n", "not a block mapping"),
    "indented root": ("  a: 1\n  b: 2\n", "not a block mapping"),
    "comment only": ("# c\n", "holds nothing"),
    "empty file": ("", "holds nothing"),
    "tab in the indent": ("a:\n\tb: 1\n", "a tab stands before a value"),
    "tab after a value": ("a: 1\t\nb: x\t# c\n", "a tab stands before a value"),
    "tab in an empty line": ("a: 1\n\t\nb: 1\n", "a tab stands before a value"),
    "tab last, no final newline": ("a: 1\n\t", "a tab stands before a value"),
    "end marker, comment": ("a: 1\n... # end\n", "marker `...`"),
    "flow root after the marker": ("--- {a: 1}\n", "not a block mapping"),
    "BOM only": ("\ufeff", "holds nothing"),
    "literal keep last, no final newline": ("a: |+\n  x\n\n  ", "end the file with a line break"),
    "entries in brackets over lines": ("results: [\n  {id: r0},\n]\n", "in brackets"),
    "empty list over lines": ("results: [\n]\n", "block style"),
    "results is text": ("results: x\n", "is no list"),
    "form feed": ("a: 1\n# x\x0c# y\n", "not allowed"),
    "anchors": ("a: &x 1\nb: *x\n", "anchors"),
    "directive": ("%YAML 1.2\n---\na: 1\n", "directives"),
    "literal last, no final newline": ("a: |\n  x", "end the file with a line break"),
    "entries in brackets": ("results: [{id: r0}]\n", "in brackets"),
    "duplicate key": ("a: 1\na: 2\n", "written twice"),
    "results is a mapping": ("results:\n  id: r0\n", "block"),
    "not UTF-8": ("a: \udcff\n", "UTF-8"),
}


def parsed(source: bytes) -> dict[str, Any]:
    read = document.parse(source, "")
    assert not read.problems, read.problems
    found = read.data
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("section", ["approvals", "results"])
def test_every_shape(name: str, section: str) -> None:
    text, refusal = SHAPES[name]
    source = text.replace("results", section).encode("utf-8", "surrogateescape")
    try:
        new = edit.add_entry(source, section, ENTRY)
    except edit.EditRefused as refused:
        told = f"{refused.message} {refused.hint}"
        assert refusal and refusal.replace("results", section) in told, told
        return
    assert not refusal
    before, after = parsed(source), parsed(new)
    old_entries = before.pop(section, None) or []
    assert repr(after.pop(section)) == repr([*old_entries, ENTRY])
    assert repr(after) == repr(before)
    assert lines_are_kept(source, new, section)


def lines_are_kept(source: bytes, new: bytes, section: str) -> bool:
    """Old bytes are a prefix and a suffix of the new ones, but for the value of an empty list and the last break."""
    if source.startswith(edit.BOM) != new.startswith(edit.BOM):
        return False
    source, new = source.removeprefix(edit.BOM), new.removeprefix(edit.BOM)
    empty = rf"(?<![^\r\n])('?{section}'?:)[ \t]*(?:\[[ \t]*\]|null|~)(?=[ \t]*(?:[\r\n#]|\Z))"
    return any(new.endswith(old[same_until(old, new) :]) for old in (source, re.sub(empty.encode(), rb"\1", source)))


def same_until(source: bytes, new: bytes) -> int:
    """How many bytes at the beginning are the same."""
    pairs = enumerate(zip(source, new, strict=False))
    return next((at for at, (old, byte) in pairs if old != byte), min(len(source), len(new)))


@pytest.mark.parametrize("name", [name for name, (_, refusal) in SHAPES.items() if not refusal])
def test_line_breaks_are_the_files_own(name: str) -> None:
    text = SHAPES[name][0]
    crlf = text.count("\r\n") > text.count("\n") / 2
    new = edit.add_entry(text.encode(), "results", ENTRY)
    for line in new[same_until(text.encode(), new) :].splitlines(keepends=True)[1:-1]:
        if b"#" not in line and b"b:" not in line:
            assert line.endswith(b"\r\n") is crlf, line


def test_order_is_lock_approvals_results() -> None:
    source = edit.add_entry(b"a: 1\n# about results\n", "results", {"id": "r"})
    source = edit.add_entry(source, "approvals", {"id": "a"})
    source = edit.replace_section(source, "lock", {"format": 1})
    assert list(parsed(source)) == ["a", "lock", "approvals", "results"]
    assert source.startswith(b"a: 1\n# about results\n")
    again = edit.add_entry(edit.add_entry(source, "results", {"id": "r2"}), "approvals", {"id": "a2"})
    assert [entry["id"] for entry in parsed(again)["approvals"]] == ["a", "a2"]
    assert list(parsed(again)) == ["a", "lock", "approvals", "results"]


def test_a_new_section_goes_above_the_comments_of_the_next() -> None:
    source = b"a: 1\n\n# the results\n# of this\nresults:\n  - id: r\n"
    new = edit.add_entry(source, "approvals", {"id": "x"}).decode()
    assert new == 'a: 1\n\napprovals:\n  - id: "x"\n\n# the results\n# of this\nresults:\n  - id: r\n'


def test_a_break_of_other_texts_than_yaml_ends_no_line() -> None:
    source = 'a: "x\x85# y"\nresults:\n  - id: r\n'.encode()
    new = edit.add_entry(source, "approvals", {"id": "x"}).decode()
    assert new == 'a: "x\x85# y"\napprovals:\n  - id: "x"\n\nresults:\n  - id: r\n'


def test_replacing_a_section_touches_its_own_lines_only() -> None:
    source = b"a: 1  # one\n\nlock:  # mine\n  x: 1\n\n# the results\nresults:\n- id: r\n"
    new = edit.replace_section(source, "lock", {"format": 2, "files": {"c.json": None}})
    assert new == (b"a: 1  # one\n\nlock:\n  format: 2\n  files:\n    c.json: null\n\n# the results\nresults:\n- id: r\n")
    assert edit.replace_section(new, "lock", {"format": 2, "files": {"c.json": None}}) == new
    crlf = edit.replace_section(source.replace(b"\n", b"\r\n"), "lock", {"format": 2})
    assert crlf.count(b"\n") == crlf.count(b"\r\n")
    at_end = edit.replace_section(b"a: 1\nlock:\n  x: |\n    y\n# end\n", "lock", {"format": 3})
    assert at_end == b"a: 1\nlock:\n  format: 3\n# end\n"


def test_too_large_a_file_is_refused_by_name() -> None:
    with pytest.raises(edit.EditRefused, match="larger than 600 kB"):
        edit.add_entry(b"a: 1\n", "results", {"id": "x" * 1_000_001})


# --- the text that is written ---

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**53) + 1, 2**53 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=30),
    st.sampled_from(["yes", "0x1F", "1e3", "12:30:45", "=", "<<", "# c", "a: b", " x ", "2026-01-02", "\r\n", "\x85"]),
)
KEYS = st.one_of(
    st.sampled_from(["id", "no", "signature", "a.b", "0", "~", "key with blanks"]), st.text(max_size=8).filter(str.isprintable)
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4), max_leaves=15
)


@settings(deadline=None)
@given(st.dictionaries(KEYS, VALUES, min_size=1, max_size=5))
def test_whatever_is_written_is_read_back_as_meant(entry: dict[str, Any]) -> None:
    new = edit.add_entry(b"a: 1\n", "results", entry)
    assert repr(parsed(new)["results"]) == repr([entry])


@settings(deadline=None)
@given(st.dictionaries(KEYS, VALUES, min_size=1, max_size=5))
def test_yaml_1_1_readers_read_the_same(entry: dict[str, Any]) -> None:
    yaml = pytest.importorskip("yaml")
    text = emit.entry(entry)
    if "\x85" not in repr(entry):
        assert repr(yaml.safe_load(text)) == repr([entry])


def test_the_shape_of_an_entry() -> None:
    assert emit.entry({"id": "r", "x": 1e-07, "rows": [[1, "a"], [2, "b"]], "signature": "-----B\nx=\n"}) == (
        '  - id: "r"\n    x: 1.0e-07\n    rows:\n      - [1, "a"]\n      - [2, "b"]\n    signature: |\n      -----B\n      x=\n'
    )


@pytest.mark.parametrize(
    ("value", "error"), [(float("nan"), ValueError), (float("inf"), ValueError), (b"x", TypeError), ((1,), TypeError)]
)
def test_what_is_not_plain_data_is_never_written(value: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        edit.add_entry(b"a: 1\n", "results", {"id": value})


# --- files in every style ---


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    path = tmp_path / "x.spec.yaml"
    path.write_text(SPEC)
    return path


@pytest.fixture(scope="module")
def approval(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A signed approval of SPEC, which holds for the same values in any style."""
    place = tmp_path_factory.mktemp("alice")
    (place / "x.spec.yaml").write_text(SPEC)
    write_trust(place, alice=make_key(place, "alice"))
    return approve(place / "x.spec.yaml", place / "alice", show=lambda _: None)


def left_beside(path: Path) -> list[str]:
    return sorted(other.name for other in path.parent.iterdir() if other != path)


BLOCKS = (
    "k{n}: 1",
    "k{n}: 1   ",
    "k{n}: 'it''s'  # comment",
    '"k{n}": "a # b"',
    "'k{n}': 'x\x85# y'",
    "? k{n}\n: 1",
    "k{n}:\n{i}x: 1\n{i}# inside",
    "k{n}:\n- 1\n- 2",
    "k{n}:\n{i}- y: [1, 2]\n{i}  z: {a: null}",
    "k{n}: {a: [\n{i}1, 2\n{i}]}",
    "k{n}: |\n{i}text\n\n{i} # text too",
    "k{n}: |-\n{i}text",
    "k{n}: |+\n{i}kept\n\n",
    "k{n}: >-\n{i}folded\n{i}text",
    "k{n}: plain\n{i}goes on",
    'k{n}: "quoted\n\n{i}goes on"',
    "k{n}:",
    "k{n}: {}",
)
SECTIONS = (
    "{s}:\n{d}- id: r0\n{d}  s: |\n{d}    t",
    "{s}:   # about them\n{d}- id: r0\n\n{d}# between\n{d}- id: r00",
    "'{s}':\n{d}- {id: r0}",
    "{s}:\n{d}-\n{d}  id: r0\n{d}  t: |+\n{d}    kept\n\n",
    "{s}: []",
    "{s}: null  # none yet",
    "{s}:",
    "{s}: [{id: r0}]",
)


@st.composite
def sources(draw: st.DrawFn) -> bytes:
    """A file of a few top-level keys and sections in some style of indent, quotes, comments, breaks, and what it ends with."""
    indent, eol = " " * draw(st.sampled_from([2, 3, 4])), draw(st.sampled_from(["\n", "\r\n", "\r"]))
    chosen = draw(st.lists(st.sampled_from(BLOCKS), min_size=1, max_size=5))
    parts = [block.replace("{n}", str(n)).replace("{i}", indent) for n, block in enumerate(chosen)]
    for section in draw(st.sampled_from([[], ["approvals"], ["results"], ["approvals", "results"]])):
        dash = draw(st.sampled_from(["", indent]))
        parts.append(draw(st.sampled_from(SECTIONS)).replace("{s}", section).replace("{d}", dash))
    parts = draw(st.one_of(st.just(parts), st.permutations(parts)))
    between = draw(st.lists(st.sampled_from(["", "# comment", "  # deeper", "   "]), max_size=2))
    body = ("\n" + "".join(line + "\n" for line in between)).join(parts)
    ending = draw(st.sampled_from(["", "\n", "\n\n", "\n# end", "\n# end\n", "\n  # deeper\n"]))
    start = draw(st.sampled_from(["", "---\n", "# first\n", "\ufeff", "\ufeff---\n", "\n"]))
    return (start + body + ending).replace("\n", eol).encode()


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(sources(), st.sampled_from(["approvals", "results"]))
def test_files_in_any_style_gain_an_entry_and_lose_nothing(source: bytes, section: str) -> None:
    before = document.parse(source, "")
    if before.problems:
        return
    try:
        new = edit.add_entry(source, section, ENTRY)
    except edit.EditRefused as refused:
        # What cannot be helped: entries in brackets, and a line break that would become part of the last value.
        assert "in brackets" in refused.message or not source.endswith((b"\n", b"\r")), refused.message
        return
    after = parsed(new)
    assert repr(after.pop(section)) == repr([*(before.data.pop(section, None) or []), ENTRY])
    assert repr(after) == repr(before.data)
    assert lines_are_kept(source, new, section)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(sources(), st.sampled_from(["lock", "approvals", "results"]))
def test_files_in_any_style_gain_a_section_or_have_it_replaced(source: bytes, section: str) -> None:
    before = document.parse(source, "")
    if before.problems:
        return
    try:
        new = edit.replace_section(source, section, ENTRY)
    except edit.EditRefused:
        assert not source.endswith((b"\n", b"\r"))
        return
    after = parsed(new)
    assert repr(after.pop(section)) == repr(ENTRY)
    assert repr(after) == repr({key: value for key, value in before.data.items() if key != section})
    assert section in before.data or lines_are_kept(source, new, section)


STYLES = {
    "comments": lambda text: re.sub(r"(?m)^(?=  \w)", "  # about the next\n", text) + "# end\n",
    "indent of 4": lambda text: re.sub(r"(?m)^ +", lambda found: found.group() * 2, text).replace("- id", "-   id"),
    "other quotes": lambda text: text.replace('"0.32.0"', "'0.32.0'"),
    "literal last": lambda text: (
        text.replace("purpose: Does a small draft help?\n", "") + "purpose: |+\n  Does a small draft\n  help?\n\n"
    ),
    "empty results": lambda text: text + "results: []   # none yet\n",
    "entries in brackets": lambda text: text + "\napprovals: [{id: a}]\n",
    "end marker": lambda text: text + "...\n",
    "document start": lambda text: "---\n" + text,
    "BOM": lambda text: "\ufeff" + text,
    "no final newline": lambda text: text.rstrip("\n"),
    "CRLF": lambda text: text.replace("\n", "\r\n"),
}


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(styles=st.sets(st.sampled_from(list(STYLES))))
def test_a_real_spec_in_any_style_is_appended_to_or_left_as_it_was(
    spec: Path, approval: dict[str, Any], styles: set[str]
) -> None:
    text = SPEC
    for name in STYLES:
        text = STYLES[name](text) if name in styles else text
    spec.write_bytes(text.encode())
    before = document.parse(text.encode(), "")
    try:
        append_entry(spec, "approvals", approval)
    except NotWritten as refused:
        assert styles & {"entries in brackets", "end marker", "no final newline"}, refused.message
        assert spec.read_bytes() == text.encode()
    else:
        assert not styles & {"entries in brackets", "end marker"}
        assert parsed(spec.read_bytes()) == {**before.data, "approvals": [approval]}
        assert lines_are_kept(text.encode(), spec.read_bytes(), "approvals")
    assert left_beside(spec) == []


# --- writing ---


STEPS = ["mkstemp", "fdopen", "fchmod", "fsync", "rename", "fsync of the folder"]


@pytest.mark.parametrize("step", STEPS)
def test_a_crash_at_any_step_leaves_the_old_file_or_the_new_one(step: str, spec: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = spec.read_bytes()
    calls: list[str] = []

    def crash(name: str, real: Any) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            calls.append(name)
            reached = "fsync of the folder" if name == "fsync" and calls.count("fsync") == 2 else name
            if reached == step:
                raise OSError(5, "the disk is gone")
            return real(*args, **kwargs)

        return call

    for holder, name, attribute in [
        (replace.tempfile, "mkstemp", "mkstemp"),
        (os, "fdopen", "fdopen"),
        (os, "fchmod", "fchmod"),
        (os, "fsync", "fsync"),
        (Path, "rename", "replace"),
    ]:
        monkeypatch.setattr(holder, attribute, crash(name, getattr(holder, attribute)))
    with pytest.raises(OSError, match="disk is gone"):
        edit.rewrite(spec, lambda source: source + b"# new\n")
    assert spec.read_bytes() == (old + b"# new\n" if step == "fsync of the folder" else old)
    assert left_beside(spec) == []


def test_the_new_file_is_on_disk_before_it_takes_the_old_ones_place(spec: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []
    fsync, rename = os.fsync, Path.replace
    monkeypatch.setattr(
        os, "fsync", lambda fd: (order.append("dir" if stat.S_ISDIR(os.fstat(fd).st_mode) else "file"), fsync(fd))
    )
    monkeypatch.setattr(Path, "replace", lambda self, to: (order.append("rename"), rename(self, to)))
    edit.rewrite(spec, lambda source: source + b"#\n")
    assert order == ["file", "rename", "dir"]


def test_mode_and_symlinks_are_kept(spec: Path, tmp_path: Path) -> None:
    spec.chmod(0o640)
    (tmp_path / "links").mkdir()
    link = tmp_path / "links" / "linked.spec.yaml"
    link.symlink_to("../x.spec.yaml")
    edit.rewrite(link, lambda source: source + b"#\n")
    assert link.is_symlink()
    assert spec.read_bytes().endswith(b"#\n")
    assert stat.S_IMODE(spec.stat().st_mode) == 0o640


def test_a_file_that_changes_meanwhile_is_not_overwritten(spec: Path) -> None:
    def change(source: bytes) -> bytes:
        spec.write_bytes(source + b"# an editor was here\n")
        return source + b"# ours\n"

    with pytest.raises(replace.FileBusy, match="changed by someone else"):
        edit.rewrite(spec, change)
    assert spec.read_bytes().endswith(b"# an editor was here\n")
    assert left_beside(spec) == []


def test_two_writers_take_turns(spec: Path) -> None:
    def slowly(source: bytes) -> bytes:
        time.sleep(0.02)
        return source + b"#\n"

    threads = [threading.Thread(target=edit.rewrite, args=(spec, slowly)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert spec.read_text() == SPEC + "#\n" * 8


def test_a_writer_that_never_ends_is_not_waited_for_for_ever(spec: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replace, "PATIENCE", 0.1)

    def nested(source: bytes) -> bytes:
        edit.rewrite(spec, lambda inner: inner)
        return source

    with pytest.raises(replace.FileBusy, match="another program"):
        edit.rewrite(spec, nested)


# --- entries into real specs ---


def test_append_writes_the_entry_and_keeps_the_rest(spec: Path, approval: dict[str, Any]) -> None:
    source = spec.read_bytes()
    append_entry(spec, "approvals", approval)
    new = spec.read_bytes()
    assert new.startswith(source)
    assert parsed(new)["approvals"] == [approval]


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda text: text.replace("0.9}", "0.91}"), "the spec changed meanwhile"),
        (lambda text: text + "...\n", "marker `...`"),
        (lambda text: "", "holds no spec"),
        (lambda text: text.replace("seed: 7", "seed: 9007199254740992"), "no digest"),
    ],
)
def test_append_refuses_and_leaves_the_file(spec: Path, approval: dict[str, Any], damage: Any, words: str) -> None:
    spec.write_text(damage(SPEC))
    before = spec.read_bytes()
    with pytest.raises(NotWritten) as caught:
        append_entry(spec, "approvals", approval)
    assert words in f"{caught.value.message} {caught.value.hint}"
    assert spec.read_bytes() == before


def test_append_refuses_an_entry_that_the_schema_refuses(spec: Path) -> None:
    entry = result(data_of(spec)) | {"signature": "none"}
    del entry["scope"]
    with pytest.raises(NotWritten, match="would not pass"):
        appended(spec.read_bytes(), spec, "results", entry)


def test_append_to_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(NotWritten, match="was not changed"):
        append_entry(tmp_path / "gone.spec.yaml", "results", {"spec": spec_digest({}), "id": "r"})
