"""What checkpoints that draft say of themselves, and how the rules judge real tiny ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from spec_cases import TODAY, dumped, good
from tiny_checkpoints import write_model, write_safetensors

from speclint import document
from speclint.lint import inspect
from speclint.lock import LockError
from speclint.lock.attention import attention_facts
from speclint.lock.facts import build_lock
from speclint.lock.proposer import card_base_model, proposer_facts
from speclint.lock.resolve import resolve
from specrun.errors import Refused
from specrun.prepare import artifacts

SPECULATORS = {
    "speculators_model_type": "eagle3",
    "speculators_config": {
        "proposal_methods": [{"proposal_type": "greedy", "speculative_tokens": 3}],
        "verifier": {"name_or_path": "org/base-8b", "architectures": ["LlamaForCausalLM"]},
    },
}
LAYER = {"model_type": "llama", "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "vocab_size": 300}


@pytest.mark.parametrize(
    ("config", "facts"),
    [
        (
            {**SPECULATORS, "eagle_aux_hidden_state_layer_ids": [2, 18, 33]},
            {"proposes": "eagle3", "proposed_tokens": 3, "base_model": "org/base-8b", "target_layers": [2, 18, 33]},
        ),
        ({"eagle_config": {"eagle_aux_hidden_state_layer_ids": [1, 3]}}, {"target_layers": [1, 3]}),
        (
            {"dflash_config": {"mask_token_id": 7, "target_layer_ids": [1, 9]}, "block_size": 16},
            {"mask_token": 7, "target_layers": [2, 10]},
        ),
        (
            {
                "speculators_model_type": "dflash",
                "aux_hidden_state_layer_ids": [2, 10],
                "mask_token_id": 0,
                "sample_from_anchor": True,
            },
            {"proposes": "dflash", "target_layers": [2, 10], "mask_token": 0, "from_anchor": True},
        ),
        ({"dspark_target_layer_ids": [0, 5], "dspark_noise_token_id": 9}, {"target_layers": [1, 6], "mask_token": 9}),
        ({"pard_token": 151665}, {"mask_token": 151665}),
        ({"model_type": "medusa", "num_heads": 4}, {"heads": 4}),
        ({"medusa_num_heads": 5, "base_model_name_or_path": "org/base"}, {"heads": 5, "base_model": "org/base"}),
        ({"model_type": "bloom", "num_heads": 4, "speculators_config": [], "target_layer_ids": "all"}, {}),
        ({"speculators_config": {"proposal_methods": [], "verifier": None}, "mask_token_id": None, "dflash_config": []}, {}),
    ],
    ids=["eagle3", "eagle-config", "dflash", "speculators-dflash", "dspark", "pard", "medusa", "old-medusa", "other", "odd"],
)
def test_what_a_config_says_of_its_proposing(config: dict[str, Any], facts: dict[str, Any]) -> None:
    assert proposer_facts(config) == facts


@pytest.mark.parametrize(
    ("card", "named"),
    [
        ("---\nlicense: mit\nbase_model: org/base-8b\n---\n# A head\n", "org/base-8b"),
        ("---\nbase_model:\n- org/one\n- org/two\n---\n", "org/one"),
        ('---\nbase_model: "org/base"\n---\n', "org/base"),
        ("# A head\n\nbase_model: org/base\n", None),
        ("---\nlicense: mit\n---\nbase_model: org/base\n", None),
    ],
)
def test_the_cards_front_matter_names_the_base_model(tmp_path: Path, card: str, named: str | None) -> None:
    (tmp_path / "README.md").write_text(card)
    assert card_base_model(tmp_path) == named
    (tmp_path / "README.md").unlink()
    assert card_base_model(tmp_path) is None


@pytest.mark.parametrize(
    ("config", "attention"),
    [
        ({}, {"full": 6}),
        ({"sliding_window": 128}, {"sliding": 6, "window": 128}),
        ({"sliding_window": 128, "use_sliding_window": False}, {"full": 6}),
        ({"sliding_window": 128, "use_sliding_window": True, "max_window_layers": 4}, {"full": 4, "sliding": 2, "window": 128}),
        ({"sliding_window": 128, "sliding_window_pattern": 4}, {"full": 1, "sliding": 5, "window": 128}),
        (
            {"sliding_window": 64, "layer_types": ["sliding_attention"] * 4 + ["full_attention", "linear_attention"]},
            {"full": 1, "sliding": 4, "other": 1, "window": 64},
        ),
        ({"layer_types": ["sliding_attention"] * 6}, {"full": 6}),
        ({"num_kv_shared_layers": 2}, {"full": 4}),
        ({"kv_lora_rank": 512, "qk_rope_head_dim": 64}, {"full": 6, "mla_width": 576}),
        ({"layers_block_type": ["mamba", "attention"]}, None),
    ],
)
def test_layers_are_counted_by_what_they_keep(config: dict[str, Any], attention: dict[str, int] | None) -> None:
    assert attention_facts({"num_hidden_layers": 6, **config}).get("attention") == attention


# Real tiny checkpoints, locked and judged


def judged(folder: Path, method: str, **speculative: Any) -> set[tuple[str, str]]:
    """(code, path) of what the lint says of SL4 about the pair of the folders `target` and `draft`, locked on the spot."""
    spec = good()
    spec["pair"]["target"] = {"model": "target"}
    spec["pair"]["speculative"] = {"method": method, "model": "draft", "num_speculative_tokens": 3, **speculative}
    del spec["lock"]
    spec["lock"] = build_lock(spec, folder)
    found = inspect(document.parse(dumped(spec), "case.spec.yaml"), folder, today=TODAY).diagnostics
    return {(item.code, item.path) for item in found if item.code in ("SL312", "SL407", "SL412", "SL430", "SL431")}


def write_head(folder: Path, config: dict[str, Any], tensors: dict[str, Any]) -> None:
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config))
    write_safetensors(folder / "model.safetensors", tensors)


EAGLE3 = {
    **SPECULATORS,
    "transformer_layer_config": LAYER,
    "draft_vocab_size": 100,
    "eagle_aux_hidden_state_layer_ids": [0, 1, 2],
}
EAGLE3_TENSORS = {"fc.weight": ("BF16", (8, 24)), "d2t": ("I64", (100,)), "lm_head.weight": ("BF16", (100, 8))}


def test_an_eagle3_head_that_fits_is_quiet_and_each_misfit_is_said(tmp_path: Path) -> None:
    write_model(tmp_path / "target")
    write_head(tmp_path / "draft", EAGLE3, EAGLE3_TENSORS)
    assert judged(tmp_path, "eagle3") == set()
    assert judged(tmp_path, "eagle") == {("SL412", "/pair/speculative/method")}
    (tmp_path / "draft" / "config.json").write_text(json.dumps(EAGLE3 | {"eagle_aux_hidden_state_layer_ids": [0, 1, 3]}))
    assert judged(tmp_path, "eagle3") == {("SL412", "/lock/draft/config/target_layers")}
    (tmp_path / "draft" / "config.json").write_text(json.dumps(EAGLE3 | {"eagle_aux_hidden_state_layer_ids": [0, 1]}))
    assert judged(tmp_path, "eagle3") == {("SL412", "/lock/draft/weights/fused_width")}


def test_a_dflash_draft_needs_its_mask_token_and_stays_in_its_block(tmp_path: Path) -> None:
    write_model(tmp_path / "target")
    config = {**LAYER, "architectures": ["DFlashDraftModel"], "block_size": 4, "dflash_config": {"target_layer_ids": [0, 1]}}
    write_head(tmp_path / "draft", config, {"fc.weight": ("BF16", (8, 16))})
    assert judged(tmp_path, "dflash") == {("SL431", "/pair/speculative/method")}
    config["dflash_config"]["mask_token_id"] = 299
    (tmp_path / "draft" / "config.json").write_text(json.dumps(config))
    assert judged(tmp_path, "dflash") == set()
    assert judged(tmp_path, "dflash", num_speculative_tokens=4) == {("SL407", "/pair/speculative/num_speculative_tokens")}


def test_medusa_has_the_heads_and_the_width_that_its_files_say(tmp_path: Path) -> None:
    write_model(tmp_path / "target")
    config = {"model_type": "medusa", "hidden_size": 8, "vocab_size": 300, "medusa_num_heads": 3, "medusa_num_layers": 1}
    write_head(tmp_path / "draft", config, {"blocks.0.layers.0.weight": ("BF16", (8, 8))})
    assert judged(tmp_path, "medusa") == set()
    assert judged(tmp_path, "medusa", num_speculative_tokens=4) == {("SL407", "/pair/speculative/num_speculative_tokens")}
    (tmp_path / "draft" / "config.json").write_text(json.dumps(config | {"hidden_size": 16}))
    assert judged(tmp_path, "medusa") == {("SL412", "/lock/draft/config/hidden_size")}


def test_an_mlp_speculator_works_on_the_targets_states(tmp_path: Path) -> None:
    write_model(tmp_path / "target")
    config = {"model_type": "mlp_speculator", "emb_dim": 16, "n_predict": 3, "vocab_size": 300}
    write_head(tmp_path / "draft", config, {"speculator.emb.0.weight": ("BF16", (300, 16))})
    assert judged(tmp_path, "mlp_speculator") == {("SL412", "/lock/draft/config/hidden_size")}


def test_an_ordinary_draft_cannot_draft_in_parallel(tmp_path: Path) -> None:
    for name in ("target", "draft"):
        write_model(tmp_path / name)
    assert judged(tmp_path, "draft_model") == set()
    assert judged(tmp_path, "draft_model", parallel_drafting=True) == {("SL431", "/pair/speculative/parallel_drafting")}


def test_a_card_names_the_base_model_only_of_a_head(tmp_path: Path) -> None:
    write_model(tmp_path / "target")
    write_model(tmp_path / "draft")
    (tmp_path / "draft" / "README.md").write_text("---\nbase_model: org/base\n---\n")
    spec = good()
    del spec["lock"]
    spec["pair"]["target"] = {"model": "target"}
    named = {}
    for method in ("draft_model", "eagle"):
        spec["pair"]["speculative"] = {"method": method, "model": "draft", "num_speculative_tokens": 3}
        named[method] = build_lock(spec, tmp_path)["draft"]["config"].get("base_model")
    assert named == {"draft_model": None, "eagle": "org/base"}


# A target that speculates by itself


def test_a_target_that_speculates_by_itself_is_found(tmp_path: Path) -> None:
    write_model(tmp_path / "draft")
    write_model(tmp_path / "target", config={**SPECULATORS, "transformer_layer_config": LAYER})
    assert ("SL430", "/pair/target/model") in judged(tmp_path, "draft_model")


def test_a_run_refuses_it_whatever_was_suppressed(tmp_path: Path) -> None:
    write_model(tmp_path / "draft")
    write_model(tmp_path / "target", config={**SPECULATORS, "transformer_layer_config": LAYER})
    spec = good()
    spec["pair"]["target"] = {"model": "target"}
    spec["pair"]["speculative"] = {"method": "draft_model", "model": "draft", "num_speculative_tokens": 3}
    del spec["lock"]
    spec["lock"] = build_lock(spec, tmp_path)
    with pytest.raises(Refused, match="by itself"):
        artifacts(tmp_path / "case.spec.yaml", spec)
    write_model(tmp_path / "target")
    spec["lock"] = build_lock(spec, tmp_path)
    artifacts(tmp_path / "case.spec.yaml", spec)


@pytest.mark.parametrize("name", ["models/Qwen3-8B-Q4_K_M.gguf", "org/Qwen3-8B-GGUF:Q4_K_M"])
def test_a_single_gguf_file_is_refused_with_the_way_out(tmp_path: Path, name: str) -> None:
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "Qwen3-8B-Q4_K_M.gguf").write_bytes(b"GGUF")
    with pytest.raises(LockError, match="GGUF file") as caught:
        resolve(name, None, tmp_path)
    assert "safetensors" in caught.value.hint
