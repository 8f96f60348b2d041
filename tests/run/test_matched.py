"""What the `matched` control is started with: tables worked out by hand."""

from __future__ import annotations

import json
from typing import Any

import pytest

from speclint.releases import Release, load
from specrun.matched import derive


def start(
    *, asynchronous: bool = True, budget: int | None = None, runner: str = "V2", sizes: tuple[int, ...] = (1, 2, 4)
) -> dict[str, Any]:
    scheduler = {"async_scheduling": asynchronous, "max_num_batched_tokens": 2048, "max_num_scheduled_tokens": budget}
    config = {"scheduler_config": scheduler, "compilation_config": {"cudagraph_capture_sizes": list(sizes)}}
    return {"config": config, "from_log": {"runner": runner}}


def release(version: str) -> Release:
    found = load(version)
    assert found is not None
    return found


def test_everything_that_speculation_forced_is_set() -> None:
    pair = start(asynchronous=False, budget=1920, runner="V1", sizes=(4, 8))
    assert derive(start(), pair, {}, release("0.26.0")) == {
        "flags": [
            "--no-async-scheduling",
            "--max-num-scheduled-tokens",
            "1920",
            "--compilation-config",
            json.dumps({"cudagraph_capture_sizes": [4, 8]}),
        ],
        "env": {"VLLM_USE_V2_MODEL_RUNNER": "0"},
        "unset": [],
    }


def test_a_null_budget_is_the_batch_limit_and_no_difference() -> None:
    nothing: dict[str, Any] = {"flags": [], "env": {}, "unset": []}
    assert derive(start(budget=None), start(budget=2048), {}, release("0.32.0")) == nothing
    assert derive(start(), start(), {}, release("0.32.0")) == nothing


def test_what_the_release_cannot_set_is_listed() -> None:
    found = derive(start(), start(budget=1920), {}, release("0.21.0"))
    assert found["flags"] == []
    assert found["unset"] == ["scheduler_config/max_num_scheduled_tokens (pair: 1920)"]


def test_the_specs_own_compilation_settings_stay() -> None:
    flags = derive(start(), start(sizes=(8,)), {"compilation_config": {"mode": 3}}, release("0.26.0"))["flags"]
    assert json.loads(flags[1]) == {"mode": 3, "cudagraph_capture_sizes": [8]}


@pytest.mark.parametrize(("target", "pair", "wanted"), [("V1", "V2", "1"), ("V2", "V1", "0")])
def test_the_runner_is_set_by_environment(target: str, pair: str, wanted: str) -> None:
    found = derive(start(runner=target), start(runner=pair), {}, release("0.32.0"))
    assert found["env"] == {"VLLM_USE_V2_MODEL_RUNNER": wanted}
