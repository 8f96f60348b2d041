"""The committed example models are what their names and cards say."""

from __future__ import annotations

import json
import struct
from math import prod
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
MODELS = EXAMPLES / "models"
NAMES = ("tiny-target", "tiny-draft", "tiny-draft-other-tokenizer", "tiny-draft-same-size-other-ids")
TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja")


def read_json(name: str, file: str) -> Any:
    return json.loads((MODELS / name / file).read_text(encoding="utf-8"))


def tensors(name: str) -> dict[str, Any]:
    """The header of a safetensors file: little-endian length, then JSON."""
    with (MODELS / name / "model.safetensors").open("rb") as stream:
        (length,) = struct.unpack("<Q", stream.read(8))
        header: dict[str, Any] = json.loads(stream.read(length))
    header.pop("__metadata__", None)
    return header


def vocabulary(name: str) -> dict[str, int]:
    entries: dict[str, int] = read_json(name, "tokenizer.json")["model"]["vocab"]
    return entries


def expected_shapes(config: dict[str, Any]) -> dict[str, list[int]]:
    width, inner = config["hidden_size"], config["intermediate_size"]
    heads = config["num_attention_heads"] * config["head_dim"]
    key_values = config["num_key_value_heads"] * config["head_dim"]
    layer = {
        "input_layernorm": [width],
        "post_attention_layernorm": [width],
        "self_attn.q_proj": [heads, width],
        "self_attn.k_proj": [key_values, width],
        "self_attn.v_proj": [key_values, width],
        "self_attn.o_proj": [width, heads],
        "mlp.gate_proj": [inner, width],
        "mlp.up_proj": [inner, width],
        "mlp.down_proj": [width, inner],
    }
    shapes = {"model.embed_tokens.weight": [config["vocab_size"], width], "model.norm.weight": [width]}
    for i in range(config["num_hidden_layers"]):
        shapes |= {f"model.layers.{i}.{part}.weight": shape for part, shape in layer.items()}
    return shapes


def test_all_example_models_together_are_small() -> None:
    total = sum(path.stat().st_size for path in MODELS.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    assert total <= 6_000_000


@pytest.mark.parametrize("name", NAMES)
def test_weights_have_the_shapes_of_the_config(name: str) -> None:
    config, stored = read_json(name, "config.json"), tensors(name)
    assert config["architectures"] == ["LlamaForCausalLM"]
    assert config["tie_word_embeddings"] is True
    assert {key: entry["shape"] for key, entry in stored.items()} == expected_shapes(config)
    assert {entry["dtype"] for entry in stored.values()} == {"BF16"}


@pytest.mark.parametrize("name", NAMES)
def test_tokenizer_has_as_many_ids_as_the_model(name: str) -> None:
    config, entries = read_json(name, "config.json"), vocabulary(name)
    assert sorted(entries.values()) == list(range(config["vocab_size"]))
    assert (entries["<s>"], entries["</s>"]) == (config["bos_token_id"], config["eos_token_id"])


@pytest.mark.parametrize("name", NAMES)
def test_card_states_size_seed_licence_and_loss(name: str) -> None:
    card = (MODELS / name / "README.md").read_text(encoding="utf-8")
    parameters = sum(prod(entry["shape"]) for entry in tensors(name).values())
    assert card.startswith(f"# {name}\n")
    assert f"| parameters | {parameters:,} |" in card
    for word in ("PSF License", "| seed |", "nats per token", "Not for"):
        assert word in card


@pytest.mark.parametrize("file", TOKENIZER_FILES)
def test_draft_has_the_targets_tokenizer_files(file: str) -> None:
    assert (MODELS / "tiny-draft" / file).read_bytes() == (MODELS / "tiny-target" / file).read_bytes()


def test_trap_has_the_targets_size_and_other_ids() -> None:
    target, trap = vocabulary("tiny-target"), vocabulary("tiny-draft-same-size-other-ids")
    same = sum(trap.get(token) == number for token, number in target.items())
    assert len(trap) == len(target)
    assert trap != target
    assert same < len(target) / 2


def test_other_tokenizer_has_another_size_and_a_large_intersection() -> None:
    target, other = vocabulary("tiny-target"), vocabulary("tiny-draft-other-tokenizer")
    assert len(other) != len(target)
    assert len(target.keys() & other.keys()) >= 100


def test_varied_prompts_are_120_different_texts() -> None:
    rows = [json.loads(line) for line in (EXAMPLES / "prompts" / "varied.jsonl").read_text(encoding="utf-8").splitlines()]
    prompts = [row["prompt"] for row in rows]
    assert len(prompts) == len(set(prompts)) == 120
    assert all(set(row) == {"prompt"} and row["prompt"].strip() for row in rows)
