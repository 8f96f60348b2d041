"""What a run would do, in words: `specrun plan`."""

from __future__ import annotations

import math
import shlex
from pathlib import Path
from typing import Any

from speclint.workload import requests_at
from specrun import plan
from specrun.arrival import OPEN
from specrun.intervals import decidable
from specrun.memory_lines import memory_lines, smallest_gpu
from specrun.serve_line import serve_line

# Assumed for the time estimate, and said so: measured with small models on two CPU cores; a GPU start takes longer.
START_S = {"cpu": 40.0, "cuda": 100.0}
TOKENS_PER_S = {"cpu": 120.0, "cuda": 400.0}
SPREAD = 0.05  # of a start; of the ratio of two it is sqrt(2) times as much


def outline(data: dict[str, Any], folder: Path, python: str) -> str:
    """Commands of every arm, order of the first two blocks, requests, time and what the blocks can decide."""
    protocol, device = data["protocol"], data["pair"]["placement"]["device"]
    lines = [
        f"{data['name']}: vLLM {data['pair']['engine']['version']} on {device}, servers: {plan.servers(data)}",
        "",
        "Commands",
    ]
    for arm in ("target", "pair", *plan.swept(data)):
        lines.append(f"  {arm}: {shlex.join(plan.argv(data, arm, folder, python, Path('SOCKET')))}")
    lines += ["", "Environment of every server, beside what it inherits (" + ", ".join(plan.INHERITED) + ")"]
    lines += [f"  {k}={v}" for k, v in (plan.FIXED | {k: str(v) for k, v in data["pair"].get("env", {}).items()}).items()]
    lines += ["", "Order", *(f"  block {b}: {_block(data, b)}" for b in (1, 2)), "  and so on, every even block mirrored"]
    if "arrival" in protocol:
        rate, count = protocol["arrival"]["rate"], requests_at(protocol, OPEN)
        over = f"{count} requests are due over about {count / rate:.0f} s a window"
        lines += ["", f"Open loop  {rate:g} requests/s, Poisson: {over}"]
    seconds = plan.seconds_estimate(data, START_S[device], TOKENS_PER_S[device])
    lines += [
        "",
        f"Requests  {plan.requests_in_all(data)} measured, {_requests(protocol)} a window, after {_warmup(data)}",
    ]
    also = ", and the draft alone" if plan.draft_alone(data) else ""
    lines += [f"Starts    {plan.server_starts(data)}, one of each arm unmeasured{also}"]
    pace = f"a start takes {START_S[device]:.0f} s and one stream makes {TOKENS_PER_S[device]:.0f} tokens/s"
    lines.append(f"Time      about {seconds / 60:.0f} min, if {pace}")
    lines += ["", "Memory of each device, estimated", *memory_lines(data, smallest_gpu())]
    lines += [
        "",
        f"What {protocol['design']['blocks']} blocks decide, if figures vary by {SPREAD:.0%} from start to start",
        *_power(data),
    ]
    return "\n".join(lines)


def _block(data: dict[str, Any], block: int) -> str:
    cells = ", ".join(cell.name for cell in plan.cell_order(data, block))
    return " then ".join(plan.arm_order(data, block)) + f", each: {cells}"


def _requests(protocol: dict[str, Any]) -> str:
    return plan.each_level(protocol, protocol["load"]["requests"])


def _warmup(data: dict[str, Any]) -> str:
    return f"{plan.each_level(data['protocol'], data['protocol']['design']['warmup'])} unmeasured ones before each window"


def _power(data: dict[str, Any]) -> list[str]:
    blocks, confidence = data["protocol"]["design"]["blocks"], data["protocol"]["confidence"]
    distance = decidable(math.sqrt(2) * SPREAD, blocks, confidence)
    rows = []
    for criterion in data["protocol"]["criteria"]:
        if criterion.get("compare") != "ratio" or criterion["metric"].startswith(("kv_", "memory")):
            continue
        bound = criterion.get("at_most", criterion.get("at_least"))
        far = bound * math.exp(-distance if "at_most" in criterion else distance)
        side = "at or below" if "at_most" in criterion else "at or above"
        rows.append(f"  {criterion['id']}: met in 80 % of runs if the true ratio is {side} {far:.3g} in each cell")
    return (rows or ["  no criterion is a ratio"]) + _sweep_power(data)


def _sweep_power(data: dict[str, Any]) -> list[str]:
    """What the comparison of all pairs of K leaves of the power."""
    count = len(plan.swept(data)) + 1
    if count == 1:
        return []
    level = 1 - (1 - data["protocol"]["confidence"]) / (count * (count - 1) / 2)
    distance = decidable(math.sqrt(2) * SPREAD, data["protocol"]["design"]["blocks"], level)
    apart = f"if they differ by {math.expm1(distance):.0%} or more"
    return [f"  sweep of {count} numbers: two are told apart in 80 % of runs {apart}"]


def commands(data: dict[str, Any], folder: Path) -> str:
    """The `vllm serve` line of target, pair and the arms of a sweep, shell-quoted, one a line."""
    env = {k: str(v) for k, v in data["pair"].get("env", {}).items()}
    return "\n".join(serve_line(plan.arm_words(data, arm, folder), env) for arm in ("target", "pair", *plan.swept(data)))
