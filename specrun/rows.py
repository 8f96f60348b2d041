"""The tables of a result entry: ratios with intervals, and figures by cell and arm."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import median, stdev
from typing import Any

from speclint.canonical import rounded
from specrun.compare import MIN_BLOCKS, distance, flip_p, interval_of
from specrun.evidence import START_METRICS, WHOLE_START, Cell, Evidence, Row, Series, series

RATIO_METRICS = (
    "request_duration_mean",
    "request_duration_p50",
    "ttft_mean",
    "ttft_p50",
    "tpot_p50",
    "decode_time_per_token",
    "output_throughput",
    "request_throughput",
    "step_time",
)
COMPARISONS = (("pair", "target"), ("aa", "target"), ("matched", "target"), ("pair", "matched"))
FIGURE_COLUMNS = (
    "requests",
    "request_duration_p50",
    "request_duration_p95",
    "ttft_p50",
    "ttft_p95",
    "tpot_p50",
    "inter_chunk_gap_p50",
    "decode_time_per_token",
    "output_throughput",
    "output_throughput_window",
    "request_throughput",
    "goodput",
    "acceptance_rate",
    "acceptance_rate_counters",
    "mean_accepted_length",
    "tokens_per_step",
    "step_time",
    "output_tokens_mean",
    "output_tokens_sd",
    "preemptions",
    "arrival_bunching",
    "mean_in_flight",
    "in_flight_growth",
    "front_end_load",
)


def ratios(evidence: Evidence, metrics: Sequence[str] = RATIO_METRICS) -> list[dict[str, Any]]:
    """One row per cell, metric and comparison of arms, also of those that are not judged.

    `spread` is the sd of the logs over blocks; for `aa` over `target` that is the noise floor. `decidable` is the relative
    distance from a threshold that these blocks decide in 80 % of runs.
    """
    arms = evidence.arm_names()
    compared = [(arm, over) for arm, over in COMPARISONS if arm in arms and over in arms]
    return [
        _ratio_row(evidence, cell, metric, arm, over)
        for cell, metric in [*_per_start(evidence), *((cell, metric) for cell in evidence.cells for metric in metrics)]
        for arm, over in compared
    ]


def _per_start(evidence: Evidence) -> list[tuple[Cell, str]]:
    rows = [row for of_arm in evidence.starts.values() for row in of_arm.values()]
    return [(WHOLE_START, metric) for metric in START_METRICS if any(row.get(metric) for row in rows)]


def _ratio_row(evidence: Evidence, cell: Cell, metric: str, arm: str, over: str) -> dict[str, Any]:
    found = series(evidence, cell, metric, arm, over)
    row: dict[str, Any] = {"workload": cell[0], "concurrency": cell[1], "metric": metric, "arms": f"{arm}/{over}"}
    row |= dict.fromkeys(("value", "low", "high", "spread", "decidable", "sign_flip_p"))
    row |= _summary(found, evidence.confidence)
    if evidence.unfinished:  # an interval would invite the judgement that the run does not give
        row |= dict.fromkeys(("low", "high", "sign_flip_p"))
    row["blocks"] = [None if value is None else rounded(value) for value in found.values.values()]
    return row | ({"reason": "; ".join(found.faults)} if found.faults else {})


def _summary(found: Series, confidence: float) -> dict[str, float | None]:
    values = found.valid()
    if found.faults or len(values) < 2 or min(values) <= 0:
        return {}
    value, low, high = interval_of(values, True, confidence)
    p = flip_p(values, True, 1.0)
    return {
        "value": value,
        "low": low if len(values) >= MIN_BLOCKS else None,
        "high": high if len(values) >= MIN_BLOCKS else None,
        "spread": rounded(stdev(map(math.log, values))),
        "decidable": distance(values, True, confidence),
        "sign_flip_p": None if p is None else rounded(p),
    }


def figure_rows(
    evidence: Evidence, figures: Sequence[str] = FIGURE_COLUMNS
) -> tuple[list[str], list[list[str | int | float | None]]]:
    """Columns and rows, one per cell and arm: the median over the blocks that count, and the failed requests of all."""
    columns = ["workload", "concurrency", "arm", "blocks", "failed_requests", *figures]
    rows = [_figure_row(evidence, cell, arm, figures) for cell in evidence.cells for arm in evidence.arm_names()]
    return columns, rows


def _figure_row(evidence: Evidence, cell: Cell, arm: str, figures: Sequence[str]) -> list[str | int | float | None]:
    every = evidence.arms(cell).get(arm, {})
    counting = [row for block, row in sorted(every.items()) if (*cell, block) not in evidence.voids]
    failed = sum(int(row.get("failed_requests") or 0) for row in every.values())
    return [*cell, arm, len(counting), failed, *(_middle(counting, name) for name in figures)]


def _middle(rows: Sequence[Row] | Sequence[Mapping[str, Any]], name: str) -> float | None:
    """Median over blocks; None if any block lacks the figure."""
    values = [row.get(name) for row in rows]
    known = [value for value in values if value is not None]
    return rounded(median(known)) if known and len(known) == len(values) else None
