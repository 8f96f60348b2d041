"""Every rule against its cases: `tests/rules/SLnnn/bad_*.yaml` must say what the `.out` beside it says, `ok_*.yaml` nothing of
that rule. `UPDATE_SNAPSHOTS=1 pytest tests/test_rules.py` rewrites the `.out` files; read their diff."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from spec_cases import RULES, case, dumped, good, lint

from speclint.diagnostic import Diagnostic
from speclint.rules import Rule, rules

BAD = sorted(RULES.glob("SL*/bad_*.yaml"))
OK = sorted(RULES.glob("SL*/ok_*.yaml"))


def said(diagnostics: list[Diagnostic], code: str) -> str:
    """A line per diagnostic; that nobody has approved the spec is said of every case, and shown of its own only."""
    shown = [item for item in diagnostics if item.code != "SL601" or code == "SL601"]
    return "".join(f"{d.code} {d.severity} {d.path or f'line {d.line}'}: {d.message}\n" for d in shown)


@pytest.mark.parametrize("path", BAD, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_bad_case_is_found(path: Path) -> None:
    found = case(path)
    assert path.parent.name in {diagnostic.code for diagnostic in found}
    snapshot = path.with_suffix(".out")
    if os.environ.get("UPDATE_SNAPSHOTS"):
        snapshot.write_text(said(found, path.parent.name), encoding="utf-8")
    assert said(found, path.parent.name) == snapshot.read_text(encoding="utf-8")


@pytest.mark.parametrize("path", OK, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_quiet_control_is_quiet(path: Path) -> None:
    assert [item.message for item in case(path) if item.code == path.parent.name] == []


def test_good_spec_passes_without_a_word() -> None:
    assert {diagnostic.code for diagnostic in lint(dumped(good()))} == {"SL601"}


@pytest.mark.parametrize("rule", rules().values(), ids=lambda rule: rule.code)
def test_rule_has_cases_and_manual(rule: Rule) -> None:
    folder = RULES / rule.code
    assert list(folder.glob("bad_*.yaml")) or rule.code in MADE_BY_PROGRAM, "a failing case is missing"
    assert rule.manual.startswith(f"{rule.code} {rule.name}: ")
    for part in ("Fails:", "Passes:", "Way out:"):
        assert f"\n{part}" in rule.manual
    assert rule.summary.endswith((".", ";")) and "TODO" not in rule.manual


def test_every_case_folder_has_a_rule() -> None:
    assert {path.parent.name for path in [*BAD, *OK]} <= rules().keys()


def test_snapshots_have_cases() -> None:
    assert {path.with_suffix("") for path in RULES.glob("SL*/*.out")} == {path.with_suffix("") for path in BAD}


def test_codes_are_unique_and_sorted() -> None:
    codes = list(rules())
    assert codes == sorted(codes) and all(re.fullmatch(r"SL\d{3}", code) for code in codes)


MADE_BY_PROGRAM = {"SL602", "SL603", "SL604", "SL605", "SL606", "SL608", "SL610", "SL611", "SL612", "SL613", "SL614", "SL615"}
"""Rules about signed entries: tests/test_result_rules.py signs and changes entries as the tools do."""
