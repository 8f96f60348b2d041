"""K sweep: arms that differ in num_speculative_tokens alone, held against the target and against each other.

Criteria judge the spec's own K only. A sweep answers another question, which K is worth a spec of its own, and has its own
rule, because the best-looking of several equal ones always looks good:

* K against target: t on log ratios over blocks, at 1 - (1 - confidence) / n for n numbers (Bonferroni).
* K against K: paired by block, at 1 - (1 - confidence) / (n (n - 1) / 2). One is worse if the interval lies wholly on the bad
  side of 1, whichever of the others it was. The chance that any of several equal K is called worse is at most 1 - confidence.
* A winner is better than every other K, in every table. Otherwise those that none is better than are named, and no winner.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from statistics import linear_regression
from typing import Any, NotRequired, TypedDict

from speclint.canonical import rounded
from speclint.data import metrics
from specrun.arrival import Level
from specrun.compare import MIN_BLOCKS, cells_of, interval_of
from specrun.evidence import Cell, Evidence, cell_faults, series
from specrun.findings import Told

Blocks = Mapping[int, float]


class Row(TypedDict):
    """One K against the target in one cell, as the schema has it."""

    k: int
    value: float | None
    low: float | None
    high: float | None
    blocks: list[float | None]
    reason: NotRequired[str]


class Table(TypedDict):
    """One metric in one cell over every K. `best`: those that no other is better than; `winner`: better than every other."""

    metric: str
    workload: str
    concurrency: Level | None
    rows: list[Row]
    best: list[int]
    winner: int | None


class Sweep(TypedDict):
    """What a sweep found, as the schema has it."""

    num_speculative_tokens: list[int]
    rule: str
    winner: int | None
    tables: list[Table]


def sweep(
    evidence: Evidence, criteria: Sequence[Mapping[str, Any]], arms: Mapping[str, int], faults: Mapping[str, str]
) -> Sweep | None:
    """A table per metric and cell that a ratio criterion is about; None without a sweep.

    `arms`: K of every arm that speculates. `faults`: arms that did not run as meant and why; they are compared with nothing.
    """
    if len(arms) < 2:
        return None
    tables = [_table(evidence, metric, cell, arms, faults) for metric, cell in _asked(criteria, evidence)]
    winners = {table["winner"] for table in tables}
    return {
        "num_speculative_tokens": sorted(arms.values()),
        "rule": _rule(len(arms), evidence),
        "winner": winners.pop() if len(winners) == 1 and not evidence.one_start else None,
        "tables": tables,
    }


def _asked(criteria: Sequence[Mapping[str, Any]], evidence: Evidence) -> Iterator[tuple[str, Cell]]:
    ratios = [c for c in criteria if c.get("compare") == "ratio" and "weights" not in c]
    judged = [c for c in ratios if metrics()[c["metric"]]["kind"] == "ratio"]
    yield from dict.fromkeys((c["metric"], cell) for c in judged for cell in cells_of(c, evidence.cells))


def _rule(count: int, evidence: Evidence) -> str:
    error = f"1 - (1 - {evidence.confidence:g})"
    once = " Every server was started once: no winner is named." if evidence.one_start else ""
    return (
        f"Intervals of K / target at {error} / {count}. One K is worse than another if the interval of their paired block "
        f"ratios at {error} / {count * (count - 1) // 2} lies wholly on the bad side of 1. A winner is better than every "
        f"other K in every table.{once}"
    )


def _table(evidence: Evidence, metric: str, cell: Cell, arms: Mapping[str, int], faults: Mapping[str, str]) -> Table:
    rows, compared = [], {}
    for arm, k in sorted(arms.items(), key=lambda item: item[1]):
        values = series(evidence, cell, metric, arm, "target").values
        known = {block: value for block, value in values.items() if value}
        why = faults.get(arm) or evidence.unfinished or _why_not(evidence, metric, cell, arm, len(known))
        rows.append(_row(k, values, None if why else known, why, 1 - (1 - evidence.confidence) / len(arms)))
        if not why:
            compared[k] = known
    beats = _beats(compared, metric, 1 - (1 - evidence.confidence) / (len(arms) * (len(arms) - 1) / 2))
    best = [k for k in compared if not any((other, k) in beats for other in compared)]
    winner = [k for k in best if all((k, other) in beats for other in arms.values() if other != k)]
    return {
        "metric": metric,
        "workload": cell[0],
        "concurrency": cell[1],
        "rows": rows,
        "best": best,
        "winner": winner[0] if winner and not evidence.one_start else None,
    }


def _why_not(evidence: Evidence, metric: str, cell: Cell, arm: str, blocks: int) -> str:
    faults = [*cell_faults(evidence, cell, metric, arm, "target")]
    if blocks < MIN_BLOCKS:
        faults.append(f"{blocks} valid blocks, {MIN_BLOCKS} are needed")
    return "; ".join(faults)


def _row(k: int, values: Mapping[int, float | None], known: Blocks | None, why: str, level: float) -> Row:
    value, low, high = interval_of([*known.values()], True, level) if known else (None, None, None)
    blocks = [None if x is None else rounded(x) for x in values.values()]
    row: Row = {"k": k, "value": value, "low": low, "high": high, "blocks": blocks}
    return row | {"reason": why} if why else row


def _beats(compared: Mapping[int, Blocks], metric: str, level: float) -> set[tuple[int, int]]:
    """Pairs (better, worse) of K that their common blocks separate."""
    out = set()
    lower = metrics()[metric]["better"] == "lower"
    for one, other in combinations(compared, 2):
        both = compared[one].keys() & compared[other].keys()
        if len(both) >= MIN_BLOCKS:
            _, low, high = interval_of([compared[one][b] / compared[other][b] for b in sorted(both)], True, level)
            if high < 1 or low > 1:
                out.add((one, other) if (high < 1) == lower else (other, one))
    return out


def step_cost(evidence: Evidence, cell: Cell, arms: Mapping[str, int]) -> Told:
    """Step time as a line over K, block by block: what a step costs without a draft token, and what each of them adds."""
    rows = evidence.arms(cell)
    lines, off = [], dict.fromkeys(arms.values(), 0.0)
    for block in evidence.counting(cell):
        times = {k: t for arm, k in arms.items() if (t := rows.get(arm, {}).get(block, {}).get("step_time"))}
        own = rows["target"][block].get("step_time")
        if own and len(times) == len(arms) > 1:
            slope, intercept = linear_regression([*times], [*times.values()])
            lines.append((1000 * intercept, 1000 * slope, 1000 * (intercept - own)))
            for k, seconds in times.items():
                off[k] += seconds / (intercept + slope * k) - 1
    if len(lines) >= MIN_BLOCKS:
        base, slope_ms, extra = (interval_of(column, False, evidence.confidence) for column in zip(*lines, strict=True))
        text = (
            f"over K = {', '.join(map(str, sorted(arms.values())))} a step takes {_ms(base)} before its first draft token, "
            f"{_ms(extra)} more than the target's, and {_ms(slope_ms)} for each draft token, drafted and verified "
            f"({_fit(off, len(lines))})"
        )
        yield "DX19", text


def _fit(off: Mapping[int, float], blocks: int) -> str:
    """How far the line misses: a cliff, such as graphs that end, is no line."""
    k, most = max(off.items(), key=lambda item: abs(item[1]))
    return "two points make the line" if len(off) == 2 else f"the point farthest from the line is K = {k}, {most / blocks:+.1%}"


def _ms(interval: Sequence[float]) -> str:
    return f"{interval[0]:.3g} ms ({interval[1]:.3g} to {interval[2]:.3g})"
