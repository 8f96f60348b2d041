"""The frozen plan: order, commands, environment."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from stand_in_run import spec_data

from specrun import outline, plan

AA = ("warmup: 2}", "warmup: 2, controls: [aa]}")


def test_arms_and_cells_are_mirrored_in_even_blocks() -> None:
    data = spec_data(AA)
    assert plan.arm_order(data, 1) == ["target", "pair", "aa"] and plan.arm_order(data, 2) == ["aa", "pair", "target"]
    names = [cell.name for cell in plan.cell_order(data, 1)]
    assert names == ["c1-repetitive", "c1-varied", "c2-repetitive", "c2-varied"]  # ascending, though the file says [2, 1]
    assert [cell.name for cell in plan.cell_order(data, 4)] == names[::-1]
    assert plan.arm_order(data, 3) == plan.arm_order(data, 1)


def test_mean_place_of_each_arm_and_cell_is_the_same_over_a_pair_of_blocks() -> None:
    data = spec_data(AA)
    places: dict[Any, list[int]] = {}
    for block in (1, 2):
        order = [(arm, cell) for arm in plan.arm_order(data, block) for cell in plan.cell_order(data, block)]
        for place, what in enumerate(order):
            places.setdefault(what, []).append(place)
    assert {sum(two) for two in places.values()} == {3 * 4 - 1}


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("max_model_len", 1024, ["--max-model-len", "1024"]),
        ("enforce_eager", True, ["--enforce-eager"]),
        ("enable_prefix_caching", False, ["--no-enable-prefix-caching"]),
        ("hf_overrides", {"a": [1]}, ["--hf-overrides", '{"a": [1]}']),
        ("gpu_memory_utilization", 0.5, ["--gpu-memory-utilization", "0.5"]),
    ],
)
def test_flags(name: str, value: Any, words: list[str]) -> None:
    assert plan.flag(name, value) == words


def test_arms_differ_in_nothing_but_the_speculative_config(tmp_path: Path) -> None:
    for name in ("model", "draft"):
        (tmp_path / name).mkdir()
    data = spec_data()
    target = plan.argv(data, "target", tmp_path, "py", Path("/s"))
    pair = plan.argv(data, "pair", tmp_path, "py", Path("/s"))
    assert plan.argv(data, "aa", tmp_path, "py", Path("/s")) == target
    at = pair.index("--speculative-config")
    assert pair[:at] + pair[at + 2 :] == target
    config = json.loads(pair[at + 1])
    assert config == {"method": "draft_model", "model": str(tmp_path / "draft"), "num_speculative_tokens": 3}
    assert data["pair"]["speculative"]["revision"].startswith("sha256:")  # the spec itself is not touched
    assert target[:5] == ["py", "-m", "vllm.entrypoints.openai.api_server", "--model", str(tmp_path / "model")]
    assert "--revision" not in target and target[-2:] == ["--uds", "/s"]
    assert "--no-enable-prefix-caching" in target and target[-4:-2] == ["--generation-config", "vllm"]


def test_hub_models_keep_name_and_commit(tmp_path: Path) -> None:
    data = spec_data()
    commit = "b968826d9c46dd6066d109eabc6255188de91218"
    data["pair"]["target"] |= {"model": "Qwen/Qwen3-8B", "revision": commit}
    data["pair"]["speculative"] |= {"model": "Qwen/Qwen3-0.6B", "revision": commit}
    words = plan.engine_flags(data, tmp_path)
    assert words[1] == "Qwen/Qwen3-8B" and words[words.index("--revision") + 1] == commit
    assert plan.speculative_config(data, tmp_path) == data["pair"]["speculative"]


def test_environment_is_scrubbed(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("VLLM_ATTENTION_BACKEND", "OMP_NUM_THREADS", "LD_PRELOAD", "HF_TOKEN", "HTTP_PROXY"):
        monkeypatch.setenv(name, "from-the-caller")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    found = plan.environment(spec_data())
    assert "from-the-caller" not in found.values()
    assert found["HF_HUB_OFFLINE"] == "1" and found["PATH"] == os.environ["PATH"]
    assert found["VLLM_CPU_KVCACHE_SPACE"] == "1" and found["VLLM_SERVER_DEV_MODE"] == "1"
    assert plan.secrets() == {"HF_TOKEN": "from-the-caller"}


def test_totals() -> None:
    data = spec_data(AA)
    assert plan.requests_in_all(data) == 4 * 3 * 4 * 6
    assert plan.server_starts(data) == 3 * 5 + 1  # the draft alone
    assert plan.server_starts(spec_data(AA, ("servers: restart", "servers: resident"))) == 3 * 2 + 1
    listed = spec_data(("requests: 6", "requests: [6, 16]"))
    assert plan.requests_in_all(listed) == 4 * 2 * 2 * (6 + 16)
    assert plan.longest_answer(data) == 18
    slow, fast = plan.seconds_estimate(data, 10, 50), plan.seconds_estimate(data, 10, 500)
    assert slow - 160 == pytest.approx(10 * (fast - 160)) and fast > 160


def test_outline_says_what_a_run_would_do(tmp_path: Path) -> None:
    text = outline.outline(spec_data(), tmp_path, "py")
    assert "--speculative-config" in text and "VLLM_SERVER_DEV_MODE=1" in text
    assert "block 2: pair then target, each: c2-varied, c2-repetitive, c1-varied, c1-repetitive" in text
    assert "duration: met in 80 % of runs if the true ratio is at or below 0.774 in each cell" in text  # 0.9 / 1.162
    assert "192 measured" in text and "11, one of each arm unmeasured" in text
    assert list(tmp_path.iterdir()) == []


def test_a_file_beside_the_spec_is_named_by_its_whole_path(tmp_path: Path) -> None:
    (tmp_path / "chat.jinja").write_text("{{ text }}", encoding="utf-8")
    assert plan.beside("chat.jinja", tmp_path) == str((tmp_path / "chat.jinja").resolve())
    assert plan.beside("other.jinja", tmp_path) == "other.jinja"
    assert plan.beside("{{ text }}\n", tmp_path) == "{{ text }}\n"
    assert plan.beside(4, tmp_path) == 4


def test_a_sweep_is_planned(tmp_path: Path) -> None:
    data = spec_data(("  criteria:", "  sweep: {num_speculative_tokens: [1, 3, 5]}\n  criteria:"))
    text = outline.outline(data, tmp_path, "py")
    assert "block 2: k5 then k1 then pair then target" in text
    assert '"num_speculative_tokens": 5' in text and "384 measured" in text
    # 4 blocks at 1 - 0.05 / 3
    assert "sweep of 3 numbers: two are told apart in 80 % of runs if they differ by 25% or more" in text
    assert outline.commands(data, tmp_path).count("--speculative-config") == 3
