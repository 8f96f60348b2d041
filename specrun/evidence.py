"""The figures of a run as the judge reads them: by cell, arm and block, and the value that one block gives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean

from speclint.data import metrics
from specrun.arrival import Level
from specrun.measure import quantile_of, sample_size, unsupported

Cell = tuple[str, Level | None]  # workload and concurrency, or "open"; ("-", None) for figures of a whole start
Row = Mapping[str, float | int | None]
Arms = Mapping[str, Mapping[int, Row]]  # arm, then block
Table = Mapping[Cell, Arms]
Voids = Mapping[tuple[str, Level, int], str]  # (workload, concurrency, block) to the reason

WHOLE_START: Cell = ("-", None)
START_METRICS = ("kv_capacity_tokens", "kv_capacity_sequences", "memory_peak_bytes")
JUDGED_WHEN_NATURAL = ("decode_time_per_token", "output_throughput")  # and TTFT
BUNCHING_DIFFERS = 0.2
ARMS = ("target", "pair", "aa", "matched")
PAIRED = ("target", "pair")


@dataclass(frozen=True, slots=True)
class Evidence:
    """All that verdicts rest on.

    `cells`: every planned (workload, concurrency). `starts`: figures of whole server starts. `natural`: length tolerance
    of each workload whose answers end by themselves. `one_start`: every arm was started once (`servers: resident`). `unfinished`:
    why nothing is judged although there are figures, empty if every planned block is there.
    """

    table: Table
    starts: Arms
    cells: Sequence[Cell]
    confidence: float
    voids: Voids = field(default_factory=dict)
    natural: Mapping[str, float] = field(default_factory=dict)
    one_start: bool = False
    unfinished: str = ""

    def arms(self, cell: Cell) -> Arms:
        """Figures of a cell by arm and block."""
        return self.starts if cell == WHOLE_START else self.table.get(cell, {})

    def blocks(self, cell: Cell) -> list[int]:
        """Every block of the run, also one that left no figures in this cell."""
        several = [self.starts] if cell == WHOLE_START else [*self.table.values()]
        return sorted({block for arms in several for of_arm in arms.values() for block in of_arm})

    def closed(self, workload: str) -> list[tuple[str, int]]:
        """Cells of a workload in closed loop, by rising concurrency."""
        return sorted((name, level) for name, level in self.cells if name == workload and isinstance(level, int))

    def counting(self, cell: Cell) -> list[int]:
        """Blocks of a cell that are not void and that both target and pair have."""
        arms = self.arms(cell)
        both = arms.get("target", {}).keys() & arms.get("pair", {}).keys()
        return sorted(block for block in both if (*cell, block) not in self.voids)

    def arm_names(self) -> list[str]:
        """Arms in the order in which they are reported, as far as the run has them."""
        present = dict.fromkeys(arm for arms in self.table.values() for arm in arms)
        return [arm for arm in ARMS if arm in present] + [arm for arm in present if arm not in ARMS]


@dataclass(frozen=True, slots=True)
class Series:
    """One metric of one cell over blocks: values (None where there is none), void blocks, and why it cannot be judged."""

    values: Mapping[int, float | None]
    void: Mapping[int, str]
    faults: Sequence[str]

    def valid(self) -> list[float]:
        """Values of the blocks that count, in order."""
        return [value for value in self.values.values() if value is not None]


def series(evidence: Evidence, cell: Cell, metric: str, arm: str = "pair", over: str | None = None) -> Series:
    """Each block's figure of `arm`, divided by that of arm `over` if one is given."""
    blocks, arms = evidence.blocks(cell), evidence.arms(cell)
    void = {b: why for b in blocks if (why := _void(evidence, cell, metric, b))}
    values: dict[int, float | None] = dict.fromkeys(blocks)
    faults = cell_faults(evidence, cell, metric, arm, over)
    for block in [b for b in blocks if b not in void]:
        rows = [(name, arms.get(name, {}).get(block, {})) for name in (arm, over) if name]
        missing = [why for name, row in rows if (why := _fault(row, metric, name, block, over))]
        faults += missing
        values[block] = None if missing else _divided([row[metric] for _, row in rows])
    return Series(values, void, list(dict.fromkeys(faults)))


def counting_rows(evidence: Evidence, cell: Cell, arm: str) -> list[Row]:
    """Figures of one arm in the blocks of a cell that count."""
    rows = evidence.arms(cell).get(arm, {})
    return [rows[block] for block in evidence.counting(cell) if block in rows]


def mean_of(rows: Sequence[Row], name: str) -> float | None:
    """Mean of one figure over the rows that have it; None if none has."""
    values = [value for row in rows if (value := row.get(name)) is not None]
    return fmean(values) if values else None


def bunching_difference(arms: Arms, arm: str = "pair") -> float | None:
    """How much more the target's sends come together than another arm's, beyond what their rates explain; mean over blocks."""
    excess = {name: [e for row in arms.get(name, {}).values() if (e := _excess(row)) is not None] for name in ("target", arm)}
    return None if not all(excess.values()) else fmean(excess["target"]) - fmean(excess[arm])


def _excess(row: Row) -> float | None:
    share, by_chance = row.get("arrival_bunching"), row.get("arrival_bunching_by_chance")
    return None if share is None or by_chance is None else share - by_chance


def _void(evidence: Evidence, cell: Cell, metric: str, block: int) -> str | None:
    """Failures void a cell but are themselves a figure, which therefore always counts."""
    if metric == "failed_requests" or cell[1] is None:
        return None
    return evidence.voids.get((cell[0], cell[1], block))


def cell_faults(evidence: Evidence, cell: Cell, metric: str, arm: str, over: str | None) -> list[str]:
    """Why a whole cell cannot be judged by this metric: lengths that differ, or arms that arrive differently."""
    if metrics().get(metric, {}).get("kind") != "ratio":
        return []
    faults = _length_faults(evidence, cell, metric, arm) if cell[0] in evidence.natural else []
    difference = bunching_difference(evidence.arms(cell), arm) if metric.startswith("ttft") and over == "target" else None
    if difference is not None and abs(difference) > BUNCHING_DIFFERS:
        faults.append(f"sends of the {'target' if difference > 0 else arm} come in lock-step: TTFT does not compare")
    return faults


def _length_faults(evidence: Evidence, cell: Cell, metric: str, arm: str) -> list[str]:
    if metric not in JUDGED_WHEN_NATURAL and not metric.startswith("ttft"):
        return [f"answers end by themselves: {metric} depends on their lengths"]
    tolerance, arms = evidence.natural[cell[0]], evidence.arms(cell)
    faults = []
    for block in evidence.blocks(cell):
        lengths = [arms.get(name, {}).get(block, {}).get("output_tokens_mean") for name in ("target", arm)]
        ratio = lengths[1] / lengths[0] if lengths[0] and lengths[1] else None
        if ratio is not None and abs(ratio - 1) > tolerance:
            faults.append(f"block {block}: the {arm}'s answers are {ratio:.3g} times as long, tolerance {tolerance:g}")
    return faults


def _fault(row: Row, metric: str, arm: str, block: int, over: str | None) -> str | None:
    value = row.get(metric)
    if quantile_of(metric) and row and (why := unsupported(metric, sample_size(metric, row))):
        return why
    if value is None:
        return f"block {block} has no value ({arm})"
    exact = metrics().get(metric, {}).get("kind") == "exact"
    if over and value <= 0 and not (exact and arm != over):
        return f"block {block} is zero ({arm})"
    return None


def _divided(values: Sequence[float | int | None]) -> float | None:
    top, bottom = values[0], values[1] if len(values) > 1 else 1
    return None if top is None or not bottom else top / bottom
