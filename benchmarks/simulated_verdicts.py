"""How often the judge is wrong, and how often it decides, by simulation with the judge's own code.

    python benchmarks/simulated_verdicts.py              10,000 runs a row, about eight minutes
    python benchmarks/simulated_verdicts.py --runs 500

Equal arms: the threshold is the truth, so each met and each not met is an error, bounded by 2.5 % of runs on either side.
Over several cells, not met is held to the same bound and met becomes rare. Power: truth and threshold apart by what
`specrun plan` says that the blocks decide.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from typing import NamedTuple

from specrun.compare import judge
from specrun.evidence import Cell, Evidence
from specrun.intervals import decidable

METRIC = "request_duration_mean"
CRITERION = {"id": "equal", "metric": METRIC, "compare": "ratio", "at_most": 1.0}
BAR = 0.029  # of plain rows: 2.5 % and what 10,000 runs leave open

Arms = dict[str, dict[int, dict[str, float | int | None]]]
Noise = Callable[[int], float]  # log noise of the start in this slot of the run
Scenario = Callable[[random.Random], Noise]  # a run's own noise


class Row(NamedTuple):
    """One line of the table. `shift`: log distance of the truth from the threshold, on the good side if negative."""

    name: str
    scenario: Scenario
    blocks: int = 6
    cells: int = 1
    shift: Callable[[int], float] = lambda cell: 0.0
    shared: float = 0.0  # correlation of the cells of a block


def gauss(spread: float) -> Scenario:
    return lambda chance: lambda _: chance.gauss(0, spread)


def heavy(spread: float) -> Scenario:
    """Student's t with 3 degrees of freedom, scaled to the same sd."""
    return lambda chance: lambda _: spread * chance.gauss(0, 1) / math.sqrt(chance.gammavariate(1.5, 2))


def slow_starts(spread: float) -> Scenario:
    """15 % of the starts are 30 % slower, in both arms alike."""
    return lambda chance: lambda _: chance.gauss(0, spread) + (math.log(1.3) if chance.random() < 0.15 else 0.0)


def drift(spread: float, whole: float = 0.03, slots: int = 12) -> Scenario:
    """The machine becomes slower by 3 % over the run."""
    return lambda chance: lambda slot: chance.gauss(0, spread) + whole * slot / slots


def step(spread: float, size: float = 0.1, slots: int = 12) -> Scenario:
    """The machine becomes slower by 10 % at one random time."""

    def of_run(chance: random.Random) -> Noise:
        at = chance.uniform(0, slots)
        return lambda slot: chance.gauss(0, spread) + (size if slot >= at else 0.0)

    return of_run


def remembering(spread: float, memory: float = 0.7, slots: int = 12) -> Scenario:
    """Noise that goes on from start to start: AR(1)."""

    def of_run(chance: random.Random) -> Noise:
        values = [chance.gauss(0, spread)]
        while len(values) < slots:
            values.append(memory * values[-1] + chance.gauss(0, spread * math.sqrt(1 - memory**2)))
        return lambda slot: values[slot]

    return of_run


def one_run(chance: random.Random, row: Row) -> str:
    """Verdict of one run in mirrored blocks: target pair, pair target, and so on."""
    whole = row.scenario(chance)
    table: dict[Cell, Arms] = {}
    common = {slot: whole(slot) for slot in range(2 * row.blocks)} if row.shared else {}
    for cell in range(row.cells):
        own, arms = row.scenario(chance), Arms({"target": {}, "pair": {}})
        for block in range(row.blocks):
            order = ("target", "pair") if block % 2 == 0 else ("pair", "target")
            for place, arm in enumerate(order):
                slot = 2 * block + place
                noise = math.sqrt(row.shared) * common.get(slot, 0.0) + math.sqrt(1 - row.shared) * own(slot)
                arms[arm][block] = {METRIC: math.exp(noise + (row.shift(cell) if arm == "pair" else 0.0))}
        table[(f"w{cell}", 1)] = arms
    return judge([CRITERION], Evidence(table, {}, list(table), 0.95))[0]["verdict"]


def equal_arms() -> Iterator[Row]:
    for spread in (0.0, 0.01, 0.02, 0.05, 0.1, 0.2):
        yield Row(f"spread {spread:.0%}", gauss(spread))
    for blocks in (4, 8, 12):
        yield Row(f"spread 5%, {blocks} blocks", gauss(0.05), blocks)
    yield Row("heavy tails, 5%", heavy(0.05))
    yield Row("15% slow starts, 2%", slow_starts(0.02))
    yield Row("drift of 3%, 2%", drift(0.02))
    yield Row("step of 10%, 2%", step(0.02))
    yield Row("AR(1) 0.7, 5%", remembering(0.05))


def several_cells() -> Iterator[Row]:
    for cells in (2, 6, 13):
        yield Row(f"all over {cells} cells", gauss(0.05), cells=cells)
    for cells in (6, 13):
        yield Row(f"all over {cells} cells, correlation 0.5", gauss(0.05), cells=cells, shared=0.5)


def power() -> Iterator[Row]:
    sd = 0.05 * math.sqrt(2)  # of a block's log ratio
    for blocks in (4, 6, 8, 12):
        far = decidable(sd, blocks, 0.95)
        yield Row(f"threshold {math.expm1(far):.1%} above the truth, {blocks} blocks", gauss(0.05), blocks, shift=below(far))
    for times in (1.0, 1.5, 2.0, 3.0):
        yield Row(f"6 cells, threshold {times:g} block sd above the truth", gauss(0.05), cells=6, shift=below(times * sd))
    yield Row("6 cells, one bad by 2 block sd", gauss(0.05), cells=6, shift=lambda cell: -9 * sd if cell else 2 * sd)


def below(far: float) -> Callable[[int], float]:
    """The same distance on the good side in every cell."""
    return lambda _: -far


def shares(row: Row, runs: int, seed: int) -> dict[str, float]:
    """Share of runs by verdict."""
    chance = random.Random(f"{seed} {row.name}")
    counts = Counter(one_run(chance, row) for _ in range(runs))
    return {verdict: counts[verdict] / runs for verdict in ("met", "not_met", "undecided")}


def main() -> int:
    """Print a row per scenario; status 1 if a plain one (gauss, one cell) is above the bar."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    worst = 0.0
    for title, rows in (("equal arms", equal_arms()), ("equal arms, several cells", several_cells()), ("power", power())):
        print(f"\n| {title} | met | not met | undecided |\n|---|---|---|---|")
        for row in rows:
            found = shares(row, args.runs, args.seed)
            print(f"| {row.name} | {found['met']:.2%} | {found['not_met']:.2%} | {found['undecided']:.2%} |", flush=True)
            if row.name.startswith("spread") and row.name != "spread 0%":
                worst = max(worst, found["met"], found["not_met"])
    print(f"\nworst plain row {worst:.2%}, bar {BAR:.1%}, {args.runs} runs a row")
    return int(worst > BAR)


if __name__ == "__main__":
    sys.exit(main())
