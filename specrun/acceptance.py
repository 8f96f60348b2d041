"""Findings about what was accepted: how much, at which draft position, at which load, and by which count."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from statistics import fmean

from specrun.arrival import OPEN
from specrun.compare import MIN_BLOCKS, Interval, interval_of
from specrun.evidence import Cell, Evidence, Row, counting_rows, mean_of
from specrun.findings import Setting, Told

FALLS_OFF = 0.5  # of the conditional acceptance of the positions before
DROPS_WITH_LOAD = 2 / 3  # of the acceptance at the level before
HARDLY_ANY = 0.02  # at the first draft position
PAST_LIMIT = 0.05  # of the tokens delivered


def acceptance(evidence: Evidence, cell: Cell, setting: Setting, decode: Interval, break_even: Interval) -> Told:
    """Too little acceptance for the cost of a step, where decode is not faster and perfect drafts could gain."""
    rows = counting_rows(evidence, cell, "pair")
    rate = mean_of(rows, "acceptance_rate")
    enough = setting.drafts_every_step and rate is not None and rate >= _needed(setting, break_even[0])
    if rate is not None and not enough and cell[1] != OPEN and decode[2] >= 1 and break_even[0] <= setting.k + 1:
        yield "DX11", _low_acceptance(rate, rows, setting, break_even[0])
    if setting.drafts_every_step:
        yield from _falls_off(rows, setting.k)
        yield from _hardly_any(rows)
    yield from _past_limit(rows)


def _low_acceptance(rate: float, rows: Sequence[Row], setting: Setting, break_even: float) -> str:
    accepted = f"{rate:.1%} of drafted tokens are accepted"
    if not setting.drafts_every_step:
        shares = [(row.get("drafts") or 0) / steps for row in rows if (steps := row.get("decode_steps"))]
        drafted = f"{fmean(shares):.1%} of decode steps had a draft, " if shares else ""
        return f"{drafted}{accepted}; look at how much the answers of this task repeat what came before"
    needed = _needed(setting, break_even)
    look = "how well the draft fits target and task: its training data, tokenizer and chat template, prompts, sampling"
    return f"{accepted}, at this step cost {needed:.1%} would break even; look at {look}"


def _needed(setting: Setting, break_even: float) -> float:
    """The acceptance rate at which a step's tokens pay for it."""
    return (break_even - 1) / setting.k


def _falls_off(rows: Sequence[Row], k: int) -> Told:
    """The first position whose acceptance, given that all before it were accepted, is under half of theirs."""
    rates = [rate for i in range(1, k + 1) if (rate := mean_of(rows, f"acceptance_rate_{i}")) is not None]
    given = [rate / before for before, rate in pairwise([1.0, *rates]) if before > 0]
    for i in range(1, len(given)):
        earlier = fmean(given[:i])
        if given[i] < FALLS_OFF * earlier:
            text = (
                f"acceptance falls off at draft position {i + 1}: {given[i]:.1%} where the positions before it were "
                f"accepted, against {earlier:.1%} for those; from there on a draft brings {sum(rates[i:]):.3g} tokens"
            )
            yield "DX12", text
            return


def _hardly_any(rows: Sequence[Row]) -> Told:
    first = mean_of(rows, "acceptance_rate_1")
    if first is not None and first < HARDLY_ANY:
        look = (
            "the vocabularies (ids that mean other strings, a missing map), then at a head that is untrained or of another kind"
        )
        yield "DX22", f"{first:.1%} of first draft tokens are accepted: look first at {look}"


def _past_limit(rows: Sequence[Row]) -> Told:
    """Accepted tokens that the counters have and the answers have not, over all tokens after each request's first."""
    known = [row for row in rows if None not in (row.get("accepted_tokens"), row.get("decode_steps"))]
    delivered = sum((row.get("output_tokens") or 0) - (row.get("requests") or 0) for row in known)
    past = sum((row.get("decode_steps") or 0) + (row.get("accepted_tokens") or 0) for row in known) - delivered
    if delivered and past > PAST_LIMIT * delivered:
        counters, own = mean_of(known, "acceptance_rate_counters"), mean_of(known, "acceptance_rate")
        rates = "" if counters is None or own is None else f" (acceptance rate {counters:.1%} by the counters, {own:.1%} here)"
        text = (
            f"the counters accepted {past:.0f} tokens past the ends of answers, {past / delivered:.1%} of those delivered{rates}"
        )
        yield "DX23", text


def across_load(evidence: Evidence) -> Told:
    """Levels next to each other between which a workload's acceptance drops by more than a third."""
    for workload in dict.fromkeys(workload for workload, _ in evidence.cells):
        for before, after in pairwise(evidence.closed(workload)):
            drop = _drop(evidence, before, after)
            if drop is not None and drop[0] < DROPS_WITH_LOAD and drop[2] < 1:
                rates = [mean_of(counting_rows(evidence, cell, "pair"), "acceptance_rate") for cell in (before, after)]
                told = " and ".join(
                    f"{rate:.1%} at concurrency {cell[1]}" for rate, cell in zip(rates, (before, after), strict=True)
                )
                yield "DX21", f"{workload}: acceptance is {told}: it should hardly depend on load; look for a fault of the engine"


def _drop(evidence: Evidence, before: Cell, after: Cell) -> Interval | None:
    """Acceptance of `after` over that of `before`, over the blocks that both have."""
    rates = [_rates(evidence, cell) for cell in (before, after)]
    ratios = [rates[1][block] / rate for block, rate in rates[0].items() if rate > 0 and block in rates[1]]
    return interval_of(ratios, False, evidence.confidence) if len(ratios) >= MIN_BLOCKS else None


def _rates(evidence: Evidence, cell: Cell) -> dict[int, float]:
    rows = evidence.arms(cell).get("pair", {})
    return {b: r for b in evidence.counting(cell) if (r := rows[b].get("acceptance_rate")) is not None}
