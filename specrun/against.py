"""One result against another: what changed in the spec and in what ran, and which differences are more than the spread of starts.

Two results stand on different server starts, so their blocks have nothing in common and are compared as two independent samples:
Welch's t on the logs of the block ratios pair / target (on the values themselves for acceptance). Only ratios carry over from one
result to the other; absolute figures also move with the machine. Degrees of freedom are rounded down, which errs towards doubt.
A difference counts as real only at 1 - (1 - confidence) / n for all n comparisons that are made.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean, variance
from typing import Any, Literal, NamedTuple

from speclint.canonical import canonical, rounded
from speclint.data import metrics
from specrun.compare import MIN_BLOCKS
from specrun.evidence import START_METRICS, WHOLE_START, Cell
from specrun.intervals import t_quantile
from specrun.report.tables import Entry, Interval, Result, cells, figures, interval, ratio_rows

METRICS = ("request_duration_p50", "ttft_p50", "tpot_p50", "output_throughput")
FIGURES = (*METRICS, "acceptance_rate", "mean_accepted_length", "tokens_per_step", "step_time")
SECTIONS = ("pair", "protocol", "lock")
VOLATILE = ("/host/memory_bytes", "/host/gpus/uuid_sha256", "/host/gpus/index")
Spec = Mapping[str, Any]
Finding = Literal["better", "worse", "alone", "not_told_apart", "not_compared"]


class Change(NamedTuple):
    """A value that differs; None where one side has none."""

    path: str
    before: Any
    after: Any


class Difference(NamedTuple):
    """One figure of one cell in both results. `change`: after / before of the ratios, or after - before of acceptance.

    `finding`: `better` or `worse` at the level for all comparisons; `alone`: only at the level for a single one.
    """

    cell: Cell
    metric: str
    before: Interval
    after: Interval
    change: Interval
    finding: Finding
    reason: str


class Shift(NamedTuple):
    """A figure of one arm in both results, median over blocks, or the ratio of a whole start. Not judged."""

    cell: Cell
    arm: str
    metric: str
    before: float | None
    after: float | None


class Comparison(NamedTuple):
    """All of it. `changes`: in the spec; `ran`: engine and machine; `cautions`: why a difference may not be what it seems."""

    changes: Sequence[Change]
    ran: Sequence[Change]
    differences: Sequence[Difference]
    shifts: Sequence[Shift]
    confidence: float
    cautions: Sequence[str]


def against(after: Result, before: Result) -> Comparison:
    """What changed from one result to the other, and what of it is real."""
    changes, ran = spec_changes(before.spec, after.spec), run_changes(before.entry, after.entry)
    confidence = max(side.spec["protocol"]["confidence"] for side in (before, after))
    known = all(side.entry["established"]["verdict"] == "established" for side in (before, after))
    found = list(differences(samples(after, before), confidence)) if known else []
    cautions = [*_cautions(changes, ran), *([] if known else ["one of the results was not established: nothing is compared"])]
    return Comparison(changes, ran, found, list(_shifts(before.entry, after.entry)), confidence, cautions)


def spec_changes(before: Spec, after: Spec) -> list[Change]:
    """Values of pair, protocol and lock that differ, by path."""
    return changed({key: before.get(key) for key in SECTIONS}, {key: after.get(key) for key in SECTIONS})


def run_changes(before: Entry, after: Entry) -> list[Change]:
    """What ran differently: engine, machine, placement and this tool."""
    names = ("tool", "engine", "host", "placement")
    found = changed({key: before[key] for key in names}, {key: after[key] for key in names})
    return [change for change in found if not any(_without_ids(change.path) == path for path in VOLATILE)]


def _without_ids(path: str) -> str:
    return "/".join(part for part in path.split("/") if not part.isdigit())


def changed(before: Any, after: Any) -> list[Change]:
    """Leaves that differ. Lists of mappings go by their `id`, else by position; other lists are one value."""
    left, right = dict(_leaves(before, "")), dict(_leaves(after, ""))
    paths = [path for path in dict.fromkeys([*left, *right]) if canonical(left.get(path)) != canonical(right.get(path))]
    return [Change(path, left.get(path), right.get(path)) for path in paths]


def _leaves(value: Any, at: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping) and value:
        for key, inner in value.items():
            yield from _leaves(inner, f"{at}/{key}")
    elif isinstance(value, list) and value and all(isinstance(item, Mapping) for item in value):
        for index, item in enumerate(value):
            yield from _leaves(item, f"{at}/{item.get('id', index)}")
    else:
        yield at, value


class Sample(NamedTuple):
    """Block values of one figure of one cell on both sides; with `logs` ratios, else levels."""

    cell: Cell
    metric: str
    before: Mapping[str, Any]
    after: Mapping[str, Any]
    logs: bool


def differences(samples: Sequence[Sample], confidence: float) -> Iterator[Difference]:
    """Each comparison, judged at the level for all of them."""
    level = 1 - (1 - confidence) / max(1, len(samples))
    for sample in samples:
        before, after = interval(sample.before), interval(sample.after)
        change, finding, reason = judged(sample, confidence, level)
        yield Difference(sample.cell, sample.metric, before, after, change, finding, reason)


def judged(sample: Sample, confidence: float, level: float) -> tuple[Interval, Finding, str]:
    """The change with its interval at `confidence`; what is found of it at `level`."""
    sides = [[value for value in row["blocks"] if value is not None] for row in (sample.before, sample.after)]
    if reason := next((row["reason"] for row in (sample.before, sample.after) if row.get("reason") and row["value"] is None), ""):
        return Interval(None, None, None), "not_compared", str(reason)
    if min(map(len, sides)) < MIN_BLOCKS or (sample.logs and min(map(min, sides)) <= 0):
        return Interval(None, None, None), "not_compared", f"{MIN_BLOCKS} blocks with a value are needed on both sides"
    left, right = [[math.log(value) for value in side] if sample.logs else side for side in sides]
    shown = _shown(welch(left, right, confidence), sample.logs)
    null = 1.0 if sample.logs else 0.0
    finding: Finding = "not_told_apart"
    if _beyond(_shown(welch(left, right, level), sample.logs), null):
        finding = _direction(sample.metric, shown, null)
    elif _beyond(shown, null):
        finding = "alone"
    return shown, finding, ""


def _beyond(found: Interval, null: float) -> bool:
    return found.low is not None and found.high is not None and not found.low <= null <= found.high


def _direction(metric: str, found: Interval, null: float) -> Finding:
    higher = (found.value or 0.0) > null
    return "better" if higher == (metrics()[metric]["better"] == "higher") else "worse"


def welch(before: Sequence[float], after: Sequence[float], confidence: float) -> tuple[float, float, float]:
    """Difference of the means, after - before, with its two-sided Welch interval. Each side needs two values."""
    difference = fmean(after) - fmean(before)
    parts = [variance(side) / len(side) for side in (before, after)]
    total = sum(parts)
    if not total:
        return difference, difference, difference
    degrees = total**2 / sum(part**2 / (len(side) - 1) for part, side in zip(parts, (before, after), strict=True))
    half = t_quantile(0.5 + confidence / 2, max(1, math.floor(degrees + 1e-9))) * math.sqrt(total)
    return difference, difference - half, difference + half


def _shown(found: tuple[float, float, float], logs: bool) -> Interval:
    return Interval(*(rounded(math.exp(max(-700.0, min(700.0, x))) if logs else x) for x in found))


def samples(after: Result, before: Result) -> list[Sample]:
    """What both results have block by block: the ratios, and the levels that a criterion of both judged."""
    left, right = ratio_rows(before.entry), ratio_rows(after.entry)
    out = [Sample(key[:2], key[2], row, right[key], True) for key, row in left.items() if key[2] in METRICS and key in right]
    was, now = _levels(before), _levels(after)
    return out + [Sample(key[:2], key[2], row, now[key], False) for key, row in was.items() if key in now]


def _levels(result: Result) -> dict[tuple[str, Any, str], Mapping[str, Any]]:
    """The pair's own values that were judged, such as acceptance; only there an entry keeps them block by block."""
    judged = {verdict["id"]: verdict["cells"] for verdict in result.entry["verdicts"]}
    found: dict[tuple[str, Any, str], Mapping[str, Any]] = {}
    for criterion in result.spec["protocol"]["criteria"]:
        if metrics()[criterion["metric"]]["kind"] == "level" and "compare" not in criterion:
            found |= {(c["workload"], c["concurrency"], criterion["metric"]): c for c in judged.get(criterion["id"], [])}
    return found


def _shifts(before: Entry, after: Entry) -> Iterator[Shift]:
    left, right = figures(before), figures(after)
    for cell in cells(after):
        for arm in ("target", "pair"):
            old, new = left.get((*cell, arm), {}), right.get((*cell, arm), {})
            for metric in FIGURES:
                if old.get(metric) is not None or new.get(metric) is not None:
                    yield Shift(cell, arm, metric, old.get(metric), new.get(metric))
    was, now = ratio_rows(before), ratio_rows(after)
    for metric in START_METRICS:
        if (key := (*WHOLE_START, metric)) in was and key in now:
            yield Shift(WHOLE_START, "pair/target", metric, was[key]["value"], now[key]["value"])


def _cautions(changes: Sequence[Change], ran: Sequence[Change]) -> Iterator[str]:
    own = [change.path for change in changes if change.path.startswith(("/pair", "/protocol"))]
    asked = [path for path in own if not path.startswith(("/pair", "/protocol/criteria"))]
    meant = [path for path in own if path.startswith("/pair") and not path.endswith("/revision")]
    if len(meant) > 1:
        yield f"the pairs differ in {len(meant)} settings: what differs below cannot be put down to one of them"
    if asked:
        yield f"the protocols ask different things ({', '.join(asked[:3])}): the ratios answer different questions"
    machine = [change.path for change in ran if change.path.startswith("/host")]
    if machine and not own:
        yield "the spec is the same and the machine is not"
    elif machine:
        yield f"the machines differ too ({', '.join(machine[:3])})"
