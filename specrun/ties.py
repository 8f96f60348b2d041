"""Near ties: how much likelier the target finds its own token than the pair's, where two greedy answers first differ."""

from __future__ import annotations

from collections import defaultdict

from specrun.agreement import first_difference
from specrun.proofs import Records
from specrun.scores import Kept, Key


def ties(scores: Kept, found: Records) -> dict[str, tuple[float, ...]]:
    """By workload, one number per scored request whose answers differ, in nats; up to there both have the same context.

    An answer that only ends earlier has no token to compare.
    """
    out: dict[str, list[float]] = defaultdict(list)
    for arm, key in sorted(scores.rows):
        both = [_scored(scores, found, one, key) for one in ("target", "pair")] if arm == "target" else []
        match [answer for answer in both if answer]:
            case [(own, own_scores), (other, other_scores)] if own != other:
                place = first_difference(own, other) - 1
                if place < min(len(own), len(other)):
                    out[key.workload].append(own_scores[place] - other_scores[place])
    return {workload: tuple(several) for workload, several in out.items()}


def _scored(scores: Kept, found: Records, arm: str, key: Key) -> tuple[list[int], list[float]] | None:
    """Token ids and log-probabilities of one answer, if it is the one that was scored."""
    row, own = scores.rows.get((arm, key)), found.get((arm, key))
    return (own["ids"], row["logprobs"]) if row and own and row["digest"] == own["digest"] else None
