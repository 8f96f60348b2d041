"""Runs and windows on the stand-in server: a spec for them, an interpreter that starts it, and the same server in-process."""

from __future__ import annotations

import asyncio
import io
import json
import shlex
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from aiohttp import web
from stand_in import ENGINE, Engine, application

from speclint import document, releases
from speclint.releases import Release
from speclint.workload import Prompt, block_prompts
from specrun import drive, plan, record, run, scrape, start
from specrun.run import Run

SPEC = """\
schema: pair-spec/v1
name: stand-in
purpose: Does the runner do what it says?

pair:
  engine: {name: vllm, version: "0.32.0"}
  target: {model: model, revision: "sha256:0000000000000000000000000000000000000000000000000000000000000000", dtype: float32}
  speculative:
    method: draft_model
    model: draft
    revision: "sha256:0000000000000000000000000000000000000000000000000000000000000000"
    num_speculative_tokens: 3
  vocabulary: {mode: shared}
  engine_args: {max_model_len: 1024, seed: 0}
  env: {VLLM_CPU_KVCACHE_SPACE: "1"}
  placement: {device: cpu}

protocol:
  kind: measurement
  request: {endpoint: completions, expect: {finish_reason: length}}
  sampling: {temperature: 0.0, top_p: 1.0, top_k: 0, seed: 0}
  workloads:
    - id: repetitive
      profile: short_repetitive
      prompts: {generator: repetitive, seed: 7}
      output: {tokens: 8, spread: 0.5, stop: length}
    - id: varied
      profile: varied_long
      prompts: {generator: varied, seed: 7}
      output: {tokens: 12, spread: 0.5, stop: length}
  load: {concurrency: [2, 1], requests: 6, prefix_caching: false}
  design: {blocks: 4, servers: restart, prompts: fresh, warmup: 2}
  criteria:
    - {id: duration, metric: request_duration_p50, compare: ratio, workload: varied, concurrency: 1, at_most: 0.9}
    - {id: throughput, metric: output_throughput, compare: ratio, workload: all, concurrency: 2, at_least: 0.95}
    - {id: accepted, metric: acceptance_rate, workload: varied, concurrency: all, at_least: 0.2}
    - {id: capacity, metric: kv_capacity_tokens, compare: ratio, at_least: 0.85}
  confidence: 0.95
"""


def spec_data(*changes: tuple[str, str]) -> dict[str, Any]:
    """The spec as data, with pieces of its text replaced."""
    return dict(document.parse(spec_text(*changes).encode(), "stand-in.spec.yaml").data)


def spec_text(*changes: tuple[str, str]) -> str:
    text = SPEC
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    return text


def made(folder: Path, *changes: tuple[str, str], fault: str = "", first: bool = True) -> Run:
    """A run in `folder`, prepared and not begun, whose servers are stand-ins. `first`: with the unmeasured first starts."""
    for name in ("model", "draft"):
        (folder / name).mkdir()
    path = folder / "stand-in.spec.yaml"
    path.write_text(spec_text(*changes), encoding="utf-8")
    data = spec_data(*changes)
    prepared = run.create(path, data, [], engine_facts(), folder / "runs", str(interpreter(folder, fault)))
    if not first:
        pace = {cell.name: 0.01 for cell in plan.cell_order(data, 1)}
        record.write_json(prepared.folder / "first.json", {"request_duration_s": pace})
    return prepared


def engine_facts() -> dict[str, Any]:
    return dict(ENGINE)


def interpreter(folder: Path, fault: str = "") -> Path:
    """A program that takes an interpreter's words and starts the stand-in instead."""
    path = folder / "python"
    words = [sys.executable, str(Path(__file__).with_name("stand_in.py")), "--fault", fault]
    path.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n', encoding="utf-8")
    path.chmod(0o755)
    return path


@asynccontextmanager
async def serving(engine: Engine) -> AsyncIterator[Path]:
    """The stand-in in this process; gives its socket."""
    folder = Path(tempfile.mkdtemp(prefix="stand-in-"))
    runner = web.AppRunner(application(engine), access_log=None)
    await runner.setup()
    await web.UnixSite(runner, str(folder / "s"), backlog=512).start()
    try:
        yield folder / "s"
    finally:
        await runner.cleanup()
        shutil.rmtree(folder)


def load_of(data: dict[str, Any], concurrency: int = 4, requests: int = 24) -> drive.Load:
    """The varied prompts of block 1 of a spec."""
    protocol = data["protocol"] | {"load": data["protocol"]["load"] | {"requests": requests}}
    prompts = block_prompts(protocol["workloads"][1], protocol, Path(), 1)
    return drive.Load(prompts, concurrency, protocol["request"], protocol["sampling"], "length")


def chat_load(count: int = 4, tokens: int = 9) -> drive.Load:
    prompts = [Prompt(f"question {i}", tokens) for i in range(count)]
    sampling = {"temperature": 0.0, "top_p": 1.0, "top_k": 0, "seed": 0}
    return drive.Load(prompts, 2, {"endpoint": "chat"}, sampling, "length")


def driven(engine: Engine, load: drive.Load) -> list[dict[str, Any]]:
    """Records of one window, by index."""
    return window_of(engine, load, "pair")[1]


def window_of(engine: Engine, load: drive.Load, arm: str) -> tuple[dict[str, Any], list[dict[str, Any]], Any]:
    """`window.json`, records by index and effective configuration of one window."""
    return asyncio.run(_window_of(engine, load, arm))


async def _window_of(engine: Engine, load: drive.Load, arm: str) -> tuple[dict[str, Any], list[dict[str, Any]], Any]:
    out = io.StringIO()
    async with serving(engine) as socket:
        talk = start.Talk(socket)
        before = scrape.counters(await talk.page(), release())
        seconds = await drive.window(socket, load, out, lambda _: None)
        after = scrape.counters(await talk.idle_page(), release())
        config = await start.effective_config(socket)
    records = sorted(map(json.loads, out.getvalue().splitlines()), key=lambda row: row["index"])
    head = {"block": 1, "arm": arm, "try": 1, "workload": "varied", "concurrency": load.concurrency}
    counters = scrape.difference(before, after)
    return head | {"requests": len(load.prompts), "seconds": seconds, "void": None, "counters": counters}, records, config


def release() -> Release:
    found = releases.load("0.32.0")
    assert found
    return found
