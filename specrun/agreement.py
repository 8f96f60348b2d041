"""Do two arms give the same greedy answers? By token ids, request by request."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from specrun.findings import Told
from specrun.intervals import fewer_than_chance

BEYOND_FLOOR = 0.025


@dataclass(frozen=True, slots=True)
class Agreement:
    """Of `compared` answers, `equal` agree in every token; the others differ first at these positions, counted from 1."""

    compared: int
    equal: int
    first_differences: tuple[int, ...]

    @property
    def share(self) -> float:
        """Equal answers over compared ones; 1 if there were none."""
        return self.equal / self.compared if self.compared else 1.0


@dataclass(frozen=True, slots=True)
class Answers:
    """Agreement in one workload: pair with target, and target with itself at another batch shape, which is the floor.

    `ties`: of scored answers that differ, how much likelier the target finds its own token at the first difference (nats).
    """

    workload: str
    pair: Agreement
    floor: Agreement | None = None
    ties: tuple[float, ...] = ()


def agreement(left: Iterable[Mapping[str, Any]], right: Iterable[Mapping[str, Any]]) -> Agreement:
    """Compare the records of two windows that sent the same prompts; answers without ids are left out."""
    ids = {record["index"]: record["ids"] for record in left if record["ids"]}
    both = [(ids[record["index"]], record["ids"]) for record in right if record["ids"] and record["index"] in ids]
    differing = [first_difference(a, b) for a, b in both if a != b]
    return Agreement(len(both), len(both) - len(differing), tuple(sorted(differing)))


def first_difference(left: list[int], right: list[int]) -> int:
    """Position, from 1, of the first token that differs; one past the shorter list if that is where it ends."""
    same = zip(left, right, strict=False)
    return next((i for i, (a, b) in enumerate(same, 1) if a != b), min(len(left), len(right)) + 1)


def differing(answers: Sequence[Answers]) -> Told:
    """Greedy answers of pair and target that differ, beside the floor."""
    for one in answers:
        pair = one.pair
        if pair.equal < pair.compared:
            text = (
                f"{one.workload}: {pair.equal} of {pair.compared} greedy answers are equal token by token, the others "
                f"differ first at token {median(pair.first_differences):g} (median){_near(one.ties)}{_beside_floor(one)}"
            )
            yield "DX14", text


def _near(ties: Sequence[float]) -> str:
    if not ties:
        return ""
    scored = f"median of {len(ties)} scored answers, at most {max(ties):.2g}"
    return f", where the target prefers its own token by {median(ties):.2g} nats ({scored})"


def _beside_floor(one: Answers) -> str:
    """Equal by batch shape alone as often, or not: near ties fall either way, so the floor is itself a sample."""
    pair, floor = one.pair, one.floor
    if floor is None or not floor.compared:
        return ""
    by_chance = fewer_than_chance(pair.equal, pair.compared, floor.equal, floor.compared)
    if by_chance <= BEYOND_FLOOR:
        judged = f"so that does not explain it (p {by_chance:.2g}); compare the answers before any figure of speed"
    else:
        judged = "so batch shape alone does as much" if pair.share >= floor.share else f"which may be chance (p {by_chance:.2g})"
    return f"; the target against itself at another batch shape: {floor.equal} of {floor.compared}, {judged}"
