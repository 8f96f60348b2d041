"""What a result speaks of."""

from __future__ import annotations

from typing import Any

from stand_in_run import spec_data

from specrun.scope import sentences

HOST: dict[str, Any] = {"gpus": [], "cores": 2, "processor": "a processor"}


def test_what_was_evaluated_is_said_with_numbers() -> None:
    found = sentences(spec_data(), HOST, 4)
    assert found[0] == (
        "Evaluated: workload repetitive (short_repetitive, generator repetitive), 6 requests a window, "
        "answers of 4 to 12 tokens (forced)."
    )
    assert "Evaluated at concurrency 1 and 2, closed loop, greedy." in found
    assert "Evaluated on 2 cores of a processor." in found
    assert "A fault that hits fewer than 53% of starts may not have shown in 4 blocks." in found  # 1 - 0.05 ** (1 / 4)
    assert any("Not evaluated" in line for line in found)


def test_limits_depend_on_the_design() -> None:
    resident = sentences(spec_data(("servers: restart", "servers: resident")), HOST, 4)
    assert any("are of one start" in line for line in resident) and not any("fewer than" in line for line in resident)
    same = sentences(spec_data(("prompts: fresh", "prompts: same")), HOST, 4)
    assert any("these prompts only" in line for line in same)
    assert not any("these prompts only" in line for line in sentences(spec_data(), HOST, 4))
    assert not any("fewer than" in line for line in sentences(spec_data(), HOST, 0))


def test_gpu_and_temperature_are_named() -> None:
    data = spec_data(
        ("device: cpu", "device: cuda"), ("temperature: 0.0", "temperature: 0.7"), ("concurrency: [2, 1]", "concurrency: [4]")
    )
    found = sentences(data, HOST | {"gpus": [{"name": "H200"}, {"name": "H200"}]}, 6)
    assert "Evaluated on 2 × H200." in found
    assert "Evaluated at concurrency 4, closed loop, temperature 0.7." in found


def test_answers_that_may_end_by_themselves() -> None:
    found = sentences(spec_data(("tokens: 8, spread: 0.5, stop: length", "tokens: 8, stop: natural")), HOST, 4)
    assert "answers of 8 tokens (at most, the model may end earlier)" in found[0]
