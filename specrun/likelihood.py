"""Are the pair's answers ones that the target would give? By their log-probability under the target alone.

A lossless pair answers from the target's own distribution, so of two answers to one request either could be the pair's: which
of them is likelier, and which lies further from the middle of all, are coin flips. Sums of such signed differences, divided
by the root of the sum of their squares, have tails no heavier than 3.18 times the normal one, whatever the differences look
like (Bentkus and Dzindzalieta, 2015). No shape of distribution, spread or equality of prompts is assumed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median, pstdev, stdev
from typing import NamedTuple

FALSE_ALARM = 1e-5  # of each sum
TAIL = 3.18  # how much heavier than normal the tail of such a sum may be
SMALLEST = 0.05  # nats per token; a smaller gap is rounding, not another distribution
COARSE = 1.0  # nats per token; answers that would not show such a gap do not speak for the pair
FLOOR = -20.0  # a token less likely than this counts as this: one freak must not hide behind its own square


class Pair(NamedTuple):
    """One request's two answers: mean log-probability per token under the target (nats), and whether their ids are equal."""

    target: float
    pair: float
    same: bool = False


@dataclass(frozen=True, slots=True)
class Gap:
    """The answers of one workload, or of all: means and standard deviations over answers, and why they differ, if they do.

    `shows`: the mean gap that would have shown among so many answers that differ so much, in nats; None if no gap could.
    """

    answers: int
    differing: int
    target: float
    pair: float
    target_spread: float
    pair_spread: float
    shows: float | None
    why: str | None


def per_token(logprobs: Sequence[float]) -> float:
    """Mean log-probability of an answer's tokens."""
    return fmean(max(FLOOR, one) for one in logprobs)


def enough() -> int:
    """Requests that a gap needs to show: with fewer, not even differences that all point one way would."""
    return math.ceil(threshold() ** 2)


def threshold() -> float:
    """The self-normalised sum that chance reaches less often than FALSE_ALARM, on either side."""
    low, high = 0.0, 40.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if TAIL * math.erfc(middle / math.sqrt(2)) > FALSE_ALARM else (low, middle)
    return high


def gaps(workloads: Mapping[str, Sequence[Pair]]) -> dict[str, Gap]:
    """Each workload's gap, and under the empty name that of all together, if there are several."""
    found = {name: _gap(pairs, _likelier(pairs), _further(pairs)) for name, pairs in workloads.items() if pairs}
    if len(found) > 1:
        several = [pairs for pairs in workloads.values() if pairs]
        together = [pair for pairs in several for pair in pairs]
        likelier = [one for pairs in several for one in _likelier(pairs)]
        found[""] = _gap(together, likelier, [one for pairs in several for one in _further(pairs)])
    return found


def _gap(pairs: Sequence[Pair], likelier: Sequence[float], further: Sequence[float]) -> Gap:
    target, pair = [one.target for one in pairs], [one.pair for one in pairs]
    return Gap(
        answers=len(pairs),
        differing=sum(not one.same for one in pairs),
        target=fmean(target),
        pair=fmean(pair),
        target_spread=_spread(target),
        pair_spread=_spread(pair),
        shows=_shows(likelier),
        why="in the mean" if _systematic(likelier) else "in their spread" if _systematic(further) else None,
    )


def _likelier(pairs: Sequence[Pair]) -> list[float]:
    return [one.pair - one.target for one in pairs]


def _further(pairs: Sequence[Pair]) -> list[float]:
    """How much further the pair's answer lies from the middle of all answers, of both arms."""
    middle = median(value for one in pairs for value in (one.target, one.pair))
    return [abs(one.pair - middle) - abs(one.target - middle) for one in pairs]


def _systematic(differences: Sequence[float]) -> bool:
    large = abs(fmean(differences)) >= SMALLEST
    return large and abs(sum(differences)) > threshold() * math.hypot(*differences)


def _shows(differences: Sequence[float]) -> float | None:
    """The gap g that takes n differences of standard deviation s over the threshold t: √n g / √(g² + s²) = t."""
    beyond = len(differences) - threshold() ** 2
    return max(SMALLEST, threshold() * pstdev(differences) / math.sqrt(beyond)) if beyond > 0 else None


def _spread(values: Iterable[float]) -> float:
    several = list(values)
    return stdev(several) if len(several) > 1 else 0.0
