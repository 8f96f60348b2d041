"""Start one server, wait until it answers, and leave nothing behind."""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from speclint.credentials import masked
from specrun import host
from specrun.errors import EnvironmentTrouble

READY_WITHIN_S = 900.0
STOP_WITHIN_S = 15.0
PR_SET_PDEATHSIG = 1
# What names the cause in a vLLM log, behind its prefixes; the last of them is what a person looks for. A traceback's own source
# lines (`raise ValueError(`, `except KeyError:`) name none.
RAISED = re.compile(r"(?<!raise )\b[A-Z]\w*(?:Error|Exception|Interrupt)(?:: +\S.*|$)")
TOLD = re.compile(r".*\b(?:out of memory|Killed|No space left|Address already in use)\b.*")
ELSEWHERE = ("EngineCore", "Engine core initialization failed", "Worker failed with error ''")  # only point at the cause


@dataclass(slots=True)
class Server:
    """A running server: its process, socket and log.

    `ready_after_s` is the time from start to the first healthy answer, `stopped_after_s` that from being told to end to its end.
    """

    process: subprocess.Popen[bytes]
    socket: Path
    log: Path
    ready_after_s: float = 0.0
    stopped_after_s: float = 0.0

    @property
    def pid(self) -> int:
        return self.process.pid

    def alive(self) -> bool:
        return self.process.poll() is None

    def log_size(self) -> int:
        return self.log.stat().st_size

    def log_since(self, offset: int) -> str:
        """Log text written after `offset` bytes."""
        with self.log.open("rb") as stream:
            stream.seek(offset)
            return stream.read().decode(errors="replace")


class ServerFailed(EnvironmentTrouble):
    """The server ended, or never became ready; carries the log's own words."""


def _die_with_parent() -> None:
    # A killed runner (kill -9) must not leave a server that holds the device.
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


@contextmanager
def socket_folder(owner: str) -> Iterator[Path]:
    """A folder that only this user can enter, for the servers' Unix sockets; removed in the end.

    `owner` names the run: what an earlier process of the same run left, because it was killed, is removed first.
    """
    place = Path("/tmp") if Path("/tmp").is_dir() else Path(tempfile.gettempdir())  # a socket's path must be short
    prefix = f"specrun-{hashlib.sha256(owner.encode()).hexdigest()[:12]}-"
    for stale in place.glob(f"{prefix}*"):
        shutil.rmtree(stale, ignore_errors=True)
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir=place))
    try:
        yield folder  # mkdtemp makes it 0700
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def server(
    argv: list[str],
    env: dict[str, str],
    socket: Path,
    log: Path,
    *,
    healthy: Callable[[Path], bool],
    within_s: float = READY_WITHIN_S,
) -> Iterator[Server]:
    """Run a server for the length of the block. Raises ServerFailed if it ends or is not ready within `within_s` seconds."""
    log.parent.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    process = _spawn(argv, env, socket.parent, log)
    running = Server(process, socket, log)
    try:
        _wait_ready(running, healthy, began + within_s)
        running.ready_after_s = time.monotonic() - began
        yield running
    finally:
        ending = time.monotonic()
        stop(process)
        running.stopped_after_s = time.monotonic() - ending
        socket.unlink(missing_ok=True)
        mask_log(log)


def _spawn(argv: list[str], env: dict[str, str], folder: Path, log: Path) -> subprocess.Popen[bytes]:
    try:
        with log.open("ab") as stream:
            return subprocess.Popen(
                argv,
                env=env | {"TMPDIR": str(folder)},  # what the engine leaves there goes with the folder
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=subprocess.STDOUT,
                # A group of its own: Ctrl-C reaches us, and we stop all of it. Not a session of its own: Linux schedules sessions
                # against each other (autogroup), and on two cores that kept the client from running for 200 ms at a time.
                process_group=0,
                preexec_fn=_die_with_parent if sys.platform == "linux" else None,
                cwd=folder,
            )
    except OSError as error:
        raise ServerFailed(f"the server cannot be started: {error}", f"the engine's interpreter is {argv[0]}") from error


def _wait_ready(running: Server, healthy: Callable[[Path], bool], deadline: float) -> None:
    while time.monotonic() < deadline:
        if not running.alive():
            raise ServerFailed(
                f"the server ended with status {running.process.returncode}: {cause(running.log)}",
                f"the whole log: {running.log}",
            )
        if running.socket.exists() and healthy(running.socket):
            return
        time.sleep(0.2)
    raise ServerFailed(f"the server was not ready in time: {cause(running.log)}", f"the whole log: {running.log}")


def cause(log: Path) -> str:
    """The line of a log that most likely names the cause, or its last line."""
    lines = [line.strip() for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
    named = [match.group(0) for line in lines[-200:] if (match := RAISED.search(line) or TOLD.search(line))]
    specific = [line for line in named if not any(words in line for words in ELSEWHERE)]
    return masked((specific or named or lines or ["the log is empty"])[-1])[:400]


def mask_log(log: Path) -> None:
    """Take what looks like a credential out of the log of a server that has ended."""
    text = log.read_bytes().decode(errors="surrogateescape")
    if (clean := masked(text)) != text:
        part = log.with_name(log.name + ".part")
        part.write_bytes(clean.encode(errors="surrogateescape"))
        part.replace(log)


def stop(process: subprocess.Popen[bytes]) -> None:
    """End a server and every process it started: first asked, then killed."""
    everyone = host.family(process.pid)
    try:
        _signal_group(process.pid, signal.SIGTERM)
        psutil.wait_procs(everyone, timeout=STOP_WITHIN_S)
    finally:  # a second Ctrl-C ends the patience, not the duty
        for survivor in everyone:
            with suppress(psutil.Error):
                survivor.kill()
        _signal_group(process.pid, signal.SIGKILL)  # whatever was started after we looked
        process.wait(timeout=STOP_WITHIN_S)


def _signal_group(group: int, number: int) -> None:
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return


def probe(python: str, *, schema: bool = False) -> dict[str, Any]:
    """What vLLM the given interpreter has. Raises EnvironmentTrouble if it has none or does not run."""
    command = [python, str(Path(__file__).with_name("vllm_probe.py")), *(["--schema"] if schema else [])]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    except OSError as error:
        raise EnvironmentTrouble(
            f"{python} does not run: {error.strerror}", "name the engine's interpreter with --python"
        ) from error
    if done.returncode:
        last = masked((done.stderr.strip().splitlines() or ["no message"])[-1])
        raise EnvironmentTrouble(
            f"vLLM in {python} cannot be imported: {last}", "run `specrun doctor`, then reinstall the engine"
        )
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    if not found["version"]:
        hint = 'install it with `pip install "specpair[cpu]"` or `[gpu]`, or name another interpreter with --python'
        raise EnvironmentTrouble(f"{python} has no vLLM", hint)
    return found
