"""What a percentile of few requests does to a verdict, by simulation with the judge's own percentile, interval and rule.

    python benchmarks/simulated_percentiles.py              3,000 runs a row, about two minutes
    python benchmarks/simulated_percentiles.py --runs 300

Six blocks whose starts vary by 3 %, log-normal requests (sd of the log 0.3). With other tails, 10 % of the pair's requests take
2.5 times as long. The threshold is the ratio of the true percentiles, so every met is an error. The rule judges a
percentile only with ten requests beyond it.
"""

from __future__ import annotations

import argparse
import math
import random
from collections.abc import Iterator
from statistics import NormalDist, fmean
from typing import NamedTuple

from specrun.compare import interval_of
from specrun.measure import percentile, unsupported

BLOCKS, START, REQUEST = 6, 0.03, 0.3
SLOW_SHARE, SLOW = 0.1, 2.5


class Outcome(NamedTuple):
    """Shares of runs, and the mean error of the estimate."""

    covered: float
    bias: float
    false_met: float


def true_quantile(q: float, slow: float) -> float:
    """Of the requests of an arm with this share of slow ones, by bisection."""
    normal = NormalDist(0, REQUEST)
    low, high = -3.0, 3.0
    for _ in range(60):
        middle = (low + high) / 2
        below = (1 - slow) * normal.cdf(middle) + slow * normal.cdf(middle - math.log(SLOW))
        low, high = (middle, high) if below < q else (low, middle)
    return math.exp(low)


def block_value(chance: random.Random, q: float, n: int, slow: float) -> float:
    """The percentile of one window."""
    start = chance.gauss(0, START)
    logs = (chance.gauss(start, REQUEST) + (math.log(SLOW) if chance.random() < slow else 0.0) for _ in range(n))
    return percentile(sorted(map(math.exp, logs)), q)


def simulated(q: float, n: int, slow: float, runs: int, seed: int = 1) -> Outcome:
    """Coverage and bias of the interval for the ratio of the true percentiles, and false met with the threshold on it."""
    chance, truth = random.Random(f"{seed} {q} {n} {slow}"), true_quantile(q, slow) / true_quantile(q, 0.0)
    covered, met, errors = 0, 0, []
    for _ in range(runs):
        ratios = [block_value(chance, q, n, slow) / block_value(chance, q, n, 0.0) for _ in range(BLOCKS)]
        value, low, high = interval_of(ratios, True, 0.95)
        covered += low <= truth <= high
        met += high <= truth
        errors.append(math.log(value / truth))
    return Outcome(covered / runs, math.expm1(fmean(errors)), met / runs)


def rows() -> Iterator[tuple[str, float, int, float]]:
    """Metric, quantile, requests, share of slow requests in the pair."""
    for n in (16, 32, 64, 100, 200, 500):
        yield "ttft_p95", 0.95, n, SLOW_SHARE
    yield "ttft_p95", 0.95, 32, 0.0
    yield "ttft_p95", 0.95, 200, 0.0
    yield "ttft_p50", 0.5, 20, SLOW_SHARE
    yield "ttft_p99", 0.99, 100, SLOW_SHARE


def main() -> None:
    """Print a row per percentile and number of requests."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=3000)
    args = parser.parse_args()
    print("| percentile | requests | tails | judged | covers | bias | false met |\n|---|---|---|---|---|---|---|")
    for metric, q, n, slow in rows():
        found = simulated(q, n, slow, args.runs)
        told = f"| {found.covered:.1%} | {found.bias:+.1%} | {found.false_met:.1%} |"
        judged = "no" if unsupported(metric, n) else "yes"
        print(f"| {metric[-3:]} | {n} | {'other' if slow else 'same'} | {judged} {told}", flush=True)


if __name__ == "__main__":
    main()
