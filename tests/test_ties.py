from __future__ import annotations

from typing import Any

from specrun.agreement import Agreement, Answers, differing
from specrun.scores import Kept, Key
from specrun.ties import ties

FIRST, SECOND = Key(1, "a", 1, 0), Key(1, "a", 1, 1)


def scored(key: Key, **arms: tuple[list[int], list[float]]) -> tuple[dict[Any, Any], dict[Any, Any]]:
    """Scores and records of one request's answers: token ids and their log-probabilities by arm."""
    rows = {(arm, key): {"digest": str(ids), "logprobs": logprobs} for arm, (ids, logprobs) in arms.items()}
    records = {(arm, key): {"digest": str(ids), "ids": ids} for arm, (ids, _) in arms.items()}
    return rows, records


def test_difference_at_the_first_token_that_differs() -> None:
    one = scored(FIRST, target=([5, 6, 7], [-1.0, -0.7, -9.0]), pair=([5, 8, 7], [-1.0, -0.75, -2.0]))
    other = scored(SECOND, target=([1, 2], [-0.1, -0.2]), pair=([9, 2], [-3.1, -0.2]))
    found = ties(Kept({}, one[0] | other[0]), one[1] | other[1])
    assert {name: [round(x, 9) for x in several] for name, several in found.items()} == {"a": [0.05, 3.0]}


def test_equal_shorter_and_unscored_answers_have_none() -> None:
    equal = scored(FIRST, target=([5, 6], [-1.0, -0.7]), pair=([5, 6], [-1.0, -0.7]))
    assert ties(Kept({}, equal[0]), equal[1]) == {}
    shorter = scored(FIRST, target=([5, 6], [-1.0, -0.7]), pair=([5], [-1.0]))
    assert ties(Kept({}, shorter[0]), shorter[1]) == {}
    rows, records = scored(FIRST, target=([5, 6], [-1.0, -0.7]), pair=([5, 7], [-1.0, -0.8]))
    records["pair", FIRST]["digest"] = "another answer"
    assert ties(Kept({}, rows), records) == {}
    assert ties(Kept({}, {("target", FIRST): rows["target", FIRST]}), records) == {}


def test_told_beside_the_answers_that_differ() -> None:
    ((code, text),) = differing([Answers("a", Agreement(16, 13, (38, 43, 45)), ties=(0.05, 3.0, 0.1))])
    assert code == "DX14"
    assert text.endswith(
        "at token 43 (median), where the target prefers its own token by 0.1 nats (median of 3 scored answers, at most 3)"
    )
