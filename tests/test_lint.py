"""The way from bytes to diagnostics: order, selection, malformed parts, suppression, and what readers see."""

from __future__ import annotations

import json
import os
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from spec_cases import RULES, commented, dumped, good, lint, overlaid

from speclint import document, render
from speclint.discovery import specs_below
from speclint.lint import Report, check, inspect

ODD: list[Any] = [None, True, -1, 0, 1.5, 10**20, "", "x", [], {}, [None], {"x": None}, [{}], [[1]], "sha256:", {"a": {"b": []}}]


def codes(source: bytes, **options: Any) -> list[str]:
    found = inspect(document.parse(source, "x"), RULES, **options).diagnostics
    return [item.code for item in found if item.code != "SL601"]


def report(source: bytes) -> Report:
    return inspect(document.parse(source, "dir/x.spec.yaml"), RULES, today=date(2026, 6, 1))


def test_a_shape_error_hides_no_rule_elsewhere() -> None:
    source = dumped(overlaid({"/protocol/load": "broken", "/pair/target/revision": "main", "/protocol/design/blocks": 5}))
    assert {"SL103", "SL201", "SL518"} <= set(codes(source))


def test_a_value_of_another_type_is_told_of_once() -> None:
    data = good()
    data["pair"]["speculative"] = {"method": "ngram", "num_speculative_tokens": 3, "prompt_lookup_max": "4"}
    path = "/pair/speculative/prompt_lookup_max"
    assert [item.code for item in lint(dumped(data)) if item.path == path] == ["SL103"]


def test_diagnostics_come_in_the_order_of_the_file() -> None:
    source = dumped(overlaid({"/protocol/design/blocks": 5, "/pair/target/revision": "main", "/name": "Bad Name"}))
    places = [(item.line, item.column) for item in lint(source)]
    assert places == sorted(places) and len(places) > 3


def test_select_and_ignore() -> None:
    source = dumped(overlaid({"/protocol/design/blocks": 5, "/pair/target/revision": "main"}))
    assert set(codes(source)) == {"SL201", "SL205", "SL518"}
    assert set(codes(source, select=["SL5"])) == {"SL518"}
    assert set(codes(source, ignore=["SL2"])) == {"SL518"}
    assert set(codes(source, select=["SL2"], ignore=["SL205"])) == {"SL201"}


def test_reading_and_integrity_findings_cannot_be_ignored() -> None:
    assert codes(b"a: 1\na: 2\n", ignore=["SL"]) == ["SL002"]
    assert "SL607" in codes(dumped(overlaid({"/results": [], "/approvals": []})), select=["SL5"])


def test_check_reads_a_file(tmp_path: Path) -> None:
    path = tmp_path / "x.spec.yaml"
    path.write_bytes(dumped(overlaid({"/protocol/design/blocks": 5})))
    assert "SL518" in [item.code for item in check(path)]
    with pytest.raises(FileNotFoundError):
        check(tmp_path / "none.yaml")


def test_a_pipe_in_a_folder_is_not_waited_for(tmp_path: Path) -> None:
    (tmp_path / "x.spec.yaml").write_bytes(dumped(good()))
    os.mkfifo(tmp_path / "y.spec.yaml")
    assert [path.name for path in specs_below(tmp_path)] == ["x.spec.yaml"]


def _pointers(value: Any, path: str = "") -> list[str]:
    if isinstance(value, dict):
        return [path, *(p for key, child in value.items() for p in _pointers(child, f"{path}/{key}"))]
    if isinstance(value, list):
        return [path, *(p for index, child in enumerate(value) for p in _pointers(child, f"{path}/{index}"))]
    return [path]


POINTERS = [path for path in _pointers(good()) if path and "/first" not in path and not path.startswith("/lock/workloads")]
ENTRIES = {
    "/results": [
        {"id": "r", "established": {}, "verdicts": [{}, 1], "figures": {"columns": ["a"], "rows": [[1, 2], 3]}, "previous": 1},
        {"id": "r", "verdicts": [{"id": "accepted", "cells": [{"low": "x", "high": 1, "verdict": []}]}], "approvals": [[]]},
        {"established": [], "previous": [{}], "ratios": [{"value": True, "low": 2, "high": 1}], "sections": [], "spec": {}},
    ],
    "/approvals": [{"id": "a", "results_known": 1, "sections": 3, "signature": "x", "approver": "y"}, 3],
}


@given(st.lists(st.tuples(st.sampled_from(POINTERS), st.sampled_from(ODD)), min_size=1, max_size=4), st.booleans())
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_no_rule_fails_on_malformed_parts(changes: list[tuple[str, Any]], entries: bool) -> None:
    data = good() | ({"approvals": ENTRIES["/approvals"], "results": ENTRIES["/results"]} if entries else {})
    for path, value in changes:
        _set(data, path, value)
    for diagnostic in lint(dumped(data)):
        assert diagnostic.message and diagnostic.line >= 1


@pytest.mark.parametrize("path", POINTERS)
def test_every_value_may_be_missing_or_odd(path: str) -> None:
    for value in (None, []):
        data = good()
        _set(data, path, value)
        lint(dumped(data))


def _set(data: Any, path: str, value: Any) -> None:
    keys = path.split("/")[1:]
    for key in keys[:-1]:
        try:
            data = data[int(key)] if isinstance(data, list) else data[key]
        except (KeyError, IndexError, TypeError, ValueError):
            return  # an earlier change took the parent away
    if isinstance(data, list):
        data[:] = [value if str(index) == keys[-1] else item for index, item in enumerate(data)]
    elif isinstance(data, dict):
        data[keys[-1]] = value


class TestSuppression:
    ODD_BLOCKS = dumped(overlaid({"/protocol/design/blocks": 5}))

    def found(self, comment: str, today: date = date(2026, 6, 1)) -> list[str]:
        return codes(commented(self.ODD_BLOCKS, {"/protocol/design/blocks": comment}), today=today)

    def test_above_the_line(self) -> None:
        assert self.found("# speclint: ignore[SL518] a pilot") == []

    def test_on_the_line(self) -> None:
        source = self.ODD_BLOCKS.replace(b"blocks: 5", b"blocks: 5  # speclint: ignore[SL518] a pilot")
        assert codes(source) == []

    def test_several_codes(self) -> None:
        assert self.found("# speclint: ignore[SL518, SL409] a pilot") == ["SL901"]

    def test_another_line_is_not_silenced(self) -> None:
        source = commented(self.ODD_BLOCKS, {"/name": "# speclint: ignore[SL518] a pilot"})
        assert sorted(codes(source)) == ["SL518", "SL901"]

    def test_end_of_validity(self) -> None:
        comment = "# speclint: ignore[SL518] a pilot (until 2026-06-01)"
        assert self.found(comment) == []
        assert sorted(self.found(comment, date(2026, 6, 2))) == ["SL518", "SL903"]

    def test_a_rule_that_was_not_run_is_not_called_unused(self) -> None:
        source = commented(dumped(good()), {"/name": "# speclint: ignore[SL518] a pilot"})
        assert codes(source, select=["SL2", "SL9"]) == []

    def test_it_is_reported_with_what_it_silences(self) -> None:
        source = commented(self.ODD_BLOCKS, {"/protocol/design/blocks": "# speclint: ignore[SL518] a pilot"})
        ((suppression, diagnostic),) = inspect(document.parse(source, "x"), RULES).suppressed
        assert (suppression.reason, diagnostic.path) == ("a pilot", "/protocol/design/blocks")


class TestRendering:
    SOURCE = dumped(overlaid({"/protocol/design/blocks": 5, "/pair/speculative/rejection_sample_method": "strict"}))

    def test_text_shows_place_caret_help_and_second_span(self) -> None:
        shown = render.text(report(self.SOURCE))
        number = self.SOURCE.decode().splitlines().index("    rejection_sample_method: strict") + 1
        assert f"--> dir/x.spec.yaml:{number}:30" in shown
        assert f"{number} |     rejection_sample_method: strict\n   |                              \x1b" in shown
        assert "= help: write 6" in shown and "vLLM 0.32.0" in shown and "= docs: docs/rules.md#sl518" in shown

    def test_text_never_steers_the_terminal(self) -> None:
        source = dumped(overlaid({"/pair/target/revision": "\x1b[2J\x07main"}))
        assert "\x1b[2J" not in render.text(report(source)) and "\x07" not in render.text(report(source))

    def test_a_long_line_is_cut_around_the_place(self) -> None:
        source = b"schema: pair-spec/v1\npair: {x: " + b"y" * 5000 + b", target: {model: org/a, revision: main}}\n"
        assert all(len(line) < 400 for line in render.text(report(source)).splitlines())

    def test_json_has_the_keys_of_the_contract(self) -> None:
        document_ = json.loads(render.as_json([report(self.SOURCE)]))
        (file,) = document_["files"]
        wanted = {"code", "name", "severity", "path", "line", "column", "end_line", "end_column", "message", "help", "url"}
        assert all(wanted <= record.keys() for record in file["diagnostics"])
        assert document_["summary"]["error"] == 2

    def test_github_escapes(self) -> None:
        source = dumped(overlaid({"/pair/target/revision": "a,b:c%\nd"}))
        lines = render.github([report(source)]).splitlines()
        assert all(line.startswith("::") for line in lines)
        assert any("title=SL201 revision-is-mutable::" in line and "%25%0Ad" in line for line in lines)

    def test_wide_characters_do_not_shift_the_caret(self) -> None:
        source = dumped(overlaid({"/pair/target/revision": "main"})).replace(b"revision: main", "revision: 模型".encode(), 1)
        shown = render.text(report(source))
        assert "\x1b[31m\x1b[1m^^^^\x1b[0m" in shown
