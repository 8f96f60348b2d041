from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from speclint.data import spec_schema
from specrun.compare import Verdict, interval_of, judge, status
from specrun.evidence import Cell, Evidence, series
from specrun.report.tables import asks
from specrun.rows import figure_rows, ratios

CELL: Cell = ("varied", 4)
FASTER = {"id": "faster", "metric": "request_duration_mean", "compare": "ratio", "at_most": 0.9}


def evidence(
    pair: Sequence[float | None],
    target: Sequence[float | None] | None = None,
    metric: str = "request_duration_mean",
    **other: Any,
) -> Evidence:
    """One cell whose target, unless given, has the value 1 in every block: the pair's values are the ratios."""
    return several({CELL: pair}, {CELL: target or [1.0] * len(pair)}, metric, **other)


def several(
    pairs: dict[Cell, Sequence[float | None]],
    targets: dict[Cell, Sequence[float | None]] | None = None,
    metric: str = "request_duration_mean",
    **other: Any,
) -> Evidence:
    def blocks(values: Sequence[float | None]) -> dict[int, dict[str, Any]]:
        return {b: {metric: value, "requests": 50, "ttft_requests": 46} for b, value in enumerate(values, 1)}

    flat = targets or {cell: [1.0] * len(values) for cell, values in pairs.items()}
    table = {cell: {"target": blocks(flat[cell]), "pair": blocks(values)} for cell, values in pairs.items()}
    return Evidence(table, other.pop("starts", {}), list(pairs), other.pop("confidence", 0.95), **other)


def one(criterion: dict[str, Any], seen: Evidence) -> Verdict:
    (verdict,) = judge([criterion], seen)
    validator = jsonschema.Draft202012Validator({"$ref": "#/$defs/verdict", "$defs": spec_schema()["$defs"]})
    validator.validate(verdict)
    return verdict


RATIOS = [0.80, 0.84, 0.82, 0.86]


def test_interval_is_students_on_logs() -> None:
    cell = one(FASTER, evidence(RATIOS))["cells"][0]
    logs = [math.log(ratio) for ratio in RATIOS]
    low, high = stats.t.interval(0.95, 3, sum(logs) / 4, stats.sem(logs))
    assert cell["low"] == pytest.approx(math.exp(low), rel=1e-5)
    assert cell["high"] == pytest.approx(math.exp(high), rel=1e-5)
    assert cell["value"] == pytest.approx(math.prod(RATIOS) ** 0.25, rel=1e-5)
    assert cell["blocks"] == RATIOS


@pytest.mark.parametrize(
    ("bound", "verdict"),
    [
        ({"at_most": 0.9}, "met"),
        ({"at_most": 0.83}, "undecided"),
        ({"at_most": 0.78}, "not_met"),
        ({"at_least": 0.78}, "met"),
        ({"at_least": 0.83}, "undecided"),
        ({"at_least": 0.9}, "not_met"),
    ],
)
def test_verdict_by_where_the_interval_lies(bound: dict[str, float], verdict: str) -> None:
    criterion = {"id": "x", "metric": "request_duration_mean", "compare": "ratio", **bound}
    assert one(criterion, evidence(RATIOS))["verdict"] == verdict


def test_thresholds_are_inclusive_and_met_by_the_rounded_interval() -> None:
    low, high = interval_of(RATIOS, True, 0.95)[1:]
    exact = interval_of([ratio * (1 + 1e-9) for ratio in RATIOS], True, 0.95)
    assert exact[2] == high  # the same six digits
    assert one(FASTER | {"at_most": high}, evidence(RATIOS))["verdict"] == "met"
    assert one(FASTER | {"at_most": high - 1e-6}, evidence(RATIOS))["verdict"] == "undecided"
    assert one(FASTER | {"at_most": low}, evidence(RATIOS))["verdict"] == "undecided"
    assert one(FASTER | {"at_most": low - 1e-6}, evidence(RATIOS))["verdict"] == "not_met"


def test_level_is_judged_on_the_values_of_the_pair() -> None:
    values = [0.40, 0.44, 0.42, 0.46]
    criterion = {"id": "accepted", "metric": "acceptance_rate", "at_least": 0.35}
    verdict = one(criterion, evidence(values, [None] * 4, "acceptance_rate"))
    low, high = stats.t.interval(0.95, 3, 0.43, stats.sem(values))
    assert (verdict["verdict"], verdict["cells"][0]["value"]) == ("met", 0.43)
    assert (verdict["cells"][0]["low"], verdict["cells"][0]["high"]) == pytest.approx((low, high), rel=1e-5)


def test_level_takes_a_zero_as_a_value() -> None:
    criterion = {"id": "accepted", "metric": "acceptance_rate", "at_least": 0.4}
    assert one(criterion, evidence([0.0, 0.01, 0.0, 0.02], metric="acceptance_rate"))["verdict"] == "not_met"


@pytest.mark.parametrize(
    ("pair", "target", "reason"),
    [
        ([0.8, 0.8, None, 0.8], None, "block 3 has no value (pair)"),
        ([0.8, 0.8, 0.8, 0.8], [1, 1, 1, None], "block 4 has no value (target)"),
        ([0.8, 0, 0.8, 0.8], None, "block 2 is zero (pair)"),
        ([0.8, 0.8, 0.8, 0.8], [0, 1, 1, 1], "block 1 is zero (target)"),
    ],
)
def test_missing_and_zero_are_undecided_and_named(pair: list[Any], target: list[Any] | None, reason: str) -> None:
    cell = one(FASTER, evidence(pair, target))["cells"][0]
    assert (cell["verdict"], cell["reason"], cell["value"]) == ("undecided", reason, None)


def test_block_without_a_window_is_missing() -> None:
    seen = several({CELL: RATIOS, ("varied", 1): RATIOS[:3]})
    cells = one(FASTER, seen)["cells"]
    assert [cell["verdict"] for cell in cells] == ["met", "undecided"]
    assert cells[1]["reason"] == "block 4 has no value (pair); block 4 has no value (target)"


def test_no_spread_is_judged_as_exact_and_marked() -> None:
    cell = one(FASTER, evidence([0.9] * 4))["cells"][0]
    assert (cell["verdict"], cell["low"], cell["high"]) == ("met", 0.9, 0.9)
    assert cell["reason"] == "no spread between blocks: judged as exact"
    assert one(FASTER, evidence([0.900001] * 4))["verdict"] == "not_met"


def test_fewer_than_four_blocks_decide_nothing() -> None:
    cell = one(FASTER, evidence([0.5, 0.5, 0.5]))["cells"][0]
    assert (cell["verdict"], cell["reason"]) == ("undecided", "3 valid blocks, 4 are needed")


@pytest.mark.parametrize(("void", "verdict"), [((), "not_met"), ((2, 5), "met"), ((2, 5, 6), "undecided")])
def test_void_blocks_do_not_count(void: tuple[int, ...], verdict: str) -> None:
    seen = evidence([0.80, 5.0, 0.82, 0.81, 5.0, 0.80], voids={(*CELL, block): "compiled twice" for block in void})
    found = one(FASTER | {"at_most": 0.95 if void else 0.1}, seen)
    assert found["verdict"] == verdict
    assert found["cells"][0]["blocks"][1] == (None if void else 5.0)
    assert ("block 2 void: compiled twice" in found["cells"][0].get("reason", "")) == bool(void)


def test_void_cell_makes_the_criterion_undecided_whatever_the_others_say() -> None:
    seen = several({("a", 1): [2.0, 2.1, 2.0, 2.1], ("b", 1): RATIOS}, voids={("b", 1, 1): "2 requests failed"})
    found = one(FASTER, seen)
    assert (found["verdict"], found["reason"]) == ("undecided", "void: b at 1")
    assert [cell["verdict"] for cell in found["cells"]] == ["not_met", "undecided"]


def test_all_cells_must_be_met() -> None:
    wide = [0.7, 1.1, 0.8, 0.9]
    assert one(FASTER, several({("a", 1): RATIOS, ("b", 1): RATIOS}))["verdict"] == "met"
    assert one(FASTER, several({("a", 1): RATIOS, ("b", 1): wide}))["verdict"] == "undecided"


def test_not_met_over_cells_needs_the_stricter_level() -> None:
    """Low end above 0.9 at 95 %, below it at 1 - 0.05 / 6."""
    slow = [0.97, 0.94, 0.98, 0.93]
    assert interval_of(slow, True, 0.95)[1] > 0.9 > interval_of(slow, True, 1 - 0.05 / 6)[1]
    assert one(FASTER, evidence(slow))["verdict"] == "not_met"
    many = several({("a", 1): slow} | {(name, 1): RATIOS for name in "bcdef"})
    found = one(FASTER, many)
    assert (found["verdict"], found["reason"]) == ("undecided", "5 of 6 cells met")
    assert found["cells"][0]["reason"] == "beyond the threshold at 0.95, not at the level for 6 cells"
    assert one(FASTER | {"workload": "a"}, many)["verdict"] == "not_met"


def test_criterion_chooses_its_cells() -> None:
    seen = several({("a", 1): RATIOS, ("a", 4): RATIOS, ("b", 1): RATIOS, ("b", 4): RATIOS})

    def cells(**which: Any) -> list[Cell]:
        return [(cell["workload"], cell["concurrency"]) for cell in one(FASTER | which, seen)["cells"]]

    assert cells(workload="a") == [("a", 1), ("a", 4)]
    assert cells(concurrency=4) == [("a", 4), ("b", 4)]
    assert cells(workload="all", concurrency="all") == list(seen.cells)
    assert one(FASTER | {"workload": "gone"}, seen)["verdict"] == "undecided"


WEIGHTED = FASTER | {"weights": {"a": 1, "b": 3}}


def test_weighted_mean_by_hand() -> None:
    seen = several({("a", 1): RATIOS, ("b", 1): [0.5, 0.52, 0.5, 0.51], ("c", 1): [9.0] * 4})
    (cell,) = one(WEIGHTED, seen)["cells"]
    blocks = [a**0.25 * b**0.75 for a, b in zip(RATIOS, [0.5, 0.52, 0.5, 0.51], strict=True)]
    assert (cell["workload"], cell["concurrency"]) == ("weighted", 1)
    assert cell["blocks"] == pytest.approx(blocks, rel=1e-5)
    assert cell["value"] == pytest.approx(math.prod(blocks) ** 0.25, rel=1e-5)
    assert asks(WEIGHTED) == "request_duration_mean pair/target ≤ 0.9 (weights: a 1, b 3)"
    assert one(WEIGHTED, seen)["verdict"] == "met" and one(FASTER, seen)["verdict"] == "not_met"


def test_weighted_mean_at_every_level_that_is_asked_for() -> None:
    cells = {(name, level): RATIOS for level in (1, 4) for name in ("a", "b")}
    assert [cell["concurrency"] for cell in one(WEIGHTED, several(cells))["cells"]] == [1, 4]
    assert [cell["concurrency"] for cell in one(WEIGHTED | {"concurrency": 4}, several(cells))["cells"]] == [4]


@pytest.mark.parametrize(
    ("a", "voids", "reason"),
    [
        ([0.8, None, 0.8, 0.8], {}, "a: block 2 has no value (pair)"),
        (RATIOS, {("b", 1, 3): "1 failed request"}, "3 valid blocks, 4 are needed; block 3 void: b: 1 failed request"),
    ],
)
def test_weighted_mean_of_what_is_missing_or_void_is_undecided(a: list[Any], voids: dict[Any, str], reason: str) -> None:
    (cell,) = one(WEIGHTED, several({("a", 1): a, ("b", 1): RATIOS}, voids=voids))["cells"]
    assert (cell["verdict"], cell["reason"]) == ("undecided", reason)
    assert cell["blocks"][2 if voids else 1] is None


def starts(pair: list[float | None], target: float = 1000.0) -> dict[str, Any]:
    return {
        "target": {b: {"kv_capacity_tokens": target} for b in range(1, len(pair) + 1)},
        "pair": {b: {"kv_capacity_tokens": value} for b, value in enumerate(pair, 1)},
    }


@pytest.mark.parametrize(
    ("pair", "verdict", "value"),
    [([900, 850, 860, 855], "met", 0.85), ([900, 849, 860, 855], "not_met", 0.849), ([900, None], "undecided", None)],
)
def test_exact_metrics_are_judged_by_their_worst_block(pair: list[Any], verdict: str, value: float | None) -> None:
    criterion = {"id": "capacity", "metric": "kv_capacity_tokens", "compare": "ratio", "at_least": 0.85}
    found = one(criterion, evidence(RATIOS, starts=starts(pair)))
    (cell,) = found["cells"]
    assert (found["verdict"], cell["value"], cell["low"], found["decidable"]) == (verdict, value, value, None)
    assert (cell["workload"], cell["concurrency"]) == ("-", None)


def test_failures_are_judged_although_they_void_the_cell() -> None:
    criterion = {"id": "whole", "metric": "failed_requests", "at_most": 1}
    voids = {(*CELL, 2): "failed requests"}
    assert one(criterion, evidence([0, 1, 0, 0], metric="failed_requests", voids=voids))["verdict"] == "met"
    assert one(criterion, evidence([0, 2, 0, 0], metric="failed_requests", voids=voids))["verdict"] == "not_met"


@pytest.mark.parametrize(("metric", "verdict"), [("ttft_p50", "met"), ("ttft_p90", "undecided")])
def test_percentiles_without_enough_requests_are_not_judged(metric: str, verdict: str) -> None:
    cell = one(FASTER | {"metric": metric}, evidence(RATIOS, metric=metric))["cells"][0]
    assert cell["verdict"] == verdict
    assert cell.get("reason") == (None if verdict == "met" else "ttft_p90 needs 100 requests in a window, there are 46")


def with_figures(seen: Evidence, **by_arm: Sequence[float]) -> Evidence:
    """Adds figures named `<figure>__<arm>`, one value per block, to the one cell."""
    for key, values in by_arm.items():
        name, arm = key.split("__")
        for block, value in enumerate(values, 1):
            seen.table[CELL][arm][block][name] = value  # type: ignore[index]
    return seen


@pytest.mark.parametrize(
    ("metric", "longest", "verdict"),
    [
        ("decode_time_per_token", 31.0, "met"),
        ("decode_time_per_token", 32.0, "undecided"),
        ("request_duration_mean", 30.0, "undecided"),
        ("output_throughput", 31.0, "met"),
        ("ttft_mean", 28.6, "met"),
        ("ttft_mean", 28.4, "undecided"),
    ],
)
def test_answers_that_end_by_themselves(metric: str, longest: float, verdict: str) -> None:
    seen = evidence(RATIOS, metric=metric, natural={"varied": 0.05})
    lengths = {"output_tokens_mean__target": [30.0] * 4, "output_tokens_mean__pair": [30.0, 30.0, longest, 30.0]}
    assert one(FASTER | {"metric": metric}, with_figures(seen, **lengths))["verdict"] == verdict


def test_ttft_is_undecided_when_one_arm_is_in_lock_step() -> None:
    seen = evidence(RATIOS, metric="ttft_mean")
    with_figures(seen, arrival_bunching__target=[1.0] * 4, arrival_bunching__pair=[0.5] * 4)
    with_figures(seen, arrival_bunching_by_chance__target=[0.4] * 4, arrival_bunching_by_chance__pair=[0.45] * 4)
    found = one(FASTER | {"metric": "ttft_mean"}, seen)
    assert (found["verdict"], found["cells"][0]["reason"]) == (
        "undecided",
        "sends of the target come in lock-step: TTFT does not compare",
    )
    with_figures(seen, arrival_bunching_by_chance__target=[0.9] * 4)
    assert one(FASTER | {"metric": "ttft_mean"}, seen)["verdict"] == "met"


def test_one_start_is_never_plainly_met() -> None:
    assert one(FASTER, evidence(RATIOS, one_start=True))["verdict"] == "met_one_start"
    assert one(FASTER | {"at_most": 0.5}, evidence(RATIOS, one_start=True))["verdict"] == "not_met"


@pytest.mark.parametrize(
    ("verdicts", "established", "code"),
    [
        (["met", "met"], True, 0),
        (["met", "undecided"], True, 11),
        (["met_one_start", "met"], True, 11),
        (["undecided", "not_met"], True, 10),
        (["met_one_start", "not_met"], True, 10),
        (["met"], False, 20),
        (["not_met"], False, 20),
        ([], True, 11),
    ],
)
def test_exit_status(verdicts: list[Any], established: bool, code: int) -> None:
    rows: list[Verdict] = [{"id": "x", "verdict": verdict, "decidable": None, "cells": []} for verdict in verdicts]
    assert status(rows, established) == code


def test_aa_control_marks_but_changes_nothing() -> None:
    seen = evidence(RATIOS)
    seen.table[CELL]["aa"] = {b: {"request_duration_mean": 1.2 + b / 100} for b in range(1, 5)}  # type: ignore[index]
    found = one(FASTER, seen)
    assert found["verdict"] == "met"
    assert found["reason"] == "suspect: the target differs from its own second start (varied at 4)"
    seen.table[CELL]["aa"] = {b: {"request_duration_mean": 0.97 + b / 50} for b in range(1, 5)}  # type: ignore[index]
    assert "reason" not in one(FASTER, seen)


def test_sign_flip_is_a_remark() -> None:
    cell = one(FASTER, evidence([0.7, 0.71, 0.7, 0.72, 0.71, 0.901]))["cells"][0]
    assert (cell["verdict"], cell["reason"]) == ("met", "rests on the normal assumption: sign-flip p 0.031")


def test_decidable_distance_comes_from_the_noisiest_cell() -> None:
    narrow, wide = [0.80, 0.81, 0.80, 0.81], [0.7, 0.9, 0.8, 0.85]
    both = one(FASTER, several({("a", 1): narrow, ("b", 1): wide}))["decidable"]
    assert both == one(FASTER, evidence(wide))["decidable"]
    assert both is not None and both > (one(FASTER, evidence(narrow))["decidable"] or 1)


@settings(deadline=None)
@given(st.lists(st.floats(0.2, 5), min_size=4, max_size=8), st.floats(0.3, 3))
def test_turning_the_ratio_over_turns_the_criterion_over(values: list[float], bound: float) -> None:
    straight = one(FASTER | {"at_most": bound}, evidence(values))["verdict"]
    over = {"id": "over", "metric": "request_duration_mean", "compare": "ratio", "at_least": 1 / bound}
    turned = one(over, evidence([1.0] * len(values), values))["verdict"]
    ends = [abs(end / bound - 1) for end in interval_of(values, True, 0.95)]
    assert straight == turned or min(ends) < 1e-5


@pytest.mark.parametrize("spread", [0.0, 0.02, 0.2])
def test_simulated_a_against_a(spread: float) -> None:
    """Equal arms, threshold at the truth: met and not met err in at most 2.5 % of runs each."""
    chance, runs = random.Random(20), 2000
    outcomes = []
    for _ in range(runs):
        arms = [[math.exp(chance.gauss(0, spread)) for _ in range(6)] for _ in range(2)]
        outcomes.append(judge([FASTER | {"at_most": 1.0}], evidence(*arms))[0]["verdict"])
    met, not_met = outcomes.count("met") / runs, outcomes.count("not_met") / runs
    if not spread:
        assert met == 1.0  # no spread is exact, and the threshold is inclusive
    else:
        assert 0.01 <= met <= 0.035 and 0.01 <= not_met <= 0.035  # 2.5 %, three standard errors of 0.35 % each way


def test_simulated_all_over_six_cells_does_not_multiply_false_alarms() -> None:
    chance, runs = random.Random(21), 500
    outcomes = []
    for _ in range(runs):
        pairs = {(f"w{i}", 1): [math.exp(chance.gauss(0, 0.05)) for _ in range(6)] for i in range(6)}
        outcomes.append(judge([FASTER | {"at_most": 1.0}], several(dict(pairs)))[0]["verdict"])
    assert outcomes.count("not_met") / runs <= 0.025 + 3 * 0.007
    assert outcomes.count("met") / runs <= 0.005


def test_ratio_rows() -> None:
    seen = evidence(RATIOS)
    for arm, factor in (("aa", 1.01), ("matched", 1.1)):
        seen.table[CELL][arm] = {b: {"request_duration_mean": factor} for b in range(1, 5)}  # type: ignore[index]
    rows = {row["arms"]: row for row in ratios(seen, ["request_duration_mean"])}
    assert list(rows) == ["pair/target", "aa/target", "matched/target", "pair/matched"]
    assert rows["pair/target"]["value"] == one(FASTER, seen)["cells"][0]["value"]
    assert rows["aa/target"]["spread"] == 0.0
    logs = [math.log(ratio) for ratio in RATIOS]
    assert rows["pair/target"]["spread"] == pytest.approx(stats.tstd(logs), rel=1e-5)
    for block in range(1, 5):
        whole, forced, own = (
            series(seen, CELL, "request_duration_mean", arm, over).values[block] or 0
            for arm, over in (("pair", "target"), ("matched", "target"), ("pair", "matched"))
        )
        assert whole == pytest.approx(forced * own, rel=1e-9)


def test_ratio_row_of_what_cannot_be_compared_says_why() -> None:
    (row,) = ratios(evidence([0.8, None, 0.8, 0.8]), ["request_duration_mean"])
    assert (row["value"], row["reason"], row["blocks"]) == (None, "block 2 has no value (pair)", [0.8, None, 0.8, 0.8])


def test_figure_rows_are_the_middle_of_the_blocks_that_count() -> None:
    seen = evidence([0.8, 9.0, 0.9, 0.7, 0.86], voids={(*CELL, 2): "compiled twice"})
    with_figures(seen, failed_requests__pair=[0, 3, 0, 0, 1])
    columns, rows = figure_rows(seen, ["request_duration_mean", "goodput"])
    assert columns == ["workload", "concurrency", "arm", "blocks", "failed_requests", "request_duration_mean", "goodput"]
    assert rows == [["varied", 4, "target", 4, 0, 1.0, None], ["varied", 4, "pair", 4, 4, 0.83, None]]


def test_a_run_that_was_ended_early_is_judged_nowhere_and_shows_no_interval() -> None:
    seen = evidence([0.80, 0.84, 0.82, 0.86, 0.81, 0.83])
    assert one(FASTER, seen)["verdict"] == "met"
    cut = replace(seen, unfinished="the run was ended after 6 of 8 blocks")
    verdict = one(FASTER, cut)
    assert verdict["verdict"] == verdict["cells"][0]["verdict"] == "undecided"
    assert verdict["cells"][0]["low"] is None and "6 of 8" in verdict["cells"][0]["reason"]
    whole, early = (ratios(one_seen, ["request_duration_mean"])[0] for one_seen in (seen, cut))
    assert whole["low"] is not None and early["low"] is early["high"] is early["sign_flip_p"] is None
    assert early["value"] == whole["value"] and early["blocks"] == whole["blocks"]
