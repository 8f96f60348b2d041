"""Attempts: on disk before anything is measured, counted whatever a spec calls itself; nothing to see before the last block."""

from __future__ import annotations

import io
import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from sealed_run import Sealed
from stand_in_run import engine_facts, made, spec_data, spec_text
from trust_sample import data_of

from specrun import cli, launch, ledger, prepare, record, run, session
from specrun.errors import EnvironmentTrouble, Refused, SpecrunError
from specrun.progress import Progress

pytestmark = pytest.mark.thorough

# --- counting ---


def renamed(data: dict[str, Any]) -> None:
    data |= {"name": "another", "purpose": "Another?", "lock": {"format": 2}}


def other_k(data: dict[str, Any]) -> None:
    data["pair"]["speculative"]["num_speculative_tokens"] = 4


def other_criterion(data: dict[str, Any]) -> None:
    data["protocol"]["criteria"][0]["at_most"] = 0.95


def other_draft(data: dict[str, Any]) -> None:
    data["pair"]["speculative"]["model"] = "another"


@pytest.mark.parametrize(
    ("change", "pair", "spec"), [(renamed, 2, 2), (other_k, 2, 1), (other_criterion, 2, 1), (other_draft, 1, 1)]
)
def test_what_counts_as_the_same_pair_and_the_same_spec(
    tmp_path: Path, change: Callable[[dict[str, Any]], None], pair: int, spec: int
) -> None:
    path, data = tmp_path / "runs" / "ledger.jsonl", spec_data()
    assert ledger.add(path, "r1", data, "t") == {"pair": 1, "spec": 1}
    change(data)
    assert ledger.add(path, "r2", data, "t") == {"pair": pair, "spec": spec}
    assert [json.loads(line)["run"] for line in path.read_text().splitlines()] == ["r1", "r2"]
    assert "num_speculative_tokens" in data["pair"]["speculative"]


def test_results_from_elsewhere_are_attempts_too(tmp_path: Path) -> None:
    path, data = tmp_path / "ledger.jsonl", spec_data()
    ledger.add(path, "r1", data, "t")
    data["results"] = [{"id": "r1"}, {"id": "elsewhere"}]  # the first is in the ledger already
    assert ledger.add(path, "r2", data, "t") == {"pair": 3, "spec": 3}


def test_runs_that_begin_at_once_all_count(tmp_path: Path) -> None:
    children = []
    for number in range(8):
        if not (child := os.fork()):
            ledger.add(tmp_path / "ledger.jsonl", f"r{number}", spec_data(), "t")
            os._exit(0)
        children.append(child)
    assert [os.waitpid(child, 0)[1] for child in children] == [0] * 8
    assert ledger.add(tmp_path / "ledger.jsonl", "last", spec_data(), "t") == {"pair": 9, "spec": 9}


# --- before anything is measured ---


@pytest.fixture
def events(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is made durable and what is written, in order."""
    seen: list[str] = []
    fsync, write_json = os.fsync, record.write_json

    def synced(fd: int) -> None:
        path = Path(f"/proc/self/fd/{fd}").readlink()
        size = path.stat().st_size if path.is_file() else 0
        seen.append(f"fsync {path.name}" + (" empty" if path.is_file() and not size else ""))
        fsync(fd)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(record, "write_json", lambda path, value: (seen.append(path.name), write_json(path, value)))
    return seen


def test_an_attempt_is_on_disk_before_anything_of_its_run(tmp_path: Path, events: list[str]) -> None:
    begun = made(tmp_path)
    assert events[:2] == ["fsync ledger.jsonl", "fsync runs"]
    assert [name for name in events if not name.startswith("fsync")] == ["plan.json"]
    (row,) = ledger.attempts(tmp_path / "runs" / "ledger.jsonl")
    assert row == {"run": begun.plan["id"], "time": begun.plan["started"], **ledger.keys(begun.data)}
    assert begun.plan["attempts"] == {"pair": 1, "spec": 1}


def test_without_an_attempt_on_disk_nothing_is_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fsync", broken)
    with pytest.raises(EnvironmentTrouble, match=r"cannot be written: .*Input/output error"):
        made(tmp_path)
    assert [path.name for path in (tmp_path / "runs").iterdir()] == ["ledger.jsonl"]


@pytest.fixture
def measuring(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Everything around a run but the run itself; gives the attempts on disk whenever measuring would begin."""
    seen: list[int] = []

    def measured(begun: run.Run, **_: object) -> int:
        seen.append(len(list(ledger.attempts(begun.folder.parent / "ledger.jsonl"))))
        return 0

    monkeypatch.setattr(prepare, "checked", lambda path, _: data_of(path))
    monkeypatch.setattr(prepare, "artifacts", lambda *_: None)
    monkeypatch.setattr(prepare, "approvals", lambda *_: [])
    monkeypatch.setattr(launch, "probe", lambda _: engine_facts())
    monkeypatch.setattr(session, "measured", measured)
    return seen


def execute(place: Path, **options: Any) -> int:
    path = place / "x.spec.yaml"
    path.write_text(spec_text(), encoding="utf-8")
    return session.execute(path, key=None, signer=None, quiet=True, python="python", runs=place / "runs", **options)


def test_every_way_to_begin_a_run_is_an_attempt_and_going_on_is_none(tmp_path: Path, measuring: list[int]) -> None:
    execute(tmp_path)
    execute(tmp_path, only_establish=True)
    execute(tmp_path, unapproved=True)
    assert measuring == [1, 2, 3]
    folder = next((tmp_path / "runs").glob("*/plan.json")).parent
    session.resumed(folder, key=None, signer=None, quiet=True)
    assert measuring == [1, 2, 3, 3]


def test_a_refused_run_is_no_attempt(tmp_path: Path, measuring: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise Refused("not approved")

    monkeypatch.setattr(prepare, "approvals", refuse)
    with pytest.raises(Refused):
        execute(tmp_path)
    assert measuring == [] and not (tmp_path / "runs").exists()


# --- nothing to see before the last block ---

SHOWN = (
    r"first starts done \(\d+ s so far[^()]*\)",
    r"block \d of 2 done \(\d+ s so far[^()]*\)",
    r"\d+ s, of which \d+ s \([\d.]+%\) beside starts and stops of servers, warm-up and requests",  # of the run as a whole
)


def test_progress_shows_no_figure_of_any_arm(sealed: Sealed) -> None:
    lines = sealed.progress.splitlines()
    assert [line for line in lines if not any(re.fullmatch(pattern, line) for pattern in SHOWN)] == []
    assert len(lines) == 4


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_shows_where_the_run_is_and_how_long_it_takes() -> None:
    progress = Progress(4, stream=Terminal())
    for label in ("block 1: target c1-varied", "block 1: pair c1-varied"):
        progress.step(label)
        progress.requests(3, 8)
        progress.finished()
    shown = [text for text in progress.stream.getvalue().split("\r\x1b[K") if text]  # type: ignore[attr-defined]
    words = r"\[\d/4\] block 1: (target|pair) c1-varied(, request 3/8)?(, about \d+ (s|min) left)?"
    assert [text for text in shown if not re.fullmatch(words, text)] == []


def test_an_unfinished_run_has_no_report(sealed: Sealed, tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_bytes((sealed.run.folder / "plan.json").read_bytes())
    with pytest.raises(SpecrunError, match="is not finished"):
        session.result_of(tmp_path, -1)


def test_establishing_alone_shows_no_time(sealed: Sealed, capsys: pytest.CaptureFixture[str]) -> None:
    session.establishment(sealed.run)
    (sealed.run.folder / "establishment.json").unlink()
    told = capsys.readouterr().out
    assert "drafts in" in told and not re.search(r"\d ?m?s\b|tok/s|ratio|per second", told)


# --- the count is a lower bound ---


def test_result_and_report_say_at_least(sealed: Sealed) -> None:
    entry = data_of(sealed.spec)["results"][0]
    assert entry["attempts"] == sealed.run.plan["attempts"] == {"pair": 1, "spec": 1}
    assert any("at least 1 of this pair, with any K, and at least 1 of this spec" in sentence for sentence in entry["scope"])
    for form in ("text", "markdown"):
        done = CliRunner().invoke(cli.cli, ["report", str(sealed.spec), "--format", form], standalone_mode=False)
        assert "attempts known here: at least 1 of this pair, at least 1 of this spec" in done.output
