"""What several K do to a comparison, by simulation with the sweep's own code.

    python benchmarks/simulated_sweeps.py              10,000 runs a row, about two minutes
    python benchmarks/simulated_sweeps.py --runs 500

Six blocks whose starts vary by 5 %. First every K is equal to the others and to the threshold: each K called met or worse is an
error. Then one K is better than the others, which are equal, by the stated distance.
"""

from __future__ import annotations

import argparse
import math
import random
from typing import NamedTuple

from specrun.compare import interval_of
from specrun.evidence import Cell, Evidence
from specrun.sweep import sweep

METRIC = "request_duration_mean"
CRITERION = {"id": "equal", "metric": METRIC, "compare": "ratio", "at_most": 1.0}
CELL: Cell = ("w", 1)
BLOCKS, SPREAD = 6, 0.05


class Outcome(NamedTuple):
    """Shares of runs: some K met at 95 % and at the sweep's level, some K called worse, a winner, the right one; and the
    ratio of the K that looks best."""

    met_naive: float
    met: float
    worse: float
    winner: float
    right: float
    best_looking: float


def simulated(count: int, runs: int, better: float = 0.0, seed: int = 1) -> Outcome:
    """`count` numbers of draft tokens, of which the first is better by `better`."""
    chance = random.Random(f"{seed} {count} {better}")
    arms = {f"k{k}": k for k in range(1, count + 1)}
    totals = [0.0] * len(Outcome._fields)
    for _ in range(runs):
        for i, value in enumerate(_one(chance, arms, better)):
            totals[i] += value
    return Outcome(*(total / runs for total in totals))


def _one(chance: random.Random, arms: dict[str, int], better: float) -> Outcome:
    shift = {"k1": math.log1p(-better)}
    table = {
        arm: {b: {METRIC: math.exp(chance.gauss(shift.get(arm, 0.0), SPREAD))} for b in range(BLOCKS)}
        for arm in ("target", *arms)
    }
    found = sweep(Evidence({CELL: table}, {}, [CELL], 0.95), [CRITERION], arms, {})
    assert found is not None
    (made,) = found["tables"]
    ratios = [[value for value in row["blocks"] if value is not None] for row in made["rows"]]
    return Outcome(
        met_naive=any(interval_of(of_k, True, 0.95)[2] <= 1 for of_k in ratios),
        met=any((row["high"] or 2) <= 1 for row in made["rows"]),
        worse=len(made["best"]) < len(arms),
        winner=found["winner"] is not None,
        right=found["winner"] == 1,
        best_looking=min(row["value"] or 2 for row in made["rows"]),
    )


def main() -> None:
    """Print a row per number of K and distance."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10_000)
    args = parser.parse_args()
    titles = (
        "K",
        "one better by",
        "some K met at 95%",
        "at the sweep's level",
        "some K worse",
        "a winner",
        "the right one",
        "looks best",
    )
    print(f"| {' | '.join(titles)} |\n|{'---|' * len(titles)}")
    for count, better in ((2, 0.0), (4, 0.0), (6, 0.0), (4, 0.1), (4, 0.15), (4, 0.2), (4, 0.3)):
        o = simulated(count, args.runs, better)
        shares = " | ".join(f"{share:.1%}" for share in o[:-1])
        print(f"| {count} | {better:.0%} | {shares} | {o.best_looking:.3f} |", flush=True)


if __name__ == "__main__":
    main()
