"""Nothing is lost: a run that is killed anywhere, or whose disk or clock fails it, goes on and ends like an undisturbed one.

SPECPAIR_KILLS in the environment is the number of random points at which the kill test kills; 50 takes minutes.
"""

from __future__ import annotations

import errno
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
from contextlib import redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from stand_in_run import made
from trust_sample import SPEC, data_of, make_key, write_trust

from specrun import blocks, conclude, drive, entry, manifest, prepare, record, run, session
from specrun.approve import approve
from specrun.errors import EnvironmentTrouble, Refused
from specrun.progress import Progress
from specrun.run import Run

pytestmark = pytest.mark.thorough

TINY = (("blocks: 4", "blocks: 2"), ("concurrency: [2, 1], requests: 6", "concurrency: [1], requests: 4"))
ONE_LEVEL = ("concurrency: 2, at_least: 0.95", "concurrency: 1, at_least: 0.95")
KILLS, SEED = int(os.environ.get("SPECPAIR_KILLS", "1")), 20261130
COUNTS = re.compile(r"requests|.*tokens|drafts|acceptance_rate.*|mean_accepted_length|tokens_per_step|decode_steps|failed_.*")
# The program itself, going on with a prepared run. It kills itself at the given point: a file of the run that is written,
# renamed or a folder made, a server started, a request recorded. Without a point it says in the end how many it passed; with
# one its clock is 25 years late until it concludes, which must not show either. Windows are not voided because the machine is
# busy.
PROGRAM = """
import os, signal, sys
from pathlib import Path
from specrun import blocks, cli, device, drive, entry, prepare, record, run

runs, name, left = sys.argv[1], sys.argv[2], int(sys.argv[3])
device.PLACE = Path(runs)
drive.Watch.complaint = lambda *_: None
if left:
    blocks.now = run.now = lambda: "2001-01-01T00:00:00Z"
prepare.artifacts = lambda *_: None
line = record.Record.line

def point():
    global left
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)

def recorded(self):
    point()
    return line(self)

def audit(event, args):
    written = event == "open" and runs in str(args[0]) and any(c in str(args[1]) for c in "wxa+")
    if written or event in ("os.rename", "os.mkdir", "subprocess.Popen") and runs in str(args):
        point()

record.Record.line = recorded
sys.addaudithook(audit)
sys.argv = ["specrun", "run", "--resume", name, "--runs", runs, "--quiet"]
try:
    cli.main()
finally:
    print("points", -left, file=sys.stderr)
"""


@dataclass(frozen=True, slots=True)
class Undisturbed:
    """What a run that nothing disturbs says in all that is not time, and the number of points at which it can be killed."""

    run: Run
    timeless: dict[str, Any]
    points: int

    def copied(self, place: Path, *without: str) -> Run:
        """Its folder, as if it had ended before these files were written."""
        copy = Run(place / self.run.folder.name, self.run.plan)
        shutil.copytree(self.run.folder, copy.folder)
        for name in without:
            (copy.folder / name).unlink()
        return copy


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in PROGRAM: a busy machine voids no window, and the empty model folders are what the lock says."""
    monkeypatch.setattr(drive.Watch, "complaint", lambda *_: None)
    monkeypatch.setattr(prepare, "artifacts", lambda *_: None)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    whole = tiny(tmp_path_factory.mktemp("undisturbed"))
    done = killed_at(whole, 0)
    assert done.returncode in (10, 11), done.stderr
    found = re.search(r"points (\d+)", done.stderr)
    assert found
    return Undisturbed(whole, timeless(whole), int(found[1]))


def tiny(folder: Path) -> Run:
    return made(folder, *TINY, ONE_LEVEL)


def killed_at(of: Run, point: int) -> subprocess.CompletedProcess[str]:
    """The program on that run, killed at that point (0: not at all)."""
    words = [sys.executable, "-c", PROGRAM, str(of.folder.parent), of.folder.name, str(point)]
    return subprocess.run(words, capture_output=True, text=True, check=False, timeout=120)


def resumed(of: Run) -> None:
    with redirect_stdout(StringIO()):
        session.resumed(of.folder, key=None, signer=None, quiet=True)


def timeless(of: Run) -> dict[str, Any]:
    """All that a finished run says but times, and verdicts that rest on times."""
    assert manifest.differences(of.folder, manifest.read(of.folder)) == []
    found = entry.read_conclusion(of)
    windows = [(info, list(record.read(path))) for info, path in conclude.read_windows(of)]
    return {
        "established": found["established"],
        "starts": {arm: facts["starts"] for arm, facts in found["arms"].items()},
        "config_diff": found["config_diff"],
        "scope": found["scope"],
        "verdicts": [v for v in found["verdicts"] if v["id"] in ("accepted", "capacity")],
        "order": [(info["block"], info["arm"], info["workload"], info["concurrency"]) for info, _ in windows],
        "counts": [counts(conclude.window_figures(of, info, rows)) for info, rows in windows],
        "answers": answers(of),
        "prompts": {path.name: path.read_text() for path in (of.folder / "prompts").iterdir()},
    }


def answers(of: Run) -> list[Any]:
    """Of every window, each request with the digests of what it asked and got."""
    names = ("index", "digest", "prompt_digest", "error")
    return [sorted([row[name] for name in names] for row in record.read(path)) for _, path in conclude.read_windows(of)]


def counts(figures: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in figures.items() if COUNTS.fullmatch(name)}


def test_a_run_killed_anywhere_goes_on_and_ends_like_an_undisturbed_one(tmp_path: Path, undisturbed: Undisturbed) -> None:
    assert undisturbed.points > 90 and len(undisturbed.timeless["answers"]) == 2 * 2 * 2
    for point in random.Random(SEED).sample(range(1, undisturbed.points + 1), KILLS):
        place = tmp_path / str(point)
        place.mkdir()
        broken = tiny(place)
        assert killed_at(broken, point).returncode == -signal.SIGKILL, point
        assert not (broken.folder / manifest.NAME).exists(), point
        resumed(broken)
        assert timeless(broken) == undisturbed.timeless, f"killed at point {point} of {undisturbed.points}"


def test_a_run_killed_between_conclusion_and_manifest_is_not_finished(tmp_path: Path, undisturbed: Undisturbed) -> None:
    broken = undisturbed.copied(tmp_path, manifest.NAME)
    resumed(broken)
    assert timeless(broken) == undisturbed.timeless


def test_a_full_disk_is_said_and_what_was_measured_is_kept(
    tmp_path: Path, undisturbed: Undisturbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped, name = made(tmp_path, *TINY, ONE_LEVEL, first=False), "b01/pair/start.json"
    with monkeypatch.context() as patch:
        patch.setattr(record, "write_text", full_for(name))
        with pytest.raises(EnvironmentTrouble, match="No space left on device") as caught:
            measured(stopped)
    assert str(stopped.folder) in caught.value.message and "--resume" in caught.value.hint
    assert not (stopped.folder / name).exists()
    kept = [path.read_bytes() for path in sorted(stopped.folder.glob("b01/target/*/records.jsonl"))]
    assert len(kept) == 2
    measured(stopped)
    assert [path.read_bytes() for path in sorted(stopped.folder.glob("b01.void1/target/*/records.jsonl"))] == kept
    assert answers(stopped) == undisturbed.timeless["answers"][:4]


def measured(of: Run) -> None:
    blocks.measure(of, Progress(0, quiet=True), 1)


def full_for(name: str) -> Any:
    """`record.write_text` on a disk with no room for one file: half of its text is written, as it would be."""
    whole = record.write_text

    def write(path: Path, text: str) -> None:
        if path.as_posix().endswith(name):
            path.parent.mkdir(exist_ok=True)
            path.with_name(path.name + ".part").write_text(text[: len(text) // 2], encoding="utf-8")
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        whole(path, text)

    return write


def test_records_that_no_longer_fit_end_the_run_with_a_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stopped = made(tmp_path, *TINY, ONE_LEVEL, first=False)
    line, room = record.Record.line, iter(range(5))

    def fits(self: record.Record) -> str:
        if next(room, None) is None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return line(self)

    monkeypatch.setattr(record.Record, "line", fits)
    with pytest.raises(EnvironmentTrouble, match="No space left on device"):
        measured(stopped)
    (file,) = stopped.folder.rglob("records.jsonl")
    assert [json.loads(text)["error"] for text in file.read_text().splitlines()] == [None] * 3  # two were for the warm-up


def test_a_conclusion_that_cannot_be_written_is_a_message(
    tmp_path: Path, undisturbed: Undisturbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that was made read-only after the last block: the run is whole and only wants to be concluded."""
    stopped = undisturbed.copied(tmp_path, manifest.NAME, entry.NAME)

    def refused(path: Path, text: str) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))

    with monkeypatch.context() as patch:
        patch.setattr(record, "write_text", refused)
        with pytest.raises(EnvironmentTrouble, match="Read-only file system"):
            entry.finish(stopped)
    entry.finish(stopped)
    assert timeless(stopped) == undisturbed.timeless


def test_a_folder_in_which_no_run_can_be_made_is_named(tmp_path: Path, undisturbed: Undisturbed) -> None:
    with pytest.raises(EnvironmentTrouble, match="/proc/nothing cannot be written"):
        run.create(tmp_path / "x.spec.yaml", undisturbed.run.data, [], {}, Path("/proc/nothing"), "python")


def test_a_clock_that_is_set_back_is_said_and_costs_nothing_measured(
    tmp_path: Path, undisturbed: Undisturbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    early = undisturbed.copied(tmp_path, manifest.NAME, entry.NAME)
    with monkeypatch.context() as patch:
        patch.setattr(entry, "now", lambda: "2001-01-01T00:00:00Z")
        with pytest.raises(EnvironmentTrouble, match=r"the clock was set back: run .* now it is 2001-01-01T00:00:00Z"):
            entry.finish(early)
    assert not (early.folder / entry.NAME).exists()
    entry.finish(early)
    assert timeless(early) == undisturbed.timeless


def test_an_approval_from_this_clocks_future_is_said_before_anything_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that began before its approval would be refused by everyone who verifies it."""
    write_trust(tmp_path, alice=make_key(tmp_path, "alice"))
    path = tmp_path / "x.spec.yaml"
    path.write_text(SPEC)
    approve(path, tmp_path / "alice", show=len)
    assert len(prepare.approvals(path, data_of(path), None)) == 1
    monkeypatch.setattr(prepare, "now", lambda: "2001-01-01T00:00:00Z")
    with pytest.raises(Refused, match=r"was given at .* and the clock of this machine says 2001-01-01T00:00:00Z"):
        prepare.approvals(path, data_of(path), None)
