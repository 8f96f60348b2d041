"""The load generator beside `vllm bench serve`: same server, same prompts and limits, ratios of pairs of windows.

    python benchmarks/load_generator.py stand-in            # a server whose steps take 50 ms whatever happens
    python benchmarks/load_generator.py vllm [SPEC]         # a real one, started from the spec's target (and stopped)

    python benchmarks/load_generator.py vllm SPEC --concurrency 1 64 --requests 16 512

The windows of a pair take turns; with `--together` both run at once, so that what disturbs one disturbs the other. Of a real
server in turns the second table says what was busy while specrun sent: cores of each process, and the share of time in which NVML
saw a kernel running on the first GPU.

Figures are computed by the definitions of `vllm bench serve`: every request counts for TTFT, throughput is that of the whole
window. Processor time is that of the measured part of each client, reading of prompts and imports left out.
"""

from __future__ import annotations

import argparse
import asyncio
import io
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, geometric_mean, median
from typing import Any, NamedTuple

import aiohttp
import msgspec

from speclint import document
from speclint.workload import block_prompts
from specrun import drive, host, plan
from specrun.compare import interval_of
from specrun.measure import Figures, figures

ROOT = Path(__file__).resolve().parent.parent
SPEC = ROOT / "examples" / "tiny-draft.spec.yaml"
READY_WITHIN_S = 180.0
STAND_IN = """
import sys
sys.path.insert(0, sys.argv[2])
import stand_in
from aiohttp import web
stand_in.STEP_S = 0.05
made = stand_in.engine(["--speculative-config", '{"num_speculative_tokens": 3}'])
web.run_app(stand_in.application(made), host="127.0.0.1", port=int(sys.argv[1]), print=None, access_log=None)
"""
# What the command `vllm bench serve` runs, once per line of arguments, so that imports are paid once.
PEER = """
import json, sys, time
from contextlib import redirect_stdout
from vllm.benchmarks import serve
from vllm.utils.argparse_utils import FlexibleArgumentParser
untimed = serve.benchmark
async def timed(*args, **kwargs):
    global spent
    print("ready", file=sys.__stdout__, flush=True)
    sys.stdin.readline()
    before = time.process_time()
    result = await untimed(*args, **kwargs)
    spent = time.process_time() - before
    return result
serve.benchmark = timed
parser = FlexibleArgumentParser()
serve.add_cli_args(parser)
for line in sys.stdin:
    with redirect_stdout(sys.stderr):
        serve.main(parser.parse_args(json.loads(line)))
    print(spent, flush=True)
"""
SHOWN = ("ttft", "tpot", "e2el", "throughput", "cpu")
TITLES = {
    "ttft": "TTFT, p50, ms",
    "tpot": "TPOT, p50, ms",
    "e2el": "request duration (E2EL), p50, ms",
    "throughput": "output throughput, whole window, tok/s",
    "cpu": "client CPU per request, ms",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("server", choices=["stand-in", "vllm"])
    parser.add_argument("spec", nargs="?", type=Path, default=SPEC)
    parser.add_argument("--windows", type=int, default=6, help="of each client")
    parser.add_argument("--requests", type=int, nargs="+", default=[48], help="of a window, for each concurrency")
    parser.add_argument("--concurrency", type=int, nargs="+", default=[4])
    parser.add_argument("--together", action="store_true", help="both clients at once, each at that concurrency")
    asked = parser.parse_args()
    if len(asked.requests) != len(asked.concurrency):
        parser.error(
            f"--requests has {len(asked.requests)} for {len(asked.concurrency)} of --concurrency: write one for each level"
        )
    data, folder = document.read(asked.spec).data, asked.spec.resolve().parent
    tokenizer = plan.model_path(data["pair"]["target"]["model"], folder)
    with (
        tempfile.TemporaryDirectory() as scratch,
        peer(place := Path(scratch), tokenizer) as theirs,
        serving(asked.server, data, folder, place) as served,
    ):
        for level, requests in zip(asked.concurrency, asked.requests, strict=True):
            pairs = list(window_pairs(served, theirs, data, folder, asked, Level(level, requests)))
            how = "together" if asked.together else "in turns"
            print(f"{asked.server}, {how}: {asked.windows} windows of {requests} requests each, concurrency {level}")
            print("\n".join(table(pairs)))
            if asked.server == "vllm" and not asked.together:
                print("\n".join(busy_table([own for own, _ in pairs])), flush=True)


class Level(NamedTuple):
    concurrency: int
    requests: int


class Served(NamedTuple):
    """A server that answers: its base URL, and its process."""

    base: str
    pid: int


@contextmanager
def serving(kind: str, data: dict[str, Any], folder: Path, place: Path, arm: str = "target") -> Iterator[Served]:
    """A server on loopback, ready. It and all that it started end with the block."""
    port = free_port()
    words = [sys.executable, "-c", STAND_IN, str(port), str(ROOT / "tests" / "run")]
    if kind == "vllm":
        words = [sys.executable, "-m", "vllm.entrypoints.openai.api_server", *plan.arm_words(data, arm, folder)]
        words += ["--host", "127.0.0.1", "--port", str(port)]
    env = plan.environment(data) | {name: os.environ[name] for name in ("OMP_NUM_THREADS",) if name in os.environ}
    with (place / f"{arm}.log").open("wb") as log:
        process = subprocess.Popen(words, env=env | {"TMPDIR": str(place)}, stdout=log, stderr=log, process_group=0)
    try:
        base = f"http://127.0.0.1:{port}"
        await_ready(process, base, place / f"{arm}.log")
        yield Served(base, process.pid)
    finally:
        stop(process)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def await_ready(process: subprocess.Popen[bytes], base: str, log: Path) -> None:
    deadline = time.monotonic() + READY_WITHIN_S
    while process.poll() is None and time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(f"{base}/health", timeout=2):
                return
        except OSError:
            time.sleep(0.25)
    raise SystemExit(f"the server is not ready: {log.read_text(errors='replace')[-2000:]}")


def stop(process: subprocess.Popen[bytes]) -> None:
    for number, patience in ((signal.SIGTERM, 15), (signal.SIGKILL, 5)):
        try:
            os.killpg(process.pid, number)
            process.wait(patience)
        except ProcessLookupError:
            return
        except subprocess.TimeoutExpired:
            continue


def window_pairs(
    served: Served, theirs: Peer, data: dict[str, Any], folder: Path, asked: argparse.Namespace, level: Level
) -> Iterator[tuple[dict[str, float], dict[str, float]]]:
    """Figures of (ours, theirs), window by window; the order is mirrored in every second pair, the first pair thrown away."""
    for number in range(asked.windows + 1):
        load = load_of(data, folder, level.requests, level.concurrency, block=1 + number)
        first = number % 2 == 1 and not asked.together
        own = ours(served, load) if first else {}
        theirs.begin(served.base, load)
        own = ours(served, load) if asked.together else own
        other = theirs.figures(load)
        own = own or ours(served, load)
        print(f"window {number}: specrun {_row(own)}; vllm bench serve {_row(other)}", file=sys.stderr)
        if number:
            yield own, other


def _row(found: dict[str, float]) -> str:
    return ", ".join(f"{name} {value:.4g}" for name, value in found.items())


def load_of(
    data: dict[str, Any], folder: Path, requests: int, concurrency: int, block: int = 1, spread: float | None = None
) -> drive.Load:
    """The last workload's prompts of a block, closed loop without staggering; every request has the same seed."""
    protocol = data["protocol"] | {"load": {"requests": requests, "concurrency": [concurrency]}}
    workload = protocol["workloads"][-1]
    if spread is not None:
        workload = workload | {"output": workload["output"] | {"spread": spread}}
    request = {"endpoint": "completions", "extra_body": {"seed": 0}}
    return drive.Load(block_prompts(workload, protocol, folder, block), concurrency, request, protocol["sampling"], "length")


def ours(served: Served, load: drive.Load) -> dict[str, float]:
    """One window by `specrun`, in figures of the peer's definitions, and what was busy in it. Units: ms, tokens/s, 1."""
    at_first, before = host.cpu_seconds(served.pid), time.process_time()
    with gpu_watched() as gpu:
        seconds, records = asyncio.run(driven(served.base, load))
    found = window_figures(load, seconds, records)
    spent, at_last = time.process_time() - before, host.cpu_seconds(served.pid)
    assert not found["failed_requests"], records[0]["error"]
    busy = {role: (at_last[role] - at_first[role]) / seconds for role in at_last} | {"client": spent / seconds}
    return {
        "ttft": 1000 * median(record["first"] - record["sent"] for record in records),
        "tpot": 1000 * value(found, "tpot_p50"),
        "e2el": 1000 * value(found, "request_duration_p50"),
        "throughput": value(found, "output_throughput_window"),
        "cpu": 1000 * spent / len(load.prompts),
        **busy,
        **({"gpu": fmean(gpu) / 100} if gpu else {}),
    }


@contextmanager
def gpu_watched() -> Iterator[list[int]]:
    """Per cent of time with a kernel on the first GPU, asked ten times a second; empty where there is none."""
    found: list[int] = []
    try:
        import pynvml

        pynvml.nvmlInit()
        handle = pynvml.nvmlDeviceGetHandleByIndex(0)
    except Exception:  # no library, no driver or no GPU
        yield found
        return
    over = threading.Event()

    def ask() -> None:
        while not over.wait(0.1):
            found.append(pynvml.nvmlDeviceGetUtilizationRates(handle).gpu)

    watching = threading.Thread(target=ask)
    watching.start()
    try:
        yield found
    finally:
        over.set()
        watching.join()


async def driven(base: str, load: drive.Load) -> tuple[float, list[dict[str, Any]]]:
    """Seconds and records of one window over TCP, which the peer needs."""
    out = io.StringIO()
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector, base_url=base, read_bufsize=2**20) as http:
        seconds = await drive.send(http, load, out, lambda _: None)
    return seconds, [msgspec.json.decode(line) for line in out.getvalue().splitlines()]


def window_figures(load: drive.Load, seconds: float, records: Sequence[dict[str, Any]], **counters: float) -> Figures:
    return figures({"concurrency": load.concurrency, "seconds": seconds, "counters": counters}, records)


def value(found: Figures, name: str) -> float:
    number = found[name]
    assert number is not None, name
    return float(number)


@dataclass(frozen=True, slots=True)
class Peer:
    """`vllm bench serve` in a process of its own."""

    process: subprocess.Popen[str]
    place: Path
    tokenizer: str

    def begin(self, base: str, load: drive.Load) -> None:
        """Begin a window once its prompts are read."""
        self.tell(json.dumps(peer_words(base, load, self.place, self.tokenizer)))
        self.hear()
        self.tell("go")

    def figures(self, load: drive.Load) -> dict[str, float]:
        """Figures of the window that was begun, when it has ended. Units: ms, tokens/s."""
        spent = float(self.hear())
        found = json.loads((self.place / "r.json").read_text(encoding="utf-8"))
        assert found["completed"] == len(load.prompts)
        assert found["total_output_tokens"] == sum(prompt.max_tokens for prompt in load.prompts)
        latencies = {name: float(found[f"median_{name}_ms"]) for name in ("ttft", "tpot", "e2el")}
        return latencies | {"throughput": float(found["output_throughput"]), "cpu": 1000 * spent / len(load.prompts)}

    def tell(self, line: str) -> None:
        assert self.process.stdin
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def hear(self) -> str:
        assert self.process.stdout
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit((self.place / "peer.log").read_text(errors="replace")[-2000:])
        return line


@contextmanager
def peer(place: Path, tokenizer: str) -> Iterator[Peer]:
    """The peer for the length of the block; it gets the same prompts in the same order."""
    with (place / "peer.log").open("w") as log:
        words, env = [sys.executable, "-c", PEER], os.environ | {"TMPDIR": str(place)}
        process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, env=env)
    try:
        yield Peer(process, place, tokenizer)
    finally:
        process.communicate()


def peer_words(base: str, load: drive.Load, place: Path, tokenizer: str) -> list[str]:
    """Arguments of one window; the prompts are written beside."""
    prompts = place / "prompts.jsonl"
    lines = [json.dumps({"prompt": prompt.content, "output_tokens": prompt.max_tokens}) for prompt in load.prompts]
    prompts.write_text("\n".join(lines) + "\n", encoding="utf-8")
    words = ["--backend", "openai", "--base-url", base, "--endpoint", "/v1/completions", "--model", plan.SERVED_NAME]
    words += ["--tokenizer", tokenizer, "--dataset-name", "custom", "--dataset-path", str(prompts), "--custom-output-len", "-1"]
    words += ["--skip-chat-template", "--disable-shuffle", "--num-prompts", str(len(load.prompts)), "--disable-tqdm"]
    words += ["--max-concurrency", str(load.concurrency), "--ignore-eos", "--temperature", "0", "--extra-body", '{"seed": 0}']
    words += ["--percentile-metrics", "ttft,tpot,e2el"]
    return [*words, "--save-result", "--result-dir", str(place), "--result-filename", "r.json"]


def table(pairs: Sequence[tuple[dict[str, float], dict[str, float]]]) -> Iterator[str]:
    """Geometric means of both and their ratio with its 95 % interval, as a Markdown table."""
    yield "| figure | specrun | vllm bench serve | ratio [95 % interval] |"
    yield "|---|---|---|---|"
    for name in SHOWN:
        own, peer = [pair[0][name] for pair in pairs], [pair[1][name] for pair in pairs]
        ratio, low, high = interval_of([a / b for a, b in zip(own, peer, strict=True)], True, 0.95)
        yield f"| {TITLES[name]} | {geometric_mean(own):.4g} | {geometric_mean(peer):.4g} | {ratio:.3f} [{low:.3f}, {high:.3f}] |"


def busy_table(found: Sequence[dict[str, float]]) -> Iterator[str]:
    """Means over specrun's windows of what was busy."""
    yield ""
    yield "| client, cores | API server, cores | engine, cores | GPU, share of time |"
    yield "|---|---|---|---|"
    shown = [f"{fmean(row[role] for row in found):.2f}" for role in ("client", "api", "engine")]
    yield "| " + " | ".join([*shown, f"{fmean(row['gpu'] for row in found):.2f}" if "gpu" in found[0] else "—"]) + " |"


if __name__ == "__main__":
    main()
