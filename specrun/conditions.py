"""Findings about the conditions under which both arms were measured: memory, queue, front end, arrivals, controls, noise."""

from __future__ import annotations

import math
from statistics import geometric_mean, stdev

from specrun.compare import MIN_BLOCKS
from specrun.evidence import BUNCHING_DIFFERS, PAIRED, Cell, Evidence, bunching_difference, counting_rows, mean_of
from specrun.findings import Setting, Told
from specrun.intervals import sd_interval
from specrun.steps import request_ratio

FRONT_END_BOUND = 0.9  # of one core
QUEUED = 0.05  # of TTFT
OVERLOADED = 2.0  # requests in flight, second half of the arrivals over the first; a queue that only grows gives 3
EQUAL = 1e-9  # logs that differ by rounding only


def conditions(evidence: Evidence, cell: Cell, setting: Setting) -> Told:
    """What holds whether or not the step times can be trusted."""
    yield from _preempted(evidence, cell)
    yield from _queued(evidence, cell)
    yield from _overloaded(evidence, cell)
    yield from _front_end(evidence, cell)
    yield from _lock_step(evidence, cell)
    yield from _matched(evidence, cell)
    yield from _noise(evidence, cell)
    if not setting.drafts_every_step:
        yield from _draftless(evidence, cell)


def _preempted(evidence: Evidence, cell: Cell) -> Told:
    counts = {arm: sum(row.get("preemptions") or 0 for row in counting_rows(evidence, cell, arm)) for arm in PAIRED}
    if any(counts.values()):
        text = (
            f"{counts['pair']:.0f} preemptions in the pair, {counts['target']:.0f} in the target: the KV cache did not "
            f"hold the load, and the repeated work is in every time{_capacity(evidence)}"
        )
        yield "DX13", text


def _capacity(evidence: Evidence) -> str:
    held = {arm: mean_of([*evidence.starts.get(arm, {}).values()], "kv_capacity_tokens") for arm in PAIRED}
    if None in held.values():
        return ""
    return f"; it holds {held['pair']:.0f} tokens in the pair, {held['target']:.0f} in the target"


def _queued(evidence: Evidence, cell: Cell) -> Told:
    waited = {arm: mean_of(counting_rows(evidence, cell, arm), "queue_time") for arm in PAIRED}
    first = {arm: mean_of(counting_rows(evidence, cell, arm), "ttft_mean") for arm in PAIRED}
    shares = {arm: wait / ttft for arm in PAIRED if (wait := waited[arm]) is not None and (ttft := first[arm])}
    if any(share > QUEUED for share in shares.values()):
        told = ", ".join(
            f"{1000 * (waited[arm] or 0):.3g} ms in the {arm} ({share:.0%} of TTFT)" for arm, share in shares.items()
        )
        yield "DX20", f"requests waited in the engine's queue: {told}{_capacity(evidence)}"


def _overloaded(evidence: Evidence, cell: Cell) -> Told:
    rows = {arm: counting_rows(evidence, cell, arm) for arm in PAIRED}
    growing = {arm: growth for arm in PAIRED if (growth := mean_of(rows[arm], "in_flight_growth")) and growth > OVERLOADED}
    if growing:
        told = ", ".join(f"{growth:.2g}-fold in the {arm}" for arm, growth in growing.items())
        means = ", ".join(f"{mean_of(rows[arm], 'mean_in_flight') or 0:.3g} in the {arm}" for arm in PAIRED)
        text = (
            f"requests in flight grew {told} from the first half of the arrivals to the second (on average {means}): "
            "there the queue does not drain at this rate, and latency grows with the length of the window"
        )
        yield "DX25", text


def _front_end(evidence: Evidence, cell: Cell) -> Told:
    loads = {arm: mean_of(counting_rows(evidence, cell, arm), "front_end_load") for arm in PAIRED}
    bound = [f"{load:.0%} of a core in the {arm}" for arm, load in loads.items() if load and load > FRONT_END_BOUND]
    if bound:
        text = f"front-end bound: the API server used {' and '.join(bound)}; this flatters the pair, which sends fewer chunks"
        yield "DX15", text


def _lock_step(evidence: Evidence, cell: Cell) -> Told:
    difference = bunching_difference(evidence.arms(cell))
    if difference is not None and abs(difference) > BUNCHING_DIFFERS:
        text = (
            f"requests of the {'target' if difference > 0 else 'pair'} come in lock-step: the share of sends within one "
            f"step of another, beyond what their rate explains, is {abs(difference):.2f} higher than in the other arm"
        )
        yield "DX16", text


def _matched(evidence: Evidence, cell: Cell) -> Told:
    arms = evidence.arms(cell)
    blocks = [b for b in evidence.counting(cell) if b in arms.get("matched", {})]
    three = [[arms[arm][b] for arm in ("target", "matched", "pair")] for b in blocks]
    parts = [(request_ratio(t, m), request_ratio(m, p)) for t, m, p in three]
    known = [(forced, own) for forced, own in parts if forced and own]
    if len(known) >= MIN_BLOCKS:
        forced, own = geometric_mean(f for f, _ in known), geometric_mean(o for _, o in known)
        text = (
            f"of the request duration ratio {forced * own:.3g}, the configuration that speculation forces makes "
            f"{forced:.3g} (matched / target) and speculation itself {own:.3g} (pair / matched)"
        )
        yield "DX17", text


def _noise(evidence: Evidence, cell: Cell) -> Told:
    """The floor from the A/A control, with its own interval: a spread from few blocks is a rough number."""
    floor, pair = _spread(evidence, cell, "aa"), _spread(evidence, cell, "pair")
    if floor and pair:
        sd, blocks = floor
        low, high = sd_interval(sd, blocks, evidence.confidence)
        text = (
            f"noise floor: the duration ratio of the target's second start to its first varies by {sd:.2%} from block to block "
            f"({low:.2%} to {high:.2%} at {evidence.confidence:.3g}), that of the pair by {pair[0]:.2%}"
        )
        yield "DX24", text


def _spread(evidence: Evidence, cell: Cell, arm: str) -> tuple[float, int] | None:
    """Standard deviation over blocks of the log ratio of request durations to the target's, and the number of blocks."""
    arms = evidence.arms(cell)
    both = [(arms["target"][b], arms[arm][b]) for b in evidence.counting(cell) if b in arms.get(arm, {})]
    logs = [math.log(ratio) for target, other in both if (ratio := request_ratio(target, other))]
    spread = stdev(logs) if len(logs) >= MIN_BLOCKS else 0.0
    return (spread, len(logs)) if spread > EQUAL else None


def _draftless(evidence: Evidence, cell: Cell) -> Told:
    pairs = evidence.arms(cell).get("pair", {})
    blocks = [str(b) for b in evidence.counting(cell) if not pairs[b].get("drafts")]
    if blocks:
        yield "DX18", f"nothing was drafted in block {', '.join(blocks)}: these answers gave nothing to look up"
