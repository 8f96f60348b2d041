"""Starting, waiting for and ending servers, however they behave."""

from __future__ import annotations

import os
import stat
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
from stand_in_run import interpreter

from specrun import launch, start
from specrun.errors import EnvironmentTrouble
from specrun.launch import ServerFailed, cause, probe, server, socket_folder

ENV = {"PATH": os.environ["PATH"]}


def words(folder: Path, socket: Path, fault: str = "") -> list[str]:
    return [str(interpreter(folder, fault)), "-m", "vllm.entrypoints.openai.api_server", "--uds", str(socket)]


def started(folder: Path, sockets: Path, fault: str = "", **more: Any) -> Any:
    socket = sockets / "a.sock"
    return server(words(folder, socket, fault), ENV, socket, folder / "server.log", healthy=start.healthy, **more)


def test_a_server_lives_for_the_block_and_leaves_its_log(tmp_path: Path) -> None:
    with socket_folder("one") as sockets:
        with started(tmp_path, sockets) as running:
            assert running.alive() and start.healthy(running.socket) and 0 < running.ready_after_s < 30
            assert "Using V1 Model Runner" in running.log_since(0) and running.log_since(running.log_size()) == ""
        assert not psutil.pid_exists(running.pid) and list(sockets.iterdir()) == []
    assert not sockets.exists()


def test_what_happens_inside_the_block_does_not_keep_the_server_alive(tmp_path: Path) -> None:
    with socket_folder("one") as sockets, pytest.raises(KeyboardInterrupt), started(tmp_path, sockets) as running:
        raise KeyboardInterrupt
    assert not psutil.pid_exists(running.pid) and not sockets.exists()


def test_a_process_that_ignores_sigterm_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "STOP_WITHIN_S", 0.5)
    with socket_folder("one") as sockets, started(tmp_path, sockets, "stubborn") as running:
        children = psutil.Process(running.pid).children(recursive=True)
        assert children
    gone, alive = psutil.wait_procs(children, timeout=5)
    assert alive == [] and len(gone) == len(children)


def test_a_second_signal_while_stopping_still_stops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def impatient(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    with socket_folder("one") as sockets:
        with pytest.raises(KeyboardInterrupt), started(tmp_path, sockets, "stubborn") as running:
            children = psutil.Process(running.pid).children(recursive=True)
            monkeypatch.setattr(psutil, "wait_procs", impatient)
        monkeypatch.undo()
    assert psutil.wait_procs(children, timeout=5)[1] == []


def test_a_server_that_never_becomes_ready_has_a_deadline(tmp_path: Path) -> None:
    began = time.monotonic()
    with (
        socket_folder("one") as sockets,
        pytest.raises(ServerFailed, match="not ready in time") as caught,
        started(tmp_path, sockets, "never-ready", within_s=1.5),
    ):
        pass
    assert time.monotonic() - began < 15
    assert str(tmp_path / "server.log") in caught.value.hint


def test_a_server_that_ends_at_once_is_quoted(tmp_path: Path) -> None:
    with (
        socket_folder("one") as sockets,
        pytest.raises(ServerFailed, match="ended with status 7: ValueError: no such model here"),
        started(tmp_path, sockets, "exits"),
    ):
        pass


def test_a_program_that_is_not_there_is_named(tmp_path: Path) -> None:
    with (
        socket_folder("one") as sockets,
        pytest.raises(ServerFailed, match="cannot be started") as caught,
        server([str(tmp_path / "nope")], ENV, sockets / "s", tmp_path / "log", healthy=start.healthy),
    ):
        pass
    assert "nope" in caught.value.hint


@pytest.mark.parametrize(
    ("log", "found"),
    [
        ("", "the log is empty"),
        ("one\ntwo\n\n", "two"),
        ("x ValueError: bad\ninfo\nbye\n", "ValueError: bad"),
        ("KeyError: a\nRuntimeError: Engine core initialization failed. See root cause above.\n", "KeyError: a"),
        (
            "(EngineCore pid=3) torch.OutOfMemoryError: CUDA out of memory. Tried\nlater\n",
            "OutOfMemoryError: CUDA out of memory. Tried",
        ),
        ("(E pid=3) ERROR ValueError: too little\n(E pid=3) ERROR     raise RuntimeError(\n", "ValueError: too little"),
        ("(W pid=3) ERROR AssertionError\nRuntimeError: Worker failed with error '', please check above\n", "AssertionError"),
        ("KeyError: a\n    except ValueError:\n    raise ValueError\n", "KeyError: a"),
        ("OSError: [Errno 98] Address already in use\n", "OSError: [Errno 98] Address already in use"),
        ("ValueError: early\n" + "line\n" * 300, "line"),
        ("E" * 1000 + "Error: x\n", "E" * 400),
    ],
)
def test_cause(tmp_path: Path, log: str, found: str) -> None:
    (tmp_path / "log").write_text(log, encoding="utf-8")
    assert cause(tmp_path / "log") == found


def test_socket_folder_is_private_short_and_its_runs_own() -> None:
    with socket_folder("one") as mine, socket_folder("two") as other:
        assert stat.S_IMODE(mine.stat().st_mode) == 0o700
        assert len(str(mine / "matched.sock")) < 100
        (mine / "left.sock").touch()
        with socket_folder("one") as again:
            assert not mine.exists() and again.exists() and other.exists()


def test_not_listening_is_not_healthy(tmp_path: Path) -> None:
    assert start.healthy(tmp_path / "nobody") is False


def test_probe(tmp_path: Path) -> None:
    assert probe(str(interpreter(tmp_path)))["version"] == "0.32.0"
    with pytest.raises(EnvironmentTrouble, match="does not run"):
        probe(str(tmp_path / "nope"))
    broken = tmp_path / "broken"
    broken.write_text("#!/bin/sh\necho 'ImportError: libcuda' >&2\nexit 1\n", encoding="utf-8")
    broken.chmod(0o755)
    with pytest.raises(EnvironmentTrouble, match="cannot be imported: ImportError: libcuda"):
        probe(str(broken))
    without = tmp_path / "without"
    without.write_text("""#!/bin/sh\necho '{"version": null}'\n""", encoding="utf-8")
    without.chmod(0o755)
    with pytest.raises(EnvironmentTrouble, match="has no vLLM"):
        probe(str(without))


@pytest.mark.skipif(sys.platform != "linux", reason="parent-death signals are Linux's")
def test_a_killed_runner_takes_its_server_along(tmp_path: Path) -> None:
    import subprocess

    code = f"""
import sys, time
from pathlib import Path
sys.path.insert(0, {str(Path(__file__).parent)!r})
from test_launch import started
with started(Path({str(tmp_path)!r}), Path({str(tmp_path)!r}), "") as running:
    print(running.pid, flush=True)
    time.sleep(60)
"""
    runner = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert runner.stdout
    served = psutil.Process(int(runner.stdout.readline()))
    runner.kill()
    runner.communicate()
    assert psutil.wait_procs([served], timeout=10)[1] == []
