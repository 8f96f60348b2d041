"""The K sweep: tables worked out by hand. `test_simulations.py` has how often several equal K are told apart."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import jsonschema
import pytest
from scipy import stats
from synthetic_run import window

from speclint.canonical import rounded
from speclint.data import spec_schema
from specrun import plan, swept
from specrun.compare import interval_of
from specrun.establish import Window
from specrun.evidence import Cell, Evidence
from specrun.measure import figures
from specrun.report.sweep import sweep_lines, sweep_table
from specrun.sweep import Sweep, step_cost, sweep

CELL: Cell = ("varied", 4)
ARMS = {"k1": 1, "k2": 2, "pair": 3, "k5": 5}
DURATION = {"id": "faster", "metric": "request_duration_mean", "compare": "ratio", "at_most": 0.9}
FAST = [0.70, 0.71, 0.70, 0.72, 0.71, 0.70]


def evidence(ratios: Mapping[str, Sequence[float | None]], metric: str = "request_duration_mean", **other: Any) -> Evidence:
    """One cell whose target has the value 1 in every block."""
    arms = {"target": [1.0] * 6} | dict(ratios)
    table = {arm: {b: {metric: v} for b, v in enumerate(values, 1) if v is not None} for arm, values in arms.items()}
    return Evidence({CELL: table}, {}, [CELL], 0.95, **other)


def found(seen: Evidence, criterion: Mapping[str, Any] = DURATION, faults: Mapping[str, str] | None = None) -> Sweep:
    made = sweep(seen, [criterion], ARMS, faults or {})
    assert made is not None
    jsonschema.validate(made, spec_schema()["$defs"]["result"]["properties"]["sweep"])
    return made


def times(values: Sequence[float], factor: float) -> list[float]:
    """The same blocks, a factor apart, with some noise of their own."""
    return [
        rounded(value * factor * (1 + wobble)) for value, wobble in zip(values, (0.002, -0.001, 0, 0.001, -0.002, 0), strict=True)
    ]


def test_intervals_are_bonferroni_over_the_numbers() -> None:
    table = found(evidence(dict.fromkeys(ARMS, FAST)))["tables"][0]
    assert [row["k"] for row in table["rows"]] == [1, 2, 3, 5]
    logs = [math.log(ratio) for ratio in FAST]
    low, high = stats.t.interval(1 - 0.05 / 4, 5, sum(logs) / 6, stats.sem(logs))
    for row in table["rows"]:
        assert (row["low"], row["high"]) == pytest.approx((math.exp(low), math.exp(high)), rel=1e-5)
        assert row["blocks"] == FAST


def test_a_winner_is_better_than_every_other() -> None:
    seen = evidence({"k1": times(FAST, 1.1), "k2": FAST, "pair": times(FAST, 1.05), "k5": times(FAST, 1.2)})
    made = found(seen)
    assert (made["winner"], made["tables"][0]["winner"], made["tables"][0]["best"]) == (2, 2, [2])
    assert made["num_speculative_tokens"] == [1, 2, 3, 5]
    assert sweep_lines({"sweep": made})[0] == "K = 2 is better than every other in every table."


def test_of_two_that_are_alike_neither_wins() -> None:
    seen = evidence({"k1": times(FAST, 1.1), "k2": FAST, "pair": times(FAST, 1.0), "k5": times(FAST, 1.2)})
    made = found(seen)
    assert (made["winner"], made["tables"][0]["best"]) == (None, [2, 3])
    assert sweep_lines({"sweep": made})[0].startswith("Not separated")


def test_separation_is_at_the_level_for_all_pairs() -> None:
    """Apart at 95 %, not at 1 - 0.05 / 6."""
    slower = [value * (1 + d) for value, d in zip(FAST, (0.02, 0.005, 0.03, -0.004, 0.022, 0.012), strict=True)]
    ratios = [a / b for a, b in zip(FAST, slower, strict=True)]
    assert interval_of(ratios, True, 0.95)[2] < 1 < interval_of(ratios, True, 1 - 0.05 / 6)[2]
    seen = evidence({"k1": slower, "k2": FAST, "pair": FAST, "k5": FAST})
    assert found(seen)["tables"][0]["best"] == [1, 2, 3, 5]
    two = sweep(seen, [DURATION], {"k1": 1, "pair": 3}, {})  # one pair: no correction
    assert two is not None and two["winner"] == 3


def test_higher_is_better_where_the_metric_says_so() -> None:
    criterion = {"id": "busy", "metric": "output_throughput", "compare": "ratio", "at_least": 1.0}
    ratios = {"k1": FAST, "k2": times(FAST, 1.2), "pair": FAST, "k5": FAST}
    assert found(evidence(ratios, "output_throughput"), criterion)["winner"] == 2


def test_arm_that_did_not_run_as_meant_is_compared_with_nothing() -> None:
    seen = evidence({"k1": times(FAST, 1.2), "k2": FAST, "pair": times(FAST, 1.2), "k5": times(FAST, 0.5)})
    made = found(seen, faults={"k5": "not established: drafts are made: not one draft"})
    last = made["tables"][0]["rows"][3]
    assert (last["value"], last["low"], last["reason"]) == (None, None, "not established: drafts are made: not one draft")
    assert made["tables"][0]["best"] == [2] and made["winner"] is None  # it is not shown to be better than K = 5
    assert found(seen)["winner"] == 5


def test_blocks_that_one_arm_lacks_do_not_count_for_its_pairs() -> None:
    gaps: list[float | None] = [0.35, None, 0.36, 0.35, 0.36, 0.35]
    made = found(evidence({"k1": FAST, "k2": gaps, "pair": FAST, "k5": FAST}))
    assert made["winner"] == 2 and made["tables"][0]["rows"][1]["blocks"] == gaps
    few: list[float | None] = [0.35, None, None, None, 0.36, 0.35]
    row = found(evidence({"k1": FAST, "k2": few, "pair": FAST, "k5": FAST}))["tables"][0]["rows"][1]
    assert (row["value"], row["reason"]) == (None, "3 valid blocks, 4 are needed")


def test_no_winner_of_one_start_and_none_unless_in_every_cell() -> None:
    ratios = {"k1": times(FAST, 1.2), "k2": FAST, "pair": times(FAST, 1.2), "k5": times(FAST, 1.2)}
    once = found(evidence(ratios, one_start=True))
    assert once["winner"] is None and once["tables"][0]["winner"] is None and "no winner is named" in once["rule"]
    both = evidence(ratios)
    other = evidence({"k1": FAST, "k2": FAST, "pair": FAST, "k5": FAST}).table[CELL]
    seen = Evidence({**both.table, ("short", 4): other}, {}, [CELL, ("short", 4)], 0.95)
    assert [table["winner"] for table in found(seen)["tables"]] == [2, None] and found(seen)["winner"] is None


def test_without_a_sweep_there_is_none() -> None:
    assert sweep(evidence({"pair": FAST}), [DURATION], {"pair": 3}, {}) is None
    others = [
        {"id": "accepted", "metric": "acceptance_rate", "at_least": 0.4},
        {"id": "room", "metric": "kv_capacity_tokens", "compare": "ratio", "at_least": 0.9},
        {"id": "soon", "metric": "request_duration_mean", "at_most": 2.0},
    ]
    made = sweep(evidence({"pair": FAST}), others, ARMS, {})
    assert made is not None and (made["tables"], made["winner"]) == ([], None)


SPEC: dict[str, Any] = {
    "pair": {"speculative": {"method": "draft_model", "model": "d", "num_speculative_tokens": 3}},
    "protocol": {
        "sweep": {"num_speculative_tokens": [5, 3, 1]},
        "design": {"controls": ["aa"]},
        "request": {},
        "workloads": [{"id": "varied", "output": {"stop": "length"}}],
    },
}


def test_arms_of_a_sweep() -> None:
    assert plan.arms(SPEC) == ["target", "pair", "k1", "k5", "aa"]
    assert plan.arm_order(SPEC, 2) == ["aa", "k5", "k1", "pair", "target"]
    assert plan.for_arm(SPEC, "k5")["pair"]["speculative"] == SPEC["pair"]["speculative"] | {"num_speculative_tokens": 5}
    assert plan.for_arm(SPEC, "pair") is SPEC and SPEC["pair"]["speculative"]["num_speculative_tokens"] == 3


def windows(arm: str, k: int, drafts: int = 100, errors: Sequence[str] = ()) -> Window:
    counters = {"drafts": drafts, "draft_tokens": k * drafts, "itl_count": 100} if k else {}
    info = {"block": 1, "arm": arm, "workload": "varied", "concurrency": 4, "counters": counters, "requests": 8, "void": None}
    return Window(info, finish_reasons={"length": 8}, errors=list(errors), tokens={0: 9})


def start(arm: str, k: int) -> dict[str, Any]:
    speculative = {"method": "draft_model", "model": "d", "num_speculative_tokens": k} if k else None
    return {"arm": arm, "argv": ['{"model": "d"}'], "config": {"speculative_config": speculative}, "from_log": {}}


def test_an_arm_that_runs_another_number_is_a_fault_of_that_arm() -> None:
    starts = [start("target", 0), start("pair", 3), start("k1", 1), start("k5", 4)]
    driven = [windows("target", 0), windows("pair", 3), windows("k1", 1), windows("k5", 5)]
    rules = {"expected": ["/vllm_config/speculative_config"]}
    told = swept.faults(SPEC, starts, driven, rules)
    assert told.keys() == {"k5"} and "num_speculative_tokens is 4, the spec says 5" in told["k5"]
    starts[-1]["config"] = start("k5", 5)["config"] | {"dtype": "float16"}
    assert "also differs in /vllm_config/dtype" in swept.faults(SPEC, starts, driven, rules)["k5"]
    starts[-1] = start("k5", 5)
    driven[-1] = windows("k5", 5, drafts=50)
    assert "50 drafts in 100 decode steps" in swept.faults(SPEC, starts, driven, rules)["k5"]


def test_configuration_is_held_against_the_targets_where_both_are_known() -> None:
    driven = [windows("target", 0), windows("pair", 3), windows("k1", 1), windows("k5", 5)]
    rules = {"expected": ["/vllm_config/speculative_config"]}
    starts = [start("pair", 3), start("target", 0), start("k1", 1), start("k5", 5)]
    for one in starts[1:]:
        one["config"]["dtype"] = "float32"
    starts[0]["config"]["dtype"] = "float16"
    assert swept.faults(SPEC, starts, driven, rules) == {}
    starts[1]["config"]["dtype"] = "float16"
    assert swept.faults(SPEC, starts, driven, rules).keys() == {"k1", "k5"}
    starts[1]["config"] = None  # a release that does not report it
    assert swept.faults(SPEC, starts, driven, rules) == {}
    starts[1]["config"] = {"dtype": "float16"}
    for one in starts[2:]:
        one["config"] = None
    assert swept.faults(SPEC, starts, driven, rules) == {}


def test_failed_requests_void_the_window_of_their_own_arm() -> None:
    block = [windows("target", 0), windows("pair", 3), windows("k1", 1), windows("k5", 5, errors=["HTTP 500"])]
    assert list(swept.void_windows(SPEC, block)) == [(CELL, "k5", 1)]
    block[0] = windows("target", 0, errors=["HTTP 500"])
    assert [arm for _, arm, _ in swept.void_windows(SPEC, block)] == ["k1", "k5"]


def stepping(k: int, blocks: int = 4) -> dict[int, Any]:
    """Steps of 12 ms and 4 ms more for each draft token; 10 ms in the target."""
    step_s = 0.012 + 0.004 * k if k else 0.010
    return {b: figures(*window(b, k=k, step_s=step_s, accept=0.6), k=k or None) for b in range(1, blocks + 1)}


def test_cost_of_a_step_by_hand() -> None:
    arms = {"target": stepping(0)} | {arm: stepping(k) for arm, k in ARMS.items()}
    seen = Evidence({CELL: arms}, {}, [CELL], 0.95)
    ((code, text),) = step_cost(seen, CELL, ARMS)
    assert code == "DX19"
    assert text.startswith("over K = 1, 2, 3, 5 a step takes 12 ms (") and "for each draft token, drafted and verified" in text
    assert _miss(text) < 1
    numbers = [float(part.split(" ms")[0].rsplit(" ", 1)[-1]) for part in text.split(" (")[:3]]
    assert numbers == pytest.approx([12, 2, 4], abs=0.15)
    for row in arms["k5"].values():
        row["step_time"] *= 2  # a cliff, such as graphs that end
    ((_, text),) = step_cost(seen, CELL, ARMS)
    assert _miss(text) > 10


def _miss(text: str) -> float:
    """How far the worst point is from the line, in percent."""
    told = re.search(r"the point farthest from the line is K = \d, [+-](\d+\.\d)%\)$", text)
    assert told is not None
    return float(told[1])


def test_cost_of_a_step_needs_a_second_number_and_four_blocks() -> None:
    arms = {"target": stepping(0), "pair": stepping(3), "k1": stepping(1)}
    seen = Evidence({CELL: arms}, {}, [CELL], 0.95)
    assert list(step_cost(seen, CELL, {"pair": 3})) == []
    ((_, text),) = step_cost(seen, CELL, {"pair": 3, "k1": 1})
    assert text.endswith("(two points make the line)")
    del arms["k1"][2]
    assert list(step_cost(seen, CELL, {"pair": 3, "k1": 1})) == []


def test_report_rows() -> None:
    made = found(
        evidence({"k1": times(FAST, 1.1), "k2": FAST, "pair": times(FAST, 1.0), "k5": times(FAST, 1.2)}), faults={"k1": "why"}
    )
    columns = ["workload", "concurrency", "arm", "tokens_per_step"]
    rows = [["varied", 4, arm, 1 + 0.5 * k] for arm, k in ARMS.items()] + [["varied", 4, "target", 1.0], ["varied", 1, "k5", 9.0]]
    table = sweep_table({"sweep": made, "figures": {"columns": columns, "rows": rows}})
    assert table.rows[0][0] == "request_duration_mean, varied at 4"
    assert [row[1] for row in table.rows] == ["1", "2", "3", "5"]
    assert [row[3] for row in table.rows] == ["1.50", "2.00", "2.50", "3.50"]
    assert [row[4] for row in table.rows] == ["why", "none is better", "none is better", "worse"]
    assert sweep_lines({}) == [] and sweep_table({"figures": {"columns": columns, "rows": rows}}).rows == []


def test_a_run_that_was_ended_early_names_no_number() -> None:
    arms = {"k1": FAST, "k2": times(FAST, 0.8), "pair": FAST, "k5": FAST}
    assert found(evidence(arms))["winner"] == 2
    cut = found(evidence(arms, unfinished="the run was ended after 6 of 8 blocks"))
    assert cut["winner"] is None and cut["tables"][0]["winner"] is None and cut["tables"][0]["best"] == []
    assert all(row["low"] is None and "6 of 8" in row["reason"] for row in cut["tables"][0]["rows"])
