"""What a draft's config says of how it proposes: for whom it was made, what it reads of the target, how far it goes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

# In the order in which the engine looks for them (vllm/v1/spec_decode/llm_base_proposer.py).
MASK_TOKENS = ("mask_token_id", "dspark_noise_token_id", "pard_token", "ptd_token_id")
FRONT_MATTER = re.compile(r"\A---\s*\n(.*?)\n---\s*$", re.DOTALL | re.MULTILINE)
BASE_MODEL = re.compile(r"^base_model:[ \t]*(?:\n[ \t]*-[ \t]*)?[\"']?([\w./-]+)", re.MULTILINE)


def proposer_facts(config: dict[str, Any]) -> dict[str, Any]:
    """Facts of `speclint.lock` that only drafts and self-speculating checkpoints state; `config` is the whole file."""
    speculators = config.get("speculators_config")
    stated = speculators if isinstance(speculators, dict) else {}
    facts = {
        "proposes": config.get("speculators_model_type"),
        "proposed_tokens": _proposed_tokens(stated),
        "base_model": _base_model(config, stated),
        "target_layers": _target_layers(config),
        "mask_token": next(_mask_tokens(config), None),
        "heads": config.get("medusa_num_heads", config.get("num_heads") if _is_medusa(config) else None),
        "from_anchor": _dflash(config).get("sample_from_anchor", config.get("sample_from_anchor")),
    }
    return {name: value for name, value in facts.items() if value is not None}


def card_base_model(folder: Path) -> str | None:
    """`base_model` of the model card's front matter; the first, if it lists several."""
    card = folder / "README.md"
    front = FRONT_MATTER.match(card.read_text(encoding="utf-8", errors="replace")) if card.is_file() else None
    found = BASE_MODEL.search(front[1]) if front else None
    return found[1] if found else None


def _base_model(config: dict[str, Any], speculators: dict[str, Any]) -> str | None:
    verifier = speculators.get("verifier")
    named = verifier.get("name_or_path") if isinstance(verifier, dict) else None
    return named or config.get("base_model_name_or_path")


def _proposed_tokens(speculators: dict[str, Any]) -> int | None:
    methods = speculators.get("proposal_methods")
    first = methods[0] if isinstance(methods, list) and methods and isinstance(methods[0], dict) else {}
    return first.get("speculative_tokens")


def _target_layers(config: dict[str, Any]) -> list[int] | None:
    """Layers of the target whose outputs the head reads, counted as the engine counts: n is what layer n gets, 0 the embedding.

    DFlash and DSpark count the layer that writes, one less.
    """
    aux = config.get("eagle_aux_hidden_state_layer_ids") or _eagle(config).get("eagle_aux_hidden_state_layer_ids")
    aux = aux or config.get("aux_hidden_state_layer_ids")
    if _layer_list(aux):
        return _layer_list(aux)
    writers = _dflash(config).get("target_layer_ids") or config.get("target_layer_ids") or config.get("dspark_target_layer_ids")
    return [layer + 1 for layer in _layer_list(writers)] or None


def _layer_list(value: Any) -> list[int]:
    return value if isinstance(value, list) and all(type(layer) is int for layer in value) else []


def _mask_tokens(config: dict[str, Any]) -> Iterator[int]:
    for stated in (_dflash(config).get("mask_token_id"), *(config.get(name) for name in MASK_TOKENS)):
        if isinstance(stated, int):
            yield stated


def _dflash(config: dict[str, Any]) -> dict[str, Any]:
    part = config.get("dflash_config")
    return part if isinstance(part, dict) else {}


def _eagle(config: dict[str, Any]) -> dict[str, Any]:
    part = config.get("eagle_config")
    return part if isinstance(part, dict) else {}


def _is_medusa(config: dict[str, Any]) -> bool:
    return config.get("model_type") == "medusa" or "MedusaModel" in (config.get("architectures") or [])
