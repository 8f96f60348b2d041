"""Configurations compared: what each kind of difference means."""

from __future__ import annotations

from typing import Any

import pytest
from stand_in_run import release

from specrun import conclude, effective

RULES = {"ignored": ["/a/id", "/a"], "derived": ["/a/b"], "expected": ["/a/b/c"]}


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/a/x", "ignored"),
        ("/a/b", "derived"),
        ("/a/b/z", "derived"),
        ("/a/b/c/d", "expected"),
        ("/ab", "voiding"),
        ("/", "voiding"),
    ],
)
def test_the_longest_rule_decides(path: str, kind: str) -> None:
    assert effective.kind_of(path, RULES) == kind


def start(speculative: Any = None, runner: str = "V1", **sections: Any) -> dict[str, Any]:
    return {"config": {"speculative_config": speculative, **sections}, "from_log": {"runner": runner}}


PAIR = {"method": "ngram", "num_speculative_tokens": 4, "target_model_config": {"dtype": "float32"}}


def kinds(target: dict[str, Any], pair: dict[str, Any]) -> dict[str, str]:
    return {row["path"]: row["kind"] for row in effective.differences(target, pair, release().config_diff)}


def test_the_method_is_one_row_however_many_fields_it_has() -> None:
    assert kinds(start(), start(PAIR)) == {"/vllm_config/speculative_config": "expected"}
    assert kinds(start(), start()) == {}


def test_kinds_of_differences() -> None:
    one = start(instance_id="x", scheduler_config={"max_num_scheduled_tokens": None}, model_config={"dtype": "float32"})
    other = start(PAIR, instance_id="y", scheduler_config={"max_num_scheduled_tokens": 2048}, model_config={"dtype": "bfloat16"})
    assert kinds(one, other) == {
        "/vllm_config/model_config/dtype": "voiding",
        "/vllm_config/scheduler_config/max_num_scheduled_tokens": "derived",
        "/vllm_config/speculative_config": "expected",
    }


def test_a_field_that_only_one_arm_has_differs() -> None:
    assert kinds(start(cache_config={}), start(cache_config={"x": 1}))["/vllm_config/cache_config/x"] == "voiding"


def test_runner_comes_from_the_log() -> None:
    assert kinds(start(), start(runner="V2")) == {"/log/runner": "voiding"}


def test_an_address_in_what_the_engine_prints_is_no_difference() -> None:
    one, other = (start(model_config={"hf_overrides": f"<function override at 0x7f{n}b60>"}) for n in "ab")
    assert effective.differences(one, other, {}) == []
    other["config"]["model_config"]["hf_overrides"] = "<function another at 0x7fab60>"
    assert len(effective.differences(one, other, {})) == 1


def started(arm: str, block: int, **facts: Any) -> dict[str, Any]:
    return start(**facts) | {"arm": arm, "block": block}


@pytest.mark.parametrize(
    ("later", "told"),
    [
        ({}, []),
        ({"instance_id": "y"}, []),
        ({"cache_config": {"num_gpu_blocks": 9}}, []),  # found by profiling at each start
        ({"scheduler_config": {"async_scheduling": False}}, ["/vllm_config/scheduler_config/async_scheduling"]),
        ({"runner": "V2"}, ["/log/runner"]),
        ({"speculative": PAIR | {"num_speculative_tokens": 2}}, ["/vllm_config/speculative_config/num_speculative_tokens"]),
        ({"speculative": PAIR | {"model": "at 0x12"}}, ["/vllm_config/speculative_config/model"]),
    ],
)
def test_a_later_start_must_run_what_the_first_of_its_arm_ran(later: dict[str, Any], told: list[str]) -> None:
    """What the method changes is expected between the arms, not between two starts of one arm."""
    usual: dict[str, Any] = {"speculative": PAIR, "instance_id": "x", "cache_config": {"num_gpu_blocks": 8}}
    usual["scheduler_config"] = {"async_scheduling": True}
    starts = [started("target", 0), started("pair", 0, **usual), started("target", 1), started("pair", 1, **usual | later)]
    found = effective.drift(starts, release().config_diff)
    assert found == [f"{path} in the start of pair, block 1" for path in told]
    assert conclude.arms_differ([{"path": "/x", "kind": "expected"}], found).outcome == ("failed" if told else "ok")


def test_aa_is_the_target_once_more_and_an_untold_configuration_is_not_compared() -> None:
    starts = [started("target", 0), started("aa", 2, x=1), {"arm": "aa", "block": 3, "config": None}]
    assert effective.drift(starts, {}) == ["/vllm_config/x in the start of aa, block 2"]


def test_the_graph_mode_is_the_one_that_the_worker_has_logged() -> None:
    """The configuration that a server shows is from before the worker narrowed it: evidence A6."""
    asked = {"compilation_config": {"cudagraph_mode": "FULL_AND_PIECEWISE"}}
    narrowed = start(PAIR, **asked)
    narrowed["from_log"]["cudagraph_mode"] = "PIECEWISE"
    path = "/vllm_config/compilation_config/cudagraph_mode"
    assert kinds(start(**asked), narrowed)[path] == "expected"
    assert effective.drift([narrowed | {"arm": "pair", "block": 0}, started("pair", 1, speculative=PAIR, **asked)], {}) == [
        f"{path} in the start of pair, block 1"
    ]
    assert effective.summary(narrowed["config"], narrowed["from_log"])["compilation_config"] == {"cudagraph_mode": "PIECEWISE"}


def test_arms_differ_check() -> None:
    rows = effective.differences(start(), start(PAIR), release().config_diff)
    assert conclude.arms_differ(rows).outcome == "ok"
    assert conclude.arms_differ([]).outcome == "skipped"
    odd = conclude.arms_differ([*rows, {"path": "/vllm_config/x", "kind": "voiding"}])
    assert odd.outcome == "failed" and "/vllm_config/x" in odd.detail


def test_summary_keeps_what_a_reader_looks_for() -> None:
    config = {"model_config": {"dtype": "float32", "hf_config": {"x": 1}, "seed": 0}, "speculative_config": None}
    found = effective.summary(config, {"runner": "V1", "weights_bytes": 5})
    assert found == {"model_config": {"dtype": "float32", "seed": 0}, "runner": "V1"}
    assert effective.summary(None, {}) == {}
