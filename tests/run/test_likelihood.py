"""The likelihood check: no alarm where both arms answer alike, whatever answers look like, and one where they do not."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import pytest

from specrun.likelihood import FALSE_ALARM, SMALLEST, Pair, enough, gaps, per_token, threshold
from specrun.proofs import likely
from specrun.scores import Kept

Answer = Callable[[random.Random, float], float]

SHAPES: dict[str, Answer] = {
    "normal": lambda chance, middle: chance.gauss(middle, 0.6),
    "heavy-tailed": lambda chance, middle: middle - 0.3 / max(1e-3, chance.random()),
    "now and then garbage": lambda chance, middle: chance.gauss(middle if chance.random() > 0.05 else middle - 8, 0.4),
}
# Mean and spread over answers, target then pair, as measured on a release whose sampling is broken above temperature 0.
BROKEN = {0.01: (-2.053, 0.4, -4.270, 2.27), 0.3: (-2.208, 0.4, -4.269, 2.3), 0.8: (-3.954, 0.5, -6.251, 2.4)}
BROKEN |= {1.0: (-4.859, 0.57, -5.067, 2.65)}


def workloads(seed: int, requests: int, target: Answer, pair: Answer, names: str = "ab") -> dict[str, list[Pair]]:
    """Answers to prompts that differ in how likely any answer is."""
    chance, out = random.Random(seed), dict[str, list[Pair]]()
    for name in names:
        middles = [chance.gauss(0, 0.5) for _ in range(requests)]
        out[name] = [Pair(target(chance, middle), pair(chance, middle)) for middle in middles]
    return out


@pytest.mark.parametrize("shape", SHAPES)
def test_no_false_alarm_in_a_thousand_runs_of_an_arm_against_itself(shape: str) -> None:
    draw = SHAPES[shape]
    alarms = [any(gap.why for gap in gaps(workloads(seed, 32, draw, draw)).values()) for seed in range(1000)]
    assert sum(alarms) == 0


def normal(mean: float, spread: float) -> Answer:
    return lambda chance, _: min(-0.01, chance.gauss(mean, spread))


@pytest.mark.parametrize("temperature", BROKEN)
def test_broken_sampling_is_always_seen(temperature: float) -> None:
    mean, spread, other_mean, other_spread = BROKEN[temperature]
    arms = normal(mean, spread), normal(other_mean, other_spread)
    for seed in range(50):
        assert gaps(workloads(seed, 32, *arms))[""].why, seed  # two workloads of 32 requests
        assert gaps(workloads(seed, 64, *arms, names="a"))["a"].why, seed  # one workload of 64


def test_where_they_differ_is_said() -> None:
    colder = gaps(workloads(1, 64, normal(-2, 0.3), normal(-4, 0.3), names="a"))["a"]
    wilder = gaps(workloads(1, 64, normal(-5, 0.3), normal(-5, 2.5), names="a"))["a"]
    assert (colder.why, wilder.why) == ("in the mean", "in their spread")
    assert colder.target == pytest.approx(-2, abs=0.15) and colder.pair == pytest.approx(-4, abs=0.15)
    assert wilder.pair_spread > 5 * wilder.target_spread


def test_one_workload_out_of_two_is_enough() -> None:
    alike, broken = workloads(3, 64, SHAPES["normal"], SHAPES["normal"]), normal(-6.2, 2.4)
    mixed = alike | {"b": workloads(4, 64, SHAPES["normal"], broken, names="b")["b"]}
    found = gaps(mixed)
    assert found["a"].why is None and found["b"].why == "in the mean"


def test_equal_answers_and_tiny_gaps_are_no_finding() -> None:
    same = [Pair(-2.0, -2.0, True)] * 64
    assert gaps({"a": same})["a"].why is None and gaps({"a": same})["a"].differing == 0
    rounding = [Pair(-2.0, -2.0 - 0.01)] * 64  # all one way, and too small to be another distribution
    assert gaps({"a": rounding})["a"].why is None
    assert gaps({"a": [Pair(-2.0, -2.1)] * 64})["a"].why == "in the mean"


def test_fewer_requests_than_enough_can_never_fail() -> None:
    apart = Pair(-2.0, -9.0)
    assert enough() == 22
    assert gaps({"a": [apart] * (enough() - 1)})["a"].why is None
    assert gaps({"a": [apart] * enough()})["a"].why == "in the mean"


def test_the_threshold_is_that_of_the_bound() -> None:
    assert 3.18 * math.erfc(threshold() / math.sqrt(2)) == pytest.approx(FALSE_ALARM)


def test_a_freak_token_counts_as_very_unlikely_and_no_more() -> None:
    assert per_token([-1.0, -9999.0, -3.0]) == pytest.approx(-8.0)
    assert per_token([-0.5]) == -0.5


def test_no_answers_no_gap() -> None:
    assert gaps({"a": []}) == {}
    assert set(gaps({"a": [Pair(-1.0, -1.0)], "b": []})) == {"a"}


def test_the_gap_that_would_show_does_and_a_smaller_one_does_not() -> None:
    # 64 differences of standard deviation 1 about their mean: 4.661 x 1 / sqrt(64 - 21.73) = 0.7169
    noise = [(-1.0) ** i for i in range(64)]
    own = gaps({"a": [Pair(-5.0 - one / 2, -5.0 + one / 2) for one in noise]})["a"]
    assert own.shows == pytest.approx(0.7169, abs=1e-4) and own.why is None
    for factor, why in ((1.01, "in the mean"), (0.99, None)):
        shifted = [Pair(-5.0 - one / 2, -5.0 + one / 2 - factor * own.shows) for one in noise]
        found = gaps({"a": shifted})["a"]
        assert (found.why, found.shows) == (why, pytest.approx(own.shows))
    assert gaps({"a": [Pair(-2.0, -2.0, True)] * 30})["a"].shows == SMALLEST
    assert gaps({"a": [Pair(-2.0, -3.0)] * (enough() - 1)})["a"].shows is None


def test_answers_too_varied_to_show_a_gap_do_not_speak_for_the_pair() -> None:
    kept = Kept({"max_model_len": 64}, {})
    for spread, outcome in ((1.0, "ok"), (1.5, "skipped")):
        pairs = [Pair(-5.0 - spread * (-1.0) ** i / 2, -5.0 + spread * (-1.0) ** i / 2) for i in range(64)]
        check = likely({"protocol": {}}, kept, gaps({"a": pairs}))
        assert check.outcome == outcome and "nats would show" in check.detail
    few = [Pair(-5.0, -5.0 + (-1.0) ** i) for i in range(enough() - 1)]
    assert likely({"protocol": {}}, kept, gaps({"a": few})).detail.startswith("21 requests are too few to tell, 22 are needed")
    same = [Pair(-5.0, -5.0, True)] * 4
    assert likely({"protocol": {}}, kept, gaps({"a": same})).outcome == "ok"
