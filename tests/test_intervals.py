from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from specrun.intervals import decidable, fewer_than_chance, sd_interval, sign_flip_p, t_interval, t_quantile


@pytest.mark.parametrize("df", [1, 2, 3, 4, 5, 6, 11, 30, 63])
@pytest.mark.parametrize("p", [0.6, 0.9, 0.975, 0.9981, 0.99995, 0.025])
def test_t_quantile_against_scipy(df: int, p: float) -> None:
    assert t_quantile(p, df) == pytest.approx(stats.t.ppf(p, df), rel=1e-9)


def test_t_quantile_refuses_what_is_no_probability() -> None:
    for p, df in ((0.0, 3), (1.0, 3), (0.5, 0)):
        with pytest.raises(ValueError):
            t_quantile(p, df)


def test_interval_by_hand() -> None:
    # mean 2, sd 1, n 3: half width t(0.975, 2) / sqrt(3) = 4.302653 / 1.732051
    mean, low, high = t_interval([1.0, 2.0, 3.0], 0.95)
    assert (mean, low, high) == pytest.approx((2.0, 2 - 2.484138, 2 + 2.484138), rel=1e-6)
    with pytest.raises(ValueError):
        t_interval([1.0], 0.95)


@pytest.mark.parametrize(
    ("cv", "by_blocks"),
    [
        (0.02, {2: 39, 3: 9.7, 4: 6.2, 6: 4.1, 8: 3.3, 12: 2.5}),
        (0.05, {2: 126, 3: 26, 4: 16, 6: 10.7, 8: 8.5, 12: 6.5}),
        (0.10, {2: 412, 3: 59, 4: 35, 6: 22, 8: 18, 12: 13}),
    ],
)
def test_decidable_distance_as_simulated(cv: float, by_blocks: dict[int, float]) -> None:
    """Independent simulations of two arms with this run-to-run spread gave these distances, in percent."""
    for blocks, percent in by_blocks.items():
        distance = 100 * math.expm1(decidable(cv * math.sqrt(2), blocks, 0.95))
        assert distance == pytest.approx(percent, abs=0.5 if isinstance(percent, int) else 0.06), blocks


@pytest.mark.parametrize("n", [2, 4, 6, 12, 64])
def test_interval_of_a_spread_against_scipy(n: int) -> None:
    low, high = sd_interval(2.0, n, 0.95)
    bounds = [2.0 * math.sqrt((n - 1) / stats.chi2.ppf(p, n - 1)) for p in (0.975, 0.025)]
    assert (low, high) == pytest.approx(bounds, rel=1e-9)


@pytest.mark.parametrize("counts", [(13, 16, 16, 16), (0, 4, 3, 4), (16, 16, 13, 16), (92, 100, 93, 100)])
def test_fisher_against_scipy(counts: tuple[int, int, int, int]) -> None:
    some, of, others, of_others = counts
    table = [[some, of - some], [others, of_others - others]]
    expected = stats.fisher_exact(table, alternative="less").pvalue
    assert fewer_than_chance(some, of, others, of_others) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("n", [4, 6, 12])
def test_decidable_has_the_stated_power(n: int) -> None:
    shift = decidable(1.0, n, 0.95) * math.sqrt(n)
    assert stats.nct.sf(stats.t.ppf(0.975, n - 1), n - 1, shift) == pytest.approx(0.8, abs=1e-5)


@settings(deadline=None)
@given(st.lists(st.floats(-3, 3), min_size=6, max_size=9), st.floats(-1, 1))
def test_sign_flip_p_is_the_share_of_all_sign_patterns(values: list[float], null: float) -> None:
    deviations = [value - null for value in values]
    slack = 1e-12 * sum(map(abs, deviations))
    sums = [
        sum(s * d for s, d in zip(signs, deviations, strict=True)) for signs in itertools.product((1, -1), repeat=len(values))
    ]
    expected = sum(total >= abs(sum(deviations)) - slack for total in sums) / len(sums)
    assert sign_flip_p(values, null) == pytest.approx(expected, abs=2 / len(sums))


def test_sign_flip_p_at_its_smallest_and_where_it_is_not_printed() -> None:
    assert sign_flip_p([0.1, 0.2, 0.3, 0.1, 0.2, 0.1]) == 1 / 64
    assert sign_flip_p([-0.1, -0.2, -0.3, -0.1, -0.2, -0.1]) == 1 / 64
    assert sign_flip_p([0.1] * 5) is None
    assert sign_flip_p([0.1] * 31) is None
