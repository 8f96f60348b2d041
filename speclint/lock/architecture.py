"""The numbers of a model's config.json that decide whether a target and a draft fit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from speclint.lock.attention import attention_facts
from speclint.lock.errors import LockError
from speclint.lock.proposer import proposer_facts

STATED = (
    "vocab_size",
    "hidden_size",
    "intermediate_size",
    "num_hidden_layers",
    "num_attention_heads",
    "num_key_value_heads",
    "head_dim",
    "max_position_embeddings",
    "tie_word_embeddings",
    "draft_vocab_size",
    "n_predict",
    "block_size",
    "target_hidden_size",
)
"""Copied as they stand."""
OTHER_NAMES = {
    "hidden_size": ("n_embd", "d_model", "emb_dim"),
    "num_hidden_layers": ("n_layer", "num_layers"),
    "num_attention_heads": ("n_head",),
    "max_position_embeddings": ("n_positions", "max_seq_len", "seq_length"),
    "block_size": ("dspark_block_size",),
    "mtp_layers": ("num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_layers", "n_mtp"),
    "dtype": ("torch_dtype",),
}


def config_facts(folder: Path) -> dict[str, Any]:
    """The `config` part of a locked model (see `speclint.lock`). Raises LockError if the file is missing or broken."""
    whole = read_json(folder / "config.json")
    text = _language_model(whole)
    facts = {
        "model_type": whole.get("model_type"),
        "architectures": whole.get("architectures"),
        **{name: _stated(text, name) for name in STATED},
        "mtp_layers": _stated(text, "mtp_layers") or None,
        "dtype": _stated(text, "dtype") or _stated(whole, "dtype"),
        "speculators": "speculators_config" in whole or None,
        "remote_code": "auto_map" in whole or None,
    }
    known = {name: value for name, value in facts.items() if value is not None}
    proposer = proposer_facts(whole)
    return known | _derived(known) | attention_facts(text) | proposer | {"quantization": _quantization(whole, text)}


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object. Raises LockError if the file is missing or holds something else."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise LockError(f"{path} is missing", "`model` must be a folder in Hugging Face's format") from error
    except ValueError as error:
        raise LockError(f"{path} is not JSON: {error}", "restore the file as it was published") from error
    if not isinstance(value, dict):
        raise LockError(f"{path} does not hold a JSON object", "restore the file as it was published")
    return value


def _language_model(config: dict[str, Any]) -> dict[str, Any]:
    """Where the text numbers stand: at the top or, in multimodal and speculator configs, one level down."""
    inner = [config[key] for key in ("text_config", "llm_config", "transformer_layer_config") if key in config]
    return {**config, **inner[0]} if inner and isinstance(inner[0], dict) else config


def _stated(config: dict[str, Any], name: str) -> Any:
    found = (config.get(key) for key in (name, *OTHER_NAMES.get(name, ())))
    return next((value for value in found if value is not None), None)


def _derived(facts: dict[str, Any]) -> dict[str, int]:
    """What transformers computes where a config is silent."""
    heads, width = facts.get("num_attention_heads"), facts.get("hidden_size")
    if not isinstance(heads, int) or not isinstance(width, int) or heads < 1:
        return {}
    return {
        "num_key_value_heads": facts.get("num_key_value_heads", heads),
        "head_dim": facts.get("head_dim", width // heads),
    }


def _quantization(whole: dict[str, Any], text: dict[str, Any]) -> str | None:
    """Name of the method, as the config states it."""
    for config in (whole, text):
        stated = config.get("quantization_config") or config.get("compression_config")
        if isinstance(stated, dict):
            return str(stated.get("quant_method") or stated.get("quant_type") or stated.get("quant_algo") or "unnamed")
    return None
