"""Whole runs on the stand-in server: what they leave, and what is left of them however they end."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jsonschema
import psutil
import pytest
from stand_in_run import made

from speclint.data import spec_schema
from specrun import blocks, conclude, entry, manifest, plan, prepare, record, run, session
from specrun.end import end
from specrun.errors import EnvironmentTrouble, Refused, SpecrunError
from specrun.launch import ServerFailed
from specrun.progress import Progress
from specrun.report.text import report
from specrun.run import Run

pytestmark = pytest.mark.thorough

SHORT = ("blocks: 4", "blocks: 2")
RESIDENT = ("servers: restart", "servers: resident")
CELLS = ["c1-repetitive", "c1-varied", "c2-repetitive", "c2-varied"]
# The program itself, going on with a run that was prepared; only the lock of its empty model folders is not asked for.
PROGRAM = """
import sys
from pathlib import Path
from specrun import cli, device, prepare
device.PLACE = Path(sys.argv[1])
prepare.artifacts = lambda *_: None
sys.argv = ["specrun", "run", "--resume", sys.argv[2], "--runs", sys.argv[1], "--quiet"]
cli.main()
"""
COUNTS = re.compile(r"requests|.*tokens|drafts|acceptance_rate.*|mean_accepted_length|tokens_per_step|decode_steps|failed_.*")


@pytest.fixture(autouse=True)
def nothing_left(tmp_path: Path) -> Iterator[None]:
    """No server and no folder of sockets may outlive a test, whatever it did to the run."""
    yield
    assert left_by(tmp_path) == []


def left_by(place: Path) -> list[Any]:
    """Servers of the models in `place` that still run, and folders of sockets of the runs there."""
    runs = [planned.parent for planned in place.glob("runs/*/plan.json")]
    return [*servers_of(place), *(folder for run_folder in runs for folder in socket_folders(run_folder))]


def servers_of(place: Path) -> list[psutil.Process]:
    found = psutil.process_iter(["cmdline", "status"])
    return [p for p in found if str(place / "model") in (p.info["cmdline"] or []) and p.info["status"] != psutil.STATUS_ZOMBIE]


def socket_folders(folder: Path) -> list[Path]:
    name = json.loads((folder / "plan.json").read_text(encoding="utf-8"))["id"]
    return list(Path("/tmp").glob(f"specrun-{hashlib.sha256(name.encode()).hexdigest()[:12]}-*"))


class Watched(Progress):
    """Keeps the labels of all steps."""

    __slots__ = ("seen",)

    def step(self, label: str) -> None:
        self.seen = [*getattr(self, "seen", []), label]


@dataclass(frozen=True, slots=True)
class Whole:
    run: Run
    conclusion: dict[str, Any]
    steps: list[str]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Whole]:
    """An undisturbed run of four blocks, with a credential in the caller's environment."""
    place, progress = tmp_path_factory.mktemp("whole"), Watched(0, quiet=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HF_TOKEN", "hf_very_secret")
        assert plan.secrets() == {"HF_TOKEN": "hf_very_secret"}
        undisturbed = made(place)
        blocks.measure(undisturbed, progress)
    yield Whole(undisturbed, entry.finish(undisturbed), progress.seen)
    assert left_by(place) == []


def measured(of: Run, last: int | None = None) -> dict[str, Any]:
    """Measure and conclude in this process."""
    blocks.measure(of, Progress(blocks.steps(of), quiet=True), last)
    return entry.finish(of)


def begun(of: Run) -> subprocess.Popen[str]:
    """The program in a process of its own."""
    words = [sys.executable, "-c", PROGRAM, str(of.folder.parent), of.folder.name]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=hearing_interrupts)


def hearing_interrupts() -> None:
    """Background jobs of a shell ignore SIGINT, and so would what they start: the tests must not depend on that."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def wait_for(path: Path, running: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 40
    while not path.exists():
        assert running.poll() is None, running.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.01)


def read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def windows(of: Run) -> list[dict[str, Any]]:
    return [info for info, _ in conclude.read_windows(of)]


def counts(of: Run, blocks: tuple[int, ...]) -> list[dict[str, Any]]:
    """All figures of some blocks that are not time, window by window."""
    out = []
    for info, path in conclude.read_windows(of):
        if info["block"] in blocks:
            found = conclude.window_figures(of, info, record.read(path))
            head = {key: info[key] for key in ("block", "arm", "workload", "concurrency")}
            out.append(head | {name: value for name, value in found.items() if COUNTS.fullmatch(name)})
    assert {"acceptance_rate", "acceptance_rate_3", "output_tokens", "drafts", "decode_steps"} <= out[-1].keys()
    return out


def answers(of: Run, blocks: tuple[int, ...]) -> list[Any]:
    rows = [record.read(path) for info, path in conclude.read_windows(of) if info["block"] in blocks]
    return [sorted((row["index"], row["digest"], row["prompt_digest"]) for row in window) for window in rows]


def entry_of(of: Run) -> dict[str, Any]:
    """The entry that would be signed; it must have the schema's shape in all but its signature."""
    found = entry.unsigned(of, {}, "me@example.com")
    locked = found | {"signature": "none", "sections": found["sections"] | {"lock": found["spec"]}}  # the spec has no lock
    schema = {"$defs": spec_schema()["$defs"], "$ref": "#/$defs/result"}
    jsonschema.Draft202012Validator(schema).validate(locked)
    return found


def test_a_whole_run_is_established_and_judged(whole: Whole) -> None:
    checks = whole.conclusion["established"]["checks"]
    assert [c for c in checks if c["outcome"] != "ok"] == [] and len(checks) == 11
    assert whole.conclusion["established"]["verdict"] == "established"
    verdicts = {v["id"]: v["verdict"] for v in whole.conclusion["verdicts"]}
    assert (verdicts["capacity"], verdicts["accepted"]) == ("met", "met")
    assert whole.conclusion["arms"]["pair"]["starts"] == 5
    text = report(whole.run.data, entry_of(whole.run))
    assert "acceptance rate" in text and "Yes: 11 checks." in text
    again = entry.six_digits(conclude.conclusion(run.load(whole.run.folder)))
    assert again | {"ended": whole.conclusion["ended"]} == whole.conclusion


def test_a_whole_run_leaves_this(whole: Whole) -> None:
    folder = whole.run.folder
    named = {path.name for path in folder.iterdir() if not path.name.startswith(".")}
    assert named == {*"plan.json first first.json prompts scores b01 b02 b03 b04 conclusion.json manifest.json".split()}
    assert len(list((folder / "prompts").iterdir())) == 4 * 2
    for block in ("b01", "b02", "b03", "b04"):
        assert {path.name for path in (folder / block).iterdir()} == {"target", "pair", "block.json"}
        assert {path.name for path in (folder / block / "pair").iterdir()} == {*CELLS, "start.json", "server.log"}
    assert not list((folder / "first").rglob("window.json"))
    found = list(conclude.read_windows(whole.run))
    assert len(found) == 4 * 2 * 4
    for info, path in found:
        assert info["records"]["sha256"] == record.file_digest(path)
        assert sum(1 for _ in record.read(path)) == info["requests"] == 6
        assert info["void"] is None and info["compiled"] is False
    assert manifest.differences(folder, manifest.read(folder)) == []


def test_nothing_is_held_by_request_beyond_its_block(whole: Whole) -> None:
    seen = conclude.survey(whole.run)
    assert seen.prompts.compared == 4 * 2 * 4 * 6
    assert [(w.prompts, w.tokens) for w in seen.windows] == [({}, {})] * 32
    assert all(w.steps == w.info["counters"]["itl_count"] for w in seen.windows)


def test_a_later_start_with_another_configuration_is_not_established(whole: Whole, tmp_path: Path) -> None:
    copied = Run(tmp_path / whole.run.folder.name, whole.run.plan)
    shutil.copytree(whole.run.folder, copied.folder)
    path = copied.folder / "b03" / "pair" / "start.json"
    odd = read(path)
    odd["config"]["scheduler_config"]["max_num_seqs"] = 8
    record.write_json(path, odd)
    conclusion = conclude.conclusion(copied)
    check = conclusion["established"]["checks"][-1]
    told = "not what the first start ran: /vllm_config/scheduler_config/max_num_seqs in the start of pair, block 3"
    assert (check["outcome"], check["detail"]) == ("failed", told)
    assert conclusion["verdicts"] == []


def test_order_is_mirrored_in_every_second_block(whole: Whole) -> None:
    order = [label for label in whole.steps if label.startswith("block") and "warm-up" not in label]
    for block, arms, cells in (
        (1, ("target", "pair"), CELLS),
        (2, ("pair", "target"), CELLS[::-1]),
        (3, ("target", "pair"), CELLS),
    ):
        mine = [label.partition(": ")[2] for label in order if label.startswith(f"block {block}:")]
        assert mine == [word for arm in arms for word in (f"starting {arm}", *(f"{arm} {cell}" for cell in cells))]
    assert whole.steps[:2] == ["first start, unmeasured: starting target", "first start, unmeasured: target c1-repetitive"]


def test_prompts_are_each_blocks_own_and_the_same_in_all_arms(whole: Whole) -> None:
    sent: dict[tuple[int, str, int], list[str]] = {}
    for info, path in conclude.read_windows(whole.run):
        if info["workload"] == "varied":
            rows = sorted(record.read(path), key=lambda row: row["index"])
            sent[info["block"], info["arm"], info["concurrency"]] = [row["prompt_digest"] for row in rows]
    assert sent[1, "target", 1] == sent[1, "pair", 1] == sent[1, "pair", 2]
    assert not set(sent[1, "target", 1]) & set(sent[2, "target", 1])
    offsets = {(w["block"], w["concurrency"], w["workload"], *w["stagger"]) for w in windows(whole.run)}
    assert len(offsets) == 4 * 4  # the same in both arms


def test_credentials_are_handed_on_and_never_written(whole: Whole) -> None:
    for path in whole.run.folder.rglob("*"):
        assert not path.is_file() or not re.search(rb"hf_(very_)?secret", path.read_bytes()), path
    config = read(whole.run.folder / "b01" / "pair" / "start.json")["config"]
    assert config["model_config"]["hf_token"] == "redacted"


def test_resident_servers_start_once_and_give_no_plain_verdict(tmp_path: Path) -> None:
    resident = made(tmp_path, SHORT, RESIDENT)
    conclusion = measured(resident)
    assert {path.name for path in (resident.folder / "resident").iterdir()} == {"pair", "target"}
    assert not list(resident.folder.glob("b??/*/start.json"))
    assert conclusion["established"]["verdict"] == "established", conclusion["established"]["checks"]
    assert {v["verdict"] for v in conclusion["verdicts"]} <= {"met_one_start", "not_met", "undecided"}
    assert conclusion["arms"]["pair"]["starts"] == 2
    entry_of(resident)


@pytest.mark.parametrize("changes", [(), (RESIDENT,)], ids=["restart", "resident"])
def test_a_killed_run_goes_on_and_ends_like_an_undisturbed_one(
    tmp_path: Path, changes: tuple[Any, ...], whole: Whole, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = made(tmp_path, SHORT, *changes)
    folder, running = broken.folder, begun(broken)
    wait_for(folder / "b02" / "pair" / CELLS[1] / "records.jsonl", running)
    running.kill()
    running.communicate()
    kept = (folder / "b01" / "target" / CELLS[0] / "records.jsonl").read_bytes()
    assert socket_folders(folder)  # only kill -9 leaves them; going on removes them
    monkeypatch.setattr(prepare, "artifacts", lambda *_: None)
    session.resumed(folder, key=None, signer=None, quiet=True)
    assert "Was the pair established?" in capsys.readouterr().out
    assert (folder / "b01" / "target" / CELLS[0] / "records.jsonl").read_bytes() == kept
    assert (folder / "b02.void1" / "pair").is_dir() and not (folder / "b02.void1" / "block.json").exists()
    conclusion = entry.read_conclusion(broken)
    assert conclusion["established"]["verdict"] == "established", conclusion["established"]["checks"]
    assert any(sentence.startswith("1 try of a block was broken off and measured again") for sentence in conclusion["scope"])
    assert conclusion["arms"]["pair"]["starts"] == 3  # first, and two by blocks or by sessions
    assert counts(broken, (1, 2)) == counts(whole.run, (1, 2))
    assert answers(broken, (1, 2)) == answers(whole.run, (1, 2))
    entry_of(broken)
    with pytest.raises(SpecrunError, match="is finished"):
        session.resumed(folder, key=None, signer=None, quiet=True)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_run_and_its_servers(tmp_path: Path, number: signal.Signals) -> None:
    stopped = made(tmp_path, SHORT, first=False)
    running = begun(stopped)
    wait_for(stopped.folder / "b01" / "pair" / CELLS[0] / "records.jsonl", running)
    assert servers_of(tmp_path)
    os.kill(running.pid, number)
    _, told = running.communicate(timeout=30)
    assert running.returncode == 130
    assert f"specrun run --resume {stopped.folder.name} --runs {stopped.folder.parent}" in told and "Traceback" not in told
    assert (stopped.folder / "b01" / "target" / CELLS[0] / "window.json").is_file()
    assert not (stopped.folder / "conclusion.json").exists()


def test_a_run_that_is_ended_early_keeps_its_blocks_and_judges_nothing(tmp_path: Path) -> None:
    broken = made(tmp_path, ("at_most: 0.9", "at_most: 9"), ("at_least: 0.95", "at_least: 0.01"))
    folder, running = broken.folder, begun(broken)
    wait_for(folder / "b03" / "target" / CELLS[3] / "records.jsonl", running)  # blocks 1 and 2 are done
    with pytest.raises(Refused, match="another process is at work"):
        end(folder)
    running.kill()
    running.communicate()
    for leftover in socket_folders(folder):
        shutil.rmtree(leftover)
    end(folder)
    conclusion = entry.read_conclusion(broken)
    why = "the run was ended after 2 of 4 blocks"
    assert conclusion["established"]["verdict"] == "established", conclusion["established"]["checks"]
    for verdict in conclusion["verdicts"]:
        assert verdict["verdict"] == "undecided" and all(why in cell["reason"] for cell in verdict["cells"])
    assert {len(cell["blocks"]) for cell in conclusion["verdicts"][0]["cells"]} == {2}
    assert f"Nothing is judged: {why}." in " ".join(conclusion["scope"])
    assert "broken off" not in " ".join(conclusion["scope"])  # nothing was measured again
    assert (folder / "b03.void1").is_dir() and not (folder / "b03").exists()
    assert entry_of(broken)["records"]["requests"] == 2 * 2 * 4 * 6
    assert entry.recompute(folder)["verdicts"] == conclusion["verdicts"]
    with pytest.raises(SpecrunError, match="is finished"):
        end(folder)
    with pytest.raises(SpecrunError, match="is finished"):
        session.resumed(folder, key=None, signer=None, quiet=True)


def test_a_run_without_a_finished_block_cannot_be_ended_and_a_whole_one_is_concluded(tmp_path: Path) -> None:
    fresh = made(tmp_path, SHORT, first=False)
    with pytest.raises(Refused, match="no finished block"):
        end(fresh.folder)
    blocks.measure(fresh, Progress(blocks.steps(fresh), quiet=True))
    with pytest.raises(Refused, match="every block"):
        end(fresh.folder)


def test_a_cost_model_is_established_without_acceptance_and_says_nothing_of_it(tmp_path: Path) -> None:
    invented = made(tmp_path, ("protocol:\n", "protocol:\n  kind: cost_model\n"), RESIDENT, fault="placeholders:0")
    conclusion = measured(invented)
    checks = {row["check"]: row for row in conclusion["established"]["checks"]}
    assert conclusion["established"]["verdict"] == "established", checks
    assert checks["drafts are not placeholders"]["outcome"] == "skipped"
    assert conclusion["scope"][0].startswith("A cost model, not a measurement of a pair")
    assert not (invented.folder / "scores").exists()  # its answers prove nothing
    assert "A cost model, not a measurement" in report(invented.data, entry_of(invented)).partition("Verdicts")[0]


def test_each_level_sends_its_own_number_of_the_same_prompts(tmp_path: Path) -> None:
    listed = made(tmp_path, SHORT, ("requests: 6", "requests: [6, 3]"), ("warmup: 2", "warmup: [4, 2]"))
    conclusion = measured(listed)
    assert {(w["concurrency"], w["requests"]) for w in windows(listed)} == {(2, 6), (1, 3)}
    sent = {
        (info["arm"], info["workload"], info["concurrency"]): {row["index"]: row["prompt_digest"] for row in record.read(path)}
        for info, path in conclude.read_windows(listed)
        if info["block"] == 1
    }
    assert len(sent) == 8
    for (_, workload, level), prompts in sent.items():
        assert prompts == {i: d for i, d in sent["target", workload, 2].items() if i < (3 if level == 1 else 6)}
    assert conclusion["established"]["verdict"] == "established", conclusion["established"]["checks"]
    entry_of(listed)


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("exits", "the server ended with status 7: ValueError: no such model here"),
        ("exits@2", "the server ended with status 7: ValueError: no such model here"),
        ("dies:6", "it ended with status 3: RuntimeError: the engine ran out of patience"),
        ("dies:1", "it ended with status 3: RuntimeError: the engine ran out of patience"),
        ("dead:1", "the first request was refused with HTTP 500: RuntimeError: Worker failed with error 'no kernel for that'"),
    ],
)
def test_a_server_that_fails_ends_the_run_with_its_own_words(tmp_path: Path, fault: str, words: str) -> None:
    failing = made(tmp_path, SHORT, fault=fault, first=False)
    with pytest.raises(ServerFailed) as caught:
        blocks.measure(failing, Progress(1, quiet=True))
    assert words in caught.value.message
    assert str(failing.folder) in caught.value.hint
    assert not (failing.folder / "b01" / "block.json").exists()


def test_a_logged_compile_repeats_the_whole_block_once(tmp_path: Path) -> None:
    again = made(tmp_path, SHORT, fault="compile:6@1", first=False)
    measured(again, 1)
    folder = again.folder
    assert read(folder / "b01" / "block.json") == {"block": 1, "try": 2, "compiled": []}
    first = read(folder / "b01.void1" / "target" / CELLS[0] / "window.json")
    assert first["compiled"] is True and first["try"] == 1
    assert {path.name for path in (folder / "b01.void1").iterdir()} == {"target", "pair"}
    assert conclude.broken_off(again) == 0
    assert {info["try"] for info in windows(again)} == {2}


def test_a_second_compile_voids_the_cell_in_that_block(tmp_path: Path) -> None:
    twice = made(tmp_path, SHORT, fault="compile:6", first=False)  # in every start, in its first measured window
    conclusion = measured(twice, 1)
    assert read(twice.folder / "b01" / "block.json")["compiled"] == ["target c1-repetitive", "pair c1-repetitive"]
    assert not (twice.folder / "b01.void2").exists()
    ratios = {(r["workload"], r["concurrency"], r["metric"]): r["blocks"] for r in conclusion["ratios"]}
    assert ratios["repetitive", 1, "output_throughput"] == [None]
    assert None not in ratios["varied", 1, "output_throughput"]


def test_a_pair_that_does_not_draft_is_not_established_and_not_called_slow(tmp_path: Path) -> None:
    idle = made(tmp_path, SHORT, fault="no-drafts", first=False)
    conclusion = measured(idle, 1)
    assert conclusion["established"]["verdict"] == "not_established"
    assert conclusion["verdicts"] == [] and conclusion["diagnosis"] == [] and conclusion["figures"]["rows"]
    text = report(idle.data, entry_of(idle))
    assert "NO. Figures are kept; no criterion is judged." in text and "slow" not in text.partition("What it does")[0]


def test_a_fallback_line_in_any_start_is_found(tmp_path: Path) -> None:
    fallen = made(tmp_path, SHORT, fault="fallback@2", first=False)
    conclusion = measured(fallen, 1)
    check = next(c for c in conclusion["established"]["checks"] if c["check"].startswith("no fallback"))
    assert check["outcome"] == "failed" and "pair: " in check["detail"] and "Very small vocabulary" in check["detail"]


def test_one_process_at_a_time(tmp_path: Path) -> None:
    busy = made(tmp_path)
    with run.alone(busy.folder), pytest.raises(Refused, match="another process is at work"):
        blocks.measure(busy, Progress(1, quiet=True))


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("a file", encoding="utf-8")
    with pytest.raises(EnvironmentTrouble, match="cannot be written"):
        made(tmp_path)


@pytest.mark.parametrize("error", [ConnectionResetError(errno.ECONNRESET, "reset"), FileNotFoundError(2, "gone", "/elsewhere/p")])
def test_trouble_elsewhere_is_not_told_as_the_folders(tmp_path: Path, error: OSError) -> None:
    with pytest.raises(type(error)), run.kept_in(tmp_path):
        raise error


def test_a_full_disk_is_the_folders_trouble(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentTrouble, match="No space left"), run.kept_in(tmp_path):
        raise OSError(errno.ENOSPC, "No space left on device")


def test_steps_are_those_still_to_come(tmp_path: Path) -> None:
    half = made(tmp_path)
    assert blocks.steps(half) == 2 * (5 + 5 * 4) + 1  # the draft alone
    assert blocks.steps(half, 1) == 2 * (2 + 2 * 4) + 2  # and the target once more: its last start is not one of these
    record.write_json(half.folder / "first.json", {})
    for block in (1, 2):
        record.write_json(half.block_folder(block) / "block.json", {"block": block})
    assert blocks.open_blocks(half) == [3, 4] and blocks.open_blocks(half, 1) == []
    assert blocks.steps(half) == 2 * (2 + 2 * 4) + 1
    for block in (3, 4):
        record.write_json(half.block_folder(block) / "block.json", {"block": block})
    assert blocks.steps(half) == 2  # only answers are to be scored


def test_another_spec_or_engine_is_not_gone_on_with(tmp_path: Path) -> None:
    other = made(tmp_path)
    (other.folder / "plan.json").write_text(json.dumps(other.plan | {"engine": {"version": "0.31.0"}}), encoding="utf-8")
    with pytest.raises(Refused, match="the engine changed"):
        session.resumed(other.folder, key=None, signer=None, quiet=True)
    path = tmp_path / "stand-in.spec.yaml"
    path.write_text(path.read_text().replace("at_most: 0.9", "at_most: 0.8"), encoding="utf-8")
    with pytest.raises(Refused, match="changed since"):
        session.resumed(other.folder, key=None, signer=None, quiet=True)
