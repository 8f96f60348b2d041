"""What must hold between the figures of one block, or they do not describe the same run and nothing is concluded from them.

The counters are exact integers and their relations are exact; the client's clock and the server's histogram are two
witnesses of the same time, who may differ by 3 % (or 0.3 ms a token), on a CPU shared with the client by 20 %.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from specrun.arrival import Level
from specrun.evidence import Cell, Evidence, Row
from specrun.findings import Setting
from specrun.steps import request_ratio, split

STEP_SHARE = 0.005  # preempted requests repeat a step
TOKEN_SHARE = 0.001
CLOCK_SHARE = {"cpu": 0.2}
CLOCK_SHARE_GPU = 0.03
CLOCK_S_PER_TOKEN = 0.0003
LITTLE_SHARE = 0.03

Bound = tuple[str, str, float | None, float | None, float | None]  # name, arm, value, low, high


@dataclass(frozen=True, slots=True)
class Invariant:
    """One relation in one block: `value` must lie from `low` to `high`."""

    workload: str
    concurrency: Level | None
    block: int
    arm: str
    name: str
    value: float
    low: float
    high: float

    @property
    def holds(self) -> bool:
        """Whether the value is within its bounds."""
        return self.low <= self.value <= self.high


def invariants(evidence: Evidence, cell: Cell, setting: Setting) -> list[Invariant]:
    """Every relation that the figures of a cell allow to check, in each block that counts."""
    arms, clock, k = evidence.arms(cell), CLOCK_SHARE.get(setting.device, CLOCK_SHARE_GPU), setting.k
    out = []
    for block in evidence.counting(cell):
        target, pair = arms["target"][block], arms["pair"][block]
        bounds = [*_counters(pair, k), *_by_position(pair, setting), *_steps(pair, k), *_target(target)]
        for arm, row in (("target", target), ("pair", pair)):
            bounds += [*_client(arm, row, clock), *_little(arm, row, cell[1])]
        bounds.append(_request(target, pair, clock))
        out += [
            Invariant(*cell, block, arm, name, value, low, high)
            for name, arm, value, low, high in bounds
            if value is not None and low is not None and high is not None
        ]
    return out


def _counters(pair: Row, k: int) -> Iterator[Bound]:
    drafts, drafted, accepted = pair.get("drafts"), pair.get("draft_tokens"), pair.get("accepted_tokens")
    yield "accepted within draft tokens", "pair", accepted, 0, drafted
    yield "draft tokens within K x drafts", "pair", drafted, 0, None if drafts is None else k * drafts
    yield "mean accepted length from 1 to K + 1", "pair", pair.get("mean_accepted_length"), 1, k + 1


def _by_position(pair: Row, setting: Setting) -> Iterator[Bound]:
    """Counts by draft position; of a tree, or of lossy verification, they need not fall."""
    drafts, accepted = pair.get("drafts"), pair.get("accepted_tokens")
    rates = [rate for i in range(1, setting.k + 1) if (rate := pair.get(f"acceptance_rate_counters_{i}")) is not None]
    if setting.chain and rates and drafts and accepted is not None:
        yield "accepted by position sums to accepted", "pair", round(sum(rates) * drafts, 6), accepted, accepted
        rise = max([later - earlier for earlier, later in pairwise(rates)], default=0.0)
        yield "acceptance by position does not rise", "pair", rise, -1, 1e-12


def _steps(pair: Row, k: int) -> Iterator[Bound]:
    steps, drafts = pair.get("decode_steps"), pair.get("drafts")
    yield "drafts within decode steps", "pair", drafts, 0, None if steps is None else steps * (1 + STEP_SHARE)
    yield "tokens per step", "pair", pair.get("tokens_per_step"), 1 - STEP_SHARE, (k + 1) * (1 + STEP_SHARE)
    accepted, requests, tokens = pair.get("accepted_tokens"), pair.get("requests"), pair.get("output_tokens")
    if steps is None or accepted is None or requests is None or tokens is None:
        return
    decoded = tokens - requests
    slack = TOKEN_SHARE * decoded
    past_limit = steps + accepted - decoded  # counted as accepted, not delivered
    yield "tokens past the limit from 0 to K a request", "pair", past_limit, -slack, k * requests + slack


def _target(target: Row) -> Iterator[Bound]:
    yield "tokens per step", "target", target.get("tokens_per_step"), 1 - STEP_SHARE, 1 + STEP_SHARE
    yield "no drafts", "target", target.get("drafts") or 0, 0, 0  # without speculation the series is absent


def _client(arm: str, row: Row, clock: float) -> Iterator[Bound]:
    """Client time after the first token against the server's histogram, and tokens of chunks against usage."""
    seconds, decode, per_token = row.get("step_sum"), row.get("decode_sum"), row.get("decode_time_per_token")
    if seconds and decode is not None and per_token:
        slack = max(clock, CLOCK_S_PER_TOKEN / per_token)
        yield "client against histogram", arm, decode / seconds, 1 - slack, 1 + slack
    yield "chunk tokens are usage tokens", arm, row.get("chunk_tokens"), row.get("output_tokens"), row.get("output_tokens")


def _little(arm: str, row: Row, concurrency: Level | None) -> Iterator[Bound]:
    """Little's law: throughput x time in the system is the mean number in the system, which is c while every slot is busy."""
    in_flight = row.get("mean_in_flight")
    if in_flight is not None and isinstance(concurrency, int):
        yield "requests in flight", arm, in_flight / concurrency, 1 - LITTLE_SHARE, 1 + LITTLE_SHARE


def _request(target: Row, pair: Row, clock: float) -> Bound:
    """Request duration ratio by the client's clock against first-token and decode parts by the histogram."""
    client, parts = request_ratio(target, pair), split(target, pair)
    value = None if client is None or parts is None else client / parts.request
    return "request ratio from its parts", "pair", value, 1 - clock, 1 + clock
