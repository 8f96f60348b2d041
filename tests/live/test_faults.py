"""Faults provoked on real vLLM 0.32.0, CPU: what is said of each, with which exit status, and that what was measured is kept.

The tests share servers, in file order; those that kill one come last.
"""

from __future__ import annotations

import json
import math
import os
import signal
import socket as sockets
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
from standing import EXAMPLES, Standing, established, prepared, records, smallest

from specrun import blocks, drive, launch, plan, prepare, start
from specrun.errors import Refused
from specrun.launch import ServerFailed
from specrun.run import Run

pytestmark = [pytest.mark.live, pytest.mark.timeout(600)]
PLACEHOLDERS = "drafts are not placeholders"
EVERY_STEP = "drafts are made at every decode step"
LIKELY = "the pair's answers are as likely under the target as its own"
FORETOLD = "drafts are those that target and draft alone foretell"


@pytest.fixture(scope="module")
def standing() -> Iterator[Standing]:
    with launch.socket_folder(str(os.getpid())) as folder:
        servers = Standing(folder)
        yield servers
        servers.end_all()


@pytest.fixture(autouse=True)
def served(standing: Standing, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs are served by standing servers, and a busy machine voids no window."""
    monkeypatch.setattr(blocks, "server", standing.server)
    monkeypatch.setattr(drive, "LATE_SHARE", math.inf)


def failed(checks: dict[str, tuple[str, str]]) -> list[str]:
    return [name for name, (outcome, _) in checks.items() if outcome == "failed"]


@pytest.mark.slow
def test_temperature_above_0_gives_other_answers_on_a_cpu(tmp_path: Path) -> None:
    made = prepared(tmp_path, smallest(sampling={"temperature": 0.3}, load={"requests": 64}))
    status, checks = established(made)
    assert status == 20
    assert failed(checks) == [LIKELY]
    assert checks[LIKELY][1].startswith("answers differ in likelihood: varied")
    assert [len(records(made, arm)) for arm in ("target", "pair")] == [64, 64]


def test_a_parameter_that_only_the_pair_refuses(tmp_path: Path) -> None:
    made = prepared(tmp_path, smallest(sampling={"logit_bias": {"5": 1.0}}))
    with pytest.raises(ServerFailed) as refused:
        established(made)
    assert refused.value.status == 40
    assert refused.value.message.startswith("the first request was refused with HTTP 400: ")
    assert "logit_bias sampling parameters are not yet supported with speculative decoding" in refused.value.message
    assert len(records(made, "target")) == 32


def test_chat_answers_that_end_by_themselves(tmp_path: Path) -> None:
    chat = {"endpoint": "chat", "expect": {"finish_reason": "any"}, "extra_body": {"stop": ["."]}}
    data = smallest(request=chat)
    data["protocol"]["workloads"][0]["output"] = {"tokens": 48, "stop": "natural"}
    made = prepared(tmp_path, data)
    status, checks = established(made)
    ended = {arm: [row["finish_reason"] for row in records(made, arm)] for arm in ("target", "pair")}
    assert status == 0, checks
    assert ended["target"] == ended["pair"]
    assert "stop" in ended["pair"]
    assert [row["ids"] for row in records(made, "target")] == [row["ids"] for row in records(made, "pair")]


@contextmanager
def as_soon_as(happened: Callable[[], bool], act: Callable[[], None]) -> Iterator[None]:
    """Act from another thread once something has happened inside the block."""
    over = threading.Event()

    def watch() -> None:
        while not over.wait(0.01):
            if happened():
                act()
                return

    watching = threading.Thread(target=watch)
    watching.start()
    try:
        yield
    finally:
        over.set()
        watching.join()


def killed_in_the_window(made: Run, victim: Callable[[], int]) -> ServerFailed:
    """Measure a run whose pair loses a process after four answers."""
    path = made.folder / "b01" / "pair" / "c4-varied" / "records.jsonl"

    def answered() -> bool:
        return path.exists() and path.read_bytes().count(b"\n") >= 4

    with as_soon_as(answered, lambda: os.kill(victim(), signal.SIGKILL)), pytest.raises(ServerFailed) as dead:
        established(made)
    return dead.value


def engine_core(server: int) -> int:
    return next(one.pid for one in psutil.Process(server).children(recursive=True) if "EngineCore" in " ".join(one.cmdline()))


def test_an_engine_killed_in_the_window_and_the_run_resumed(tmp_path: Path, standing: Standing) -> None:
    made = prepared(tmp_path, smallest())
    error = killed_in_the_window(made, lambda: engine_core(standing.pair().pid))
    assert error.status == 40
    assert "the server stopped answering" in error.message
    before = {arm: {row["index"]: row for row in records(made, arm)} for arm in ("target", "pair")}
    whole = [row for row in before["pair"].values() if not row["error"]]
    assert len(before["target"]) == 32 and 4 <= len(whole) < 32

    status, checks = established(made)
    assert status == 0, checks
    assert {row["index"] for row in records(made, "pair", "b01.void1")} == set(before["pair"])
    after = records(made, "pair")
    assert [after[row["index"]]["ids"] for row in whole] == [row["ids"] for row in whole]
    assert [row["ids"] for row in records(made, "target")] == [row["ids"] for row in after]


def test_an_api_server_killed_in_the_window(tmp_path: Path, standing: Standing) -> None:
    made = prepared(tmp_path, smallest())
    error = killed_in_the_window(made, lambda: standing.pair().pid)
    assert error.status == 40
    assert "it ended with status -9" in error.message
    assert len(records(made, "target")) == 32
    assert any(not row["error"] for row in records(made, "pair"))


@pytest.mark.slow
def test_a_draft_whose_context_is_shorter_than_the_answers(tmp_path: Path) -> None:
    data = smallest(speculative={"max_model_len": 64})
    data["protocol"]["workloads"][0]["output"]["tokens"] = 96
    made = prepared(tmp_path, data)
    status, checks = established(made)
    assert checks[EVERY_STEP][0] == "ok"  # the engine counts its placeholders as drafts
    assert status == 20
    assert failed(checks) == [PLACEHOLDERS, FORETOLD]  # one long request in a batch blinds the draft for all of them
    assert "no acceptance in the last " in checks[PLACEHOLDERS][1]
    assert [len(records(made, arm)) for arm in ("target", "pair")] == [32, 32]


@pytest.mark.slow
def test_a_draft_whose_context_is_shorter_than_the_prompts(tmp_path: Path) -> None:
    made = prepared(tmp_path, smallest(speculative={"max_model_len": 8}))
    status, checks = established(made)
    assert status == 20
    assert failed(checks) == [PLACEHOLDERS]
    assert "nothing accepted in" in checks[PLACEHOLDERS][1]
    assert checks[FORETOLD] == ("skipped", "no answer was scored")


@pytest.mark.slow
def test_a_draft_of_the_same_size_with_other_ids(tmp_path: Path) -> None:
    """The linter refuses it. Run all the same, it is established: what it drafts is bad, but it is what this draft drafts."""
    with pytest.raises(Refused, match="SL302 756 token ids mean other strings to the draft"):
        prepare.checked(EXAMPLES / "rejected" / "token-ids-differ.spec.yaml")
    made = prepared(tmp_path, smallest(speculative={"model": "models/tiny-draft-same-size-other-ids"}))
    status, checks = established(made)
    assert status == 0, checks
    assert checks[FORETOLD][0] == "ok" and "0 contradict it" in checks[FORETOLD][1]
    counters = json.loads((made.folder / "b01" / "pair" / "c4-varied" / "window.json").read_text(encoding="utf-8"))["counters"]
    assert 0 < counters["accepted_tokens"] < 0.03 * counters["draft_tokens"]


def too_large_a_cache(data: dict[str, Any]) -> None:
    data["pair"]["env"]["VLLM_CPU_KVCACHE_SPACE"] = "4000"


def too_small_a_cache(data: dict[str, Any]) -> None:
    data["pair"]["engine_args"]["num_gpu_blocks_override"] = 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "told"),
    [
        (too_large_a_cache, "less than requested memory for kv (4000.0 GiB)"),
        (too_small_a_cache, "No available memory for the cache blocks"),
    ],
)
def test_out_of_memory_at_start(tmp_path: Path, change: Callable[[dict[str, Any]], None], told: str) -> None:
    data = smallest()
    change(data)
    with pytest.raises(ServerFailed) as dead:
        established(prepared(tmp_path, data))
    assert dead.value.status == 40
    assert dead.value.message.startswith("the server ended with status 1: ")
    assert told in dead.value.message


@contextmanager
def started(data: dict[str, Any], folder: Path, within_s: float = 300.0) -> Iterator[Path]:
    """The pair's server in the making, from its folder of sockets on; gives that folder before it starts."""
    with launch.socket_folder(str(folder)) as sockets:
        yield sockets
        socket = sockets / "pair.sock"
        words, env = plan.argv(data, "pair", EXAMPLES, sys.executable, socket), plan.environment(data)
        with launch.server(words, env, socket, folder / "log", healthy=start.healthy, within_s=within_s):
            pass


@pytest.mark.slow
def test_a_socket_that_is_taken(tmp_path: Path) -> None:
    with sockets.socket(sockets.AF_UNIX) as other, pytest.raises(ServerFailed) as dead, started(smallest(), tmp_path) as folder:
        other.bind(str(folder / "pair.sock"))
        other.listen()
    assert dead.value.message == "the server ended with status 1: OSError: [Errno 98] Address already in use"


def test_a_server_that_is_not_ready_in_time(tmp_path: Path) -> None:
    with pytest.raises(ServerFailed, match="the server was not ready in time: ") as dead, started(smallest(), tmp_path, 2.0):
        pass
    assert dead.value.hint == f"the whole log: {tmp_path / 'log'}"


@pytest.mark.slow
def test_more_draft_tokens_than_the_engine_verifies(tmp_path: Path) -> None:
    made = prepared(tmp_path, smallest(speculative={"num_speculative_tokens": 200}))
    with pytest.raises(ServerFailed) as dead:
        established(made)
    assert dead.value.message.startswith("the first request was refused with HTTP 500: ")
    assert dead.value.status == 40
    assert len(records(made, "target")) == 32
