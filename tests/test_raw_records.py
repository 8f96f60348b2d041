"""SL609 on a run folder beside the spec: as it was, changed, incomplete, and named by somebody hostile."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from spec_cases import dumped, good, lint

from speclint.canonical import digest
from speclint.lock.tree import file_digest


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run folder of two files with its manifest."""
    folder = tmp_path / "runs" / "r1"
    (folder / "b01").mkdir(parents=True)
    (folder / "plan.json").write_text("{}")
    (folder / "b01" / "records.jsonl").write_text('{"index": 0}\n')
    manifest(folder, {name: "sha256:" + file_digest(folder / name) for name in ("plan.json", "b01/records.jsonl")})
    return folder


def manifest(folder: Path, files: dict[str, Any]) -> None:
    (folder / "manifest.json").write_text(json.dumps({"format": 1, "files": files}))


def said(folder: Path, signed: str, run_id: str = "r1") -> list[tuple[str, str]]:
    """Severity and message of SL609 for a spec two folders above the run's files."""
    data = good() | {"results": [{"id": run_id, "records": {"manifest": signed, "files": 2, "requests": 1}}]}
    found = lint(dumped(data), folder.parent.parent)
    return [(item.severity, item.message) for item in found if item.code == "SL609"]


def signed(folder: Path) -> str:
    return digest(json.loads((folder / "manifest.json").read_text())["files"])


def test_folder_as_it_was_is_quiet(run: Path) -> None:
    assert said(run, signed(run)) == []


def test_missing_folder_is_a_note(run: Path) -> None:
    assert said(run, signed(run), "r2") == [("info", "the raw records are not here (runs/r2)")]


def test_changed_record_is_an_error(run: Path) -> None:
    (run / "b01" / "records.jsonl").write_text('{"index": 1}\n')
    assert said(run, signed(run)) == [("error", "runs/r1 is not what was signed: b01/records.jsonl differs")]


def test_removed_file_is_an_error(run: Path) -> None:
    (run / "plan.json").unlink()
    assert said(run, signed(run)) == [("error", "runs/r1 is not what was signed: plan.json is missing")]


def test_manifest_that_was_made_anew_is_an_error(run: Path) -> None:
    before = signed(run)
    manifest(run, {"plan.json": "sha256:" + file_digest(run / "plan.json")})
    assert said(run, before) == [("error", "runs/r1 is not what was signed: manifest.json differs")]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"files": []}', '{"files": 3}', "\xff", '{"files": {"a\\u0000b": "x"}}'])
def test_broken_manifest_is_an_error(run: Path, text: str) -> None:
    (run / "manifest.json").write_text(text, encoding="latin-1")
    assert [severity for severity, _ in said(run, "sha256:" + "0" * 64)] == ["error"]


def test_names_that_lead_out_are_not_followed(run: Path) -> None:
    outside = run.parent / "outside"
    outside.write_text("x")
    manifest(run, {"../outside": "sha256:" + file_digest(outside)})
    assert said(run, signed(run)) == [("error", "runs/r1 is not what was signed: ../outside is missing")]
    assert said(run, signed(run), "../r1") == []
