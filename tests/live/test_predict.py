"""`specrun predict` against the running pair: real vLLM on CPU, float32, greedy."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from speclint import document, releases
from speclint.workload import block_prompts
from specrun import drive, launch, plan, predict, scrape, start
from specrun.oracle import Prediction

pytestmark = [pytest.mark.live, pytest.mark.timeout(900)]
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
REQUESTS = 16
Counters = dict[str, Any]


def spec(name: str, **speculative: Any) -> dict[str, Any]:
    """An example with fewer requests, and with other settings of its method."""
    data: dict[str, Any] = document.read(EXAMPLES / name).data
    data["protocol"]["load"]["requests"] = REQUESTS
    data["pair"]["speculative"] |= speculative
    return data


def counted(data: dict[str, Any], folder: Path) -> dict[str, Counters]:
    """What the pair's own counters say of each workload of block 1, one request at a time."""
    release = releases.load(data["pair"]["engine"]["version"])
    assert release is not None

    async def one(workload: dict[str, Any], socket: Path) -> Counters:
        protocol, talk = data["protocol"], start.Talk(socket)
        prompts = block_prompts(workload, protocol, EXAMPLES, 1)
        load = drive.Load(prompts, 1, protocol["request"], protocol["sampling"], workload["output"]["stop"])
        before = scrape.counters(await talk.idle_page(), release)
        with Path(os.devnull).open("w", encoding="utf-8") as nowhere:
            await drive.window(socket, load, nowhere, lambda _: None)
        return scrape.difference(before, scrape.counters(await talk.idle_page(), release))

    with launch.socket_folder(str(folder)) as sockets:
        socket = sockets / "pair.sock"
        words, env = plan.argv(data, "pair", EXAMPLES, sys.executable, socket), plan.environment(data)
        with launch.server(words, env, socket, folder / "pair.log", healthy=start.healthy):
            return {workload["id"]: asyncio.run(one(workload, socket)) for workload in data["protocol"]["workloads"]}


def engine_counts(prediction: Prediction) -> Counters:
    """A prediction in the words of the engine's counters."""
    return {
        "drafts": prediction.drafts,
        "draft_tokens": prediction.draft_tokens,
        "accepted_tokens": sum(prediction.accepted),
        "accepted_per_position": prediction.accepted,
        "itl_count": prediction.steps,
    }


def test_the_running_pair_does_what_was_predicted(tmp_path: Path) -> None:
    data = spec("tiny-draft.spec.yaml")
    told = predict.ask(data, EXAMPLES, sys.executable, lambda _: None)
    k = data["pair"]["speculative"]["num_speculative_tokens"]
    made = counted(data, tmp_path)
    for workload, counters in made.items():
        foretold = next(one for one in predict.predictions(data, workload, told) if one.k == k)
        found = engine_counts(foretold)
        assert foretold.drafts > 100 and min(foretold.accepted) > 10
        assert {name: counters[name] for name in found} == found, workload
