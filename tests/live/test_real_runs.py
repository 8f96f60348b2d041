"""Real vLLM on CPU, real models, real requests: one run of each method that the examples have."""

from __future__ import annotations

import copy
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from speclint import document, lint
from speclint.canonical import rounded
from speclint.emit import entry as render_entry
from speclint.signature import load_trust, verify_entry
from specrun.entry import recompute
from specrun.verify import verify

pytestmark = [pytest.mark.live, pytest.mark.timeout(900)]
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SMALLER = [
    (r"requests: 32", "requests: 24"),
    (r"concurrency: \[1, 4\]", "concurrency: [1, 2]"),
    (r"concurrency: 4", "concurrency: 2"),
    (r"warmup: 8", "warmup: 4"),
    (r"tokens: (32|48)", "tokens: 24"),
    (r"\{workload: all, concurrency: all", "{workload: all, concurrency: 1"),
]


def tool(name: str, *words: str, cwd: Path, status: int | None = 0) -> str:
    code = f"from {name}.__main__ import main; main()"
    done = subprocess.run([sys.executable, "-c", code, *words], cwd=cwd, capture_output=True, text=True, check=False, timeout=900)
    assert status is None or done.returncode == status, f"{done.returncode}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout + done.stderr


def workplace(folder: Path, name: str) -> Path:
    """A folder with a smaller version of an example, its models, a key and the trust that goes with it; approved."""
    shutil.copytree(EXAMPLES / "models", folder / "models")
    text = (EXAMPLES / name).read_text(encoding="utf-8").partition("\nlock:")[0] + "\n"
    for pattern, new in SMALLER:
        text = re.sub(pattern, new, text)
    (folder / name).write_text(text, encoding="utf-8")
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / "key")], check=True)
    public = " ".join((folder / "key.pub").read_text(encoding="utf-8").split()[:2])
    line = f'me@example.com namespaces="pair-spec-approval,pair-spec-result" {public}\n'
    (folder / "allowed_signers").write_text(line, encoding="utf-8")
    (folder / "speclint.toml").write_text('[trust]\nallowed_signers = "allowed_signers"\n', encoding="utf-8")
    tool("speclint", "lock", name, cwd=folder)
    tool("specrun", "approve", name, "--key", "key", "--yes", cwd=folder)
    return folder / name


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    """No process of ours, no socket folder and no file of vLLM's may outlive a run."""
    before = set(Path(tempfile.gettempdir()).iterdir())
    yield
    assert not servers_of(os.getpid())
    new = {p.name for p in Path(tempfile.gettempdir()).iterdir()} - {p.name for p in before}
    assert not [name for name in new if name.startswith(("specrun-", "vllm"))], new


def servers_of(pid: int) -> list[psutil.Process]:
    """Living descendants that run vLLM; one that ends while we look is none."""
    found: list[psutil.Process] = []
    for process in psutil.Process(pid).children(recursive=True):
        try:
            if "vllm" in " ".join(process.cmdline()):
                found.append(process)
        except psutil.Error:
            continue
    return found


def run(path: Path) -> dict[str, Any]:
    """Run it; the last result of the file. Whether criteria are met depends on the machine, that it is established does not."""
    tool("specrun", "run", path.name, "--key", "key", "--quiet", cwd=path.parent, status=None)
    data = document.read(path).data
    assert data.get("results"), "no result was appended"
    entry: dict[str, Any] = data["results"][-1]
    assert entry["established"]["verdict"] == "established", entry["established"]["checks"]
    return entry


def figure(entry: dict[str, Any], workload: str, arm: str, name: str, concurrency: int = 1) -> Any:
    columns = entry["figures"]["columns"]
    rows = [dict(zip(columns, row, strict=True)) for row in entry["figures"]["rows"]]
    return next(r[name] for r in rows if (r["workload"], r["arm"], r["concurrency"]) == (workload, arm, concurrency))


def holds(path: Path) -> None:
    """The linter accepts the file, and the figures follow from the records."""
    tool("speclint", "check", path.name, cwd=path.parent)
    rows = verify(path, records=path.parent / "runs", recompute=recompute)
    assert [row for row in rows if row.outcome != "ok"] == []
    assert any("figures follow from the records" in row.claim for row in rows)


def test_draft_model_with_fresh_servers_per_block(tmp_path: Path) -> None:
    path = workplace(tmp_path, "tiny-draft.spec.yaml")
    entry = run(path)
    assert entry["arms"]["pair"]["starts"] == 5
    assert {v["verdict"] for v in entry["verdicts"]} <= {"met", "not_met", "undecided"}
    # The same prompts, greedy, exact lengths: acceptance does not depend on how busy the machine is.
    copying, varied = (figure(entry, w, "pair", "acceptance_rate_counters") for w in ("repetitive", "varied"))
    assert copying > varied
    assert figure(entry, "varied", "target", "mean_accepted_length") is None
    holds(path)
    every_changed_figure_is_noticed(path)


def every_changed_figure_is_noticed(path: Path) -> None:
    """Change each number of the entry in turn: its signature fails. For some of them, through both commands."""
    data = document.read(path).data
    entry, trust = data["results"][-1], load_trust(path)
    assert verify_entry("result", data["name"], entry, trust).ok
    numbers = [route for route, value in leaves(entry) if isinstance(value, int | float) and not isinstance(value, bool)]
    assert len(numbers) > 300
    for route in numbers[:: max(1, len(numbers) // 60)]:
        assert not verify_entry("result", data["name"], changed(entry, route), trust).ok, route
    source = path.read_text(encoding="utf-8")
    for route in numbers[:: len(numbers) // 3]:
        other = changed(entry, route)
        path.write_text(source.replace(render_entry(entry), render_entry(other)), encoding="utf-8")
        assert document.read(path).data["results"][-1] == other
        assert "SL602" in {d.code for d in lint.check(path)}
        assert any(row.outcome == "failed" for row in verify(path))
        tool("speclint", "check", path.name, cwd=path.parent, status=1)
        tool("specrun", "verify", path.name, cwd=path.parent, status=1)
    path.write_text(source, encoding="utf-8")


def leaves(value: Any, route: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else None
    if pairs is None:
        yield route, value
        return
    for key, inner in pairs:
        yield from leaves(inner, (*route, key))


def changed(entry: dict[str, Any], route: tuple[Any, ...]) -> dict[str, Any]:
    other = copy.deepcopy(entry)
    inner: Any = other
    for key in route[:-1]:
        inner = inner[key]
    inner[route[-1]] = inner[route[-1]] + 1 if isinstance(inner[route[-1]], int) else rounded(inner[route[-1]] * 1.001 + 1e-6)
    return other


def test_ngram_with_resident_servers(tmp_path: Path) -> None:
    path = workplace(tmp_path, "tiny-ngram.spec.yaml")
    entry = run(path)
    assert "met" not in {v["verdict"] for v in entry["verdicts"]}  # one start can give no plain verdict
    assert figure(entry, "repetitive", "pair", "mean_accepted_length") > 1
    holds(path)


def test_heterogeneous_vocabulary(tmp_path: Path) -> None:
    path = workplace(tmp_path, "tiny-heterogeneous.spec.yaml")
    entry = run(path)
    assert entry["arms"]["pair"]["config"]["speculative_config"]["use_heterogeneous_vocab"] is True
    assert figure(entry, "repetitive", "pair", "acceptance_rate_counters") > 0
    holds(path)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_everything_and_says_how_to_go_on(tmp_path: Path, number: signal.Signals) -> None:
    path = workplace(tmp_path, "tiny-ngram.spec.yaml")
    code = "from specrun.__main__ import main; main()"
    running = subprocess.Popen(
        [sys.executable, "-c", code, "run", path.name, "--key", "key"],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a shell's background job ignores it
    )
    seen: list[psutil.Process] = []
    deadline = time.monotonic() + 60
    while len(seen) < 2 and time.monotonic() < deadline:  # the API server and a process it started
        seen = servers_of(running.pid)
        time.sleep(0.2)
    assert seen, "no server was started"
    os.kill(running.pid, number)
    _, told = running.communicate(timeout=90)
    assert running.returncode == 130, told
    assert "--resume" in told
    assert not psutil.wait_procs(seen, timeout=5)[1]
    assert not document.read(path).data.get("results")


@pytest.mark.slow
def test_a_run_killed_outright_leaves_no_server_and_ends_like_any_other(tmp_path: Path) -> None:
    path = workplace(tmp_path, "tiny-ngram.spec.yaml")
    code = "from specrun.__main__ import main; main()"
    words = [sys.executable, "-c", code, "run", path.name, "--key", "key", "--quiet"]
    with subprocess.Popen(words, cwd=tmp_path) as running:
        while not (begun := [p for p in tmp_path.glob("runs/*/b01/pair/*/records.jsonl") if p.stat().st_size]):
            assert running.poll() is None, "the run ended before its pair was measured"
            time.sleep(0.05)
        seen = servers_of(running.pid)
        running.kill()
    assert len(seen) >= 2
    assert not psutil.wait_procs(seen, timeout=20)[1]
    folder = begun[0].parents[3]
    killed = {row["index"]: row["ids"] for row in whole_lines(begun[0])}
    assert killed

    tool("specrun", "run", "--resume", folder.name, "--key", "key", "--quiet", cwd=tmp_path, status=None)
    entry = document.read(path).data["results"][-1]
    assert entry["established"]["verdict"] == "established", entry["established"]["checks"]
    assert (folder / "b01.void1" / begun[0].relative_to(folder / "b01")).exists()
    again = {row["index"]: row["ids"] for row in whole_lines(begun[0])}
    assert {index: again[index] for index in killed} == killed
    holds(path)


def whole_lines(path: Path) -> list[dict[str, Any]]:
    """The records of a file whose last line may have been cut."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines(keepends=True) if line.endswith("\n")]
