"""Verdicts: each criterion against the blocks of a run.

A ratio is one per block, of the block's figures, and its interval is Student's t on the logs. Values without `compare` get
t on the values themselves. Exact metrics (capacity, memory, failures) are judged by their worst block. `confidence` is
two-sided: met and not met each err in at most (1 - confidence) / 2 of runs. Over several cells, met needs every cell at
that level; not met needs one cell on the bad side at 1 - (1 - confidence) / cells, so that more cells do not mean more
false alarms. All verdicts are computed from rounded intervals, the ones that are stored.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import stdev
from typing import Any, Literal, NotRequired, TypedDict

from speclint.canonical import rounded
from speclint.data import metrics
from specrun.arrival import OPEN, Level, place
from specrun.evidence import START_METRICS, WHOLE_START, Cell, Evidence, Series, series
from specrun.intervals import decidable, sign_flip_p, t_interval
from specrun.weighted import NAME, weighted

MIN_BLOCKS = 4

Outcome = Literal["met", "not_met", "undecided"]
Interval = tuple[float, float, float]  # value, low, high


class CellVerdict(TypedDict):
    """A criterion in one cell, as the schema has it."""

    workload: str
    concurrency: Level | None
    value: float | None
    low: float | None
    high: float | None
    verdict: Outcome
    reason: NotRequired[str]
    blocks: list[float | None]


class Verdict(TypedDict):
    """One criterion, as the schema has it."""

    id: str
    verdict: Literal["met", "not_met", "undecided", "met_one_start"]
    reason: NotRequired[str]
    decidable: float | None
    cells: list[CellVerdict]


def judge(criteria: Sequence[Mapping[str, Any]], evidence: Evidence) -> list[Verdict]:
    """A verdict per criterion. Whether the pair was established is not asked here: if it was not, do not call this."""
    return [_judge_criterion(criterion, evidence) for criterion in criteria]


def status(verdicts: Sequence[Verdict], established: bool) -> Literal[0, 10, 11, 20]:
    """Exit status: 20 not established, 10 a criterion not met, 11 undecided or met on one start only, 0 all met."""
    if not established:
        return 20
    outcomes = {verdict["verdict"] for verdict in verdicts}
    if "not_met" in outcomes:
        return 10
    return 0 if outcomes == {"met"} else 11


def cells_of(criterion: Mapping[str, Any], cells: Sequence[Cell]) -> list[Cell]:
    """The cells that a criterion is about, of those planned; one for metrics of a whole start.

    `all` levels are those of the closed loop: the open one is judged where it is named.
    """
    if criterion["metric"] in START_METRICS:
        return [WHOLE_START]
    workload, concurrency = criterion.get("workload", "all"), criterion.get("concurrency", "all")
    meant = [cell for cell in cells if workload in ("all", cell[0])]
    if "weights" in criterion:
        meant = [*dict.fromkeys((NAME, level) for _, level in meant)]
    return [cell for cell in meant if (cell[1] != OPEN if concurrency == "all" else cell[1] == concurrency)]


def _judge_criterion(criterion: Mapping[str, Any], evidence: Evidence) -> Verdict:
    cells = cells_of(criterion, evidence.cells)
    found = [_series(criterion, cell, evidence) for cell in cells]
    judged = [_judge_cell(criterion, c, s, evidence.confidence, len(cells)) for c, s in zip(cells, found, strict=True)]
    outcome, reason = _over_cells(judged, found, cells)
    reason = "; ".join(filter(None, (reason, _suspect(criterion, cells, evidence))))
    met_here = "met_one_start" if evidence.one_start and outcome == "met" else outcome
    verdict: Verdict = {
        "id": criterion["id"],
        "verdict": met_here,
        "decidable": _decidable(criterion, found, evidence.confidence),
        "cells": judged,
    }
    return verdict | {"reason": reason} if reason else verdict


def _over_cells(judged: Sequence[CellVerdict], found: Sequence[Series], cells: Sequence[Cell]) -> tuple[Outcome, str]:
    """The letter of the rule: a void cell makes the criterion undecided whatever the others say."""
    if not judged:
        return "undecided", "no cell of this run is meant by it"
    void = [cell for cell, s in zip(cells, found, strict=True) if s.void and len(s.valid()) < MIN_BLOCKS]
    if void:
        return "undecided", f"void: {', '.join(f'{w} {place(c)}' for w, c in void)}"
    outcomes = [cell["verdict"] for cell in judged]
    told = f"{outcomes.count('met')} of {len(judged)} cells met" if len(judged) > 1 else ""
    if "not_met" in outcomes:
        return "not_met", told
    return ("undecided", told) if "undecided" in outcomes else ("met", "")


def _series(criterion: Mapping[str, Any], cell: Cell, evidence: Evidence) -> Series:
    """The criterion's metric over blocks. Of a run that ended early nothing is judged: whoever ends it chooses the moment."""
    if "weights" in criterion:
        found = weighted(criterion, cell[1], evidence)
    else:
        found = series(evidence, cell, criterion["metric"], over="target" if criterion.get("compare") == "ratio" else None)
    return replace(found, faults=[evidence.unfinished, *found.faults]) if evidence.unfinished else found


def _judge_cell(criterion: Mapping[str, Any], cell: Cell, found: Series, confidence: float, cells: int) -> CellVerdict:
    interval, outcome, reason = _decide(criterion, found, confidence, cells)
    void = [f"block {block} void: {why}" for block, why in found.void.items()]
    value, low, high = interval or (None, None, None)
    verdict: CellVerdict = {
        "workload": cell[0],
        "concurrency": cell[1],
        "value": value,
        "low": low,
        "high": high,
        "verdict": outcome,
        "blocks": [None if x is None else rounded(x) for x in found.values.values()],
    }
    text = "; ".join([*filter(None, [reason]), *void])
    return verdict | {"reason": text} if text else verdict


def _decide(criterion: Mapping[str, Any], found: Series, confidence: float, cells: int) -> tuple[Interval | None, Outcome, str]:
    """Interval, verdict and reason of one cell, of `cells` that the criterion is about."""
    values = found.valid()
    if found.faults or not values:
        return None, "undecided", "; ".join(found.faults) or "no block counts"
    if _exact(criterion):
        return _worst(criterion, values)
    if len(values) < MIN_BLOCKS:
        return None, "undecided", f"{len(values)} valid blocks, {MIN_BLOCKS} are needed"
    logs = _logs(criterion)
    interval = interval_of(values, logs, confidence)
    if _good(criterion, interval):
        return interval, "met", _remark(criterion, values, confidence)
    if _bad(criterion, interval_of(values, logs, 1 - (1 - confidence) / cells)):
        return interval, "not_met", _remark(criterion, values, confidence)
    beyond = f"beyond the threshold at {confidence:g}, not at the level for {cells} cells"
    return interval, "undecided", beyond if _bad(criterion, interval) else ""


def interval_of(values: Sequence[float], logs: bool, confidence: float) -> Interval:
    """Mean (geometric with `logs`) and t interval over blocks, rounded. Equal values give an interval of no width."""
    first = rounded(values[0])
    if all(rounded(value) == first for value in values):
        return first, first, first
    if not logs:
        mean, low, high = t_interval(values, confidence)
    else:
        mean, low, high = (_exp(x) for x in t_interval([math.log(value) for value in values], confidence))
    return rounded(mean), rounded(low), rounded(high)


def _exp(x: float) -> float:
    """Stays within what JSON can hold: two blocks far apart give a log beyond any float's."""
    return math.exp(max(-700.0, min(700.0, x)))


def _worst(criterion: Mapping[str, Any], values: Sequence[float]) -> tuple[Interval, Outcome, str]:
    worst = rounded(max(values) if "at_most" in criterion else min(values))
    interval = (worst, worst, worst)
    return interval, "met" if _good(criterion, interval) else "not_met", ""


def _good(criterion: Mapping[str, Any], interval: Interval) -> bool:
    _, low, high = interval
    return bool(high <= criterion["at_most"] if "at_most" in criterion else low >= criterion["at_least"])


def _bad(criterion: Mapping[str, Any], interval: Interval) -> bool:
    _, low, high = interval
    return bool(low > criterion["at_most"] if "at_most" in criterion else high < criterion["at_least"])


def _remark(criterion: Mapping[str, Any], values: Sequence[float], confidence: float) -> str:
    """What a reader should know of a decided cell. The sign-flip p is a cross-check and changes nothing."""
    if len({rounded(value) for value in values}) == 1:
        return "no spread between blocks: judged as exact"
    p = flip_p(values, _logs(criterion), _threshold(criterion))
    return f"rests on the normal assumption: sign-flip p {p:.2g}" if p is not None and p > (1 - confidence) / 2 else ""


def flip_p(values: Sequence[float], logs: bool, null: float) -> float | None:
    """Sign-flip p of the blocks against `null`, on logs if told; None where it is not printed."""
    if not logs:
        return sign_flip_p(values, null)
    return sign_flip_p([math.log(value) for value in values], math.log(null)) if null > 0 else None


def distance(values: Sequence[float], logs: bool, confidence: float, scale: float = 1.0) -> float | None:
    """Smallest relative distance that these blocks decide in 80 % of runs, in one cell; of `scale` without logs."""
    if len(values) < 2 or (not logs and not scale):
        return None
    spread = stdev([math.log(value) for value in values] if logs else values)
    smallest = decidable(spread, len(values), confidence)
    return rounded(_exp(smallest) - 1 if logs else smallest / abs(scale))


def _decidable(criterion: Mapping[str, Any], found: Sequence[Series], confidence: float) -> float | None:
    """The distance of the noisiest cell."""
    if _exact(criterion):
        return None
    several = [s.valid() for s in found if not s.faults]
    distances = [distance(v, _logs(criterion), confidence, _threshold(criterion)) for v in several]
    return max((d for d in distances if d is not None), default=None)


def _suspect(criterion: Mapping[str, Any], cells: Sequence[Cell], evidence: Evidence) -> str:
    """Where the target differs from itself. A remark: the A/A control changes no verdict."""
    if criterion.get("compare") != "ratio" or _exact(criterion) or "aa" not in evidence.arm_names():
        return ""
    level = 1 - (1 - evidence.confidence) / len(cells) if cells else evidence.confidence
    differing = [cell for cell in cells if _differs_from_itself(criterion["metric"], cell, evidence, level)]
    where = ", ".join(f"{workload} {place(level)}" for workload, level in differing)
    return f"suspect: the target differs from its own second start ({where})" if differing else ""


def _differs_from_itself(metric: str, cell: Cell, evidence: Evidence, level: float) -> bool:
    found = series(evidence, cell, metric, "aa", "target")
    if found.faults or len(found.valid()) < MIN_BLOCKS:
        return False
    _, low, high = interval_of(found.valid(), True, level)
    return not low <= 1 <= high


def _exact(criterion: Mapping[str, Any]) -> bool:
    return bool(metrics()[criterion["metric"]]["kind"] == "exact")


def _logs(criterion: Mapping[str, Any]) -> bool:
    return criterion.get("compare") == "ratio"


def _threshold(criterion: Mapping[str, Any]) -> float:
    return float(criterion["at_most"] if "at_most" in criterion else criterion["at_least"])
