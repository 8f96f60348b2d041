"""Student's t and what can be said with a few blocks. No dependency: n is 2 to 64 and degrees of freedom are whole."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from functools import cache
from statistics import fmean, stdev

SIGN_FLIP_BLOCKS = range(6, 31)  # below, p cannot reach 0.0156; above, t needs no cross-check


def t_interval(values: Sequence[float], confidence: float) -> tuple[float, float, float]:
    """Mean and two-sided Student t interval of it: (mean, low, high). Raises ValueError below two values."""
    if len(values) < 2:
        raise ValueError("an interval needs at least two values")
    mean = fmean(values)
    half = t_quantile(0.5 + confidence / 2, len(values) - 1) * stdev(values) / math.sqrt(len(values))
    return mean, mean - half, mean + half


@cache
def t_quantile(p: float, df: int) -> float:
    """The value that Student's t with `df` degrees of freedom stays below with probability `p`, 0 < p < 1."""
    if not 0 < p < 1 or df < 1:
        raise ValueError(f"no t quantile for p={p}, df={df}")
    if p < 0.5:
        return -t_quantile(1 - p, df)
    angle = _rising_root(lambda theta: _central(theta, df) - (2 * p - 1), 0.0, math.pi / 2)
    return math.sqrt(df) * math.tan(angle)


def _central(theta: float, df: int) -> float:
    """P(|T| < sqrt(df) tan(theta)): the finite series for whole df (Abramowitz and Stegun 26.7.3 and 26.7.4)."""
    odd = df % 2
    if df == 1:
        return 2 * theta / math.pi
    term = math.cos(theta) if odd else 1.0
    total = term
    for i in range(2 + odd, df - 1, 2):
        term *= math.cos(theta) ** 2 * (i - 1) / i
        total += term
    return 2 / math.pi * (theta + math.sin(theta) * total) if odd else math.sin(theta) * total


def sd_interval(sd: float, n: int, confidence: float) -> tuple[float, float]:
    """Chi-square interval of a standard deviation that was estimated from `n` normal values."""
    low, high = (_chi_square_quantile(0.5 + side * confidence / 2, n - 1) for side in (1, -1))
    return sd * math.sqrt((n - 1) / low), sd * math.sqrt((n - 1) / high)


@cache
def _chi_square_quantile(p: float, df: int) -> float:
    return _rising_root(lambda x: _chi_square_cdf(x, df) - p, 0.0, 10 * df + 100)


def _chi_square_cdf(x: float, df: int) -> float:
    """The series of the lower incomplete gamma function; its terms are all positive."""
    total = term = 1 / math.gamma(df / 2 + 1)
    for i in range(1, 2000):
        term *= x / 2 / (df / 2 + i)
        total += term
        if term < 1e-16 * total:
            break
    return float(total * (x / 2) ** (df / 2) * math.exp(-x / 2))


def fewer_than_chance(some: int, of: int, others: int, of_others: int) -> float:
    """Fisher's exact test, one-sided: the probability of `some` or fewer among `of`, if these and the others are alike."""
    together = some + others
    ways = sum(math.comb(of, i) * math.comb(of_others, together - i) for i in range(max(0, together - of_others), some + 1))
    return ways / math.comb(of + of_others, together)


def sign_flip_p(values: Sequence[float], null: float = 0.0) -> float | None:
    """Exact one-sided p of the mean against `null`, on the side where the mean lies; None outside 6 to 30 values.

    Under the null every deviation is as likely with the other sign: p is the share of the 2^n sign patterns whose sum
    is at least as far out as the observed one.
    """
    if len(values) not in SIGN_FLIP_BLOCKS:
        return None
    deviations = [value - null for value in values]
    observed = abs(sum(deviations))
    slack = 1e-12 * sum(map(abs, deviations))  # sums that differ by rounding only are equal
    middle = len(deviations) // 2
    left, right = _signed_sums(deviations[:middle]), sorted(_signed_sums(deviations[middle:]))
    beyond = sum(len(right) - bisect_left(right, observed - slack - part) for part in left)
    return float(beyond / 2 ** len(deviations))


def _signed_sums(values: Sequence[float]) -> list[float]:
    sums = [0.0]
    for value in values:
        sums = [total + sign for total in sums for sign in (value, -value)]
    return sums


def decidable(sd: float, n: int, confidence: float, power: float = 0.8) -> float:
    """Smallest distance between truth and threshold that `n` blocks decide in the share `power` of runs.

    In the unit of `sd`, the spread of one block's value. For a ratio both are logs, and expm1 of the answer is the
    relative distance. One cell: a criterion over several cells needs more.
    """
    return sd / math.sqrt(n) * _noncentrality(n, confidence, power)


@cache
def _noncentrality(n: int, confidence: float, power: float) -> float:
    critical = t_quantile(0.5 + confidence / 2, n - 1)
    return _rising_root(lambda shift: _decided(shift, critical, n - 1) - power, 0.0, 4 * critical + 10)


def _decided(shift: float, critical: float, df: int, steps: int = 1000) -> float:
    """P(noncentral t > critical): the normal tail averaged over the estimated spread, a scaled chi, by midpoints."""
    width = (1 + 6 / math.sqrt(df)) / steps
    spreads = ((i + 0.5) * width for i in range(steps))
    return width * sum(_normal_cdf(shift - critical * s) * _scaled_chi_density(s, df) for s in spreads)


def _scaled_chi_density(s: float, df: int) -> float:
    """Density of sqrt(chi-square / df): the estimated spread over the true one."""
    log = math.log(2) + df / 2 * math.log(df / 2) - math.lgamma(df / 2) + (df - 1) * math.log(s) - df * s * s / 2
    return math.exp(log)


def _normal_cdf(z: float) -> float:
    return 0.5 * math.erfc(-z / math.sqrt(2))


def _rising_root(function: Callable[[float], float], low: float, high: float) -> float:
    """Where a rising function crosses zero between `low` and `high`, by bisection to the last bit that matters."""
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if function(middle) > 0 else (middle, high)
    return (low + high) / 2
