"""What a config says about its KV cache: how many layers keep keys and values, and for how long."""

from __future__ import annotations

from collections import Counter
from typing import Any

# Layouts that mix attention with other layers and spell the mix in ways of their own.
OWN_LAYOUTS = ("hybrid_override_pattern", "layers_block_type", "attn_layer_period", "attn_type_list", "full_attn_idxs")
KINDS = {"full_attention": "full", "sliding_attention": "sliding"}


def attention_facts(config: dict[str, Any]) -> dict[str, Any]:
    """`attention`: layers by kind (full, sliding, other) and the window; of MLA the numbers that its cache has per token.

    Empty where the config lays its layers out in a way that is not known here.
    """
    layers = config.get("num_hidden_layers", config.get("n_layer"))
    if not isinstance(layers, int) or any(config.get(key) for key in OWN_LAYOUTS):
        return {}
    shared = config.get("num_kv_shared_layers") or 0  # the last layers read the cache of earlier ones
    kinds = Counter(_kinds(config, layers)[: layers - shared])
    facts: dict[str, Any] = {kind: kinds[kind] for kind in ("full", "sliding", "other") if kinds[kind]}
    if kinds["sliding"]:
        facts["window"] = config["sliding_window"]
    if config.get("kv_lora_rank"):
        facts["mla_width"] = config["kv_lora_rank"] + config.get("qk_rope_head_dim", 0)
    return {"attention": facts}


def _kinds(config: dict[str, Any], layers: int) -> list[str]:
    """Kind of each layer; without `layer_types`, by the older keys that say which layers slide."""
    types = config.get("layer_types")
    window = config.get("sliding_window") if config.get("use_sliding_window", True) else None
    if isinstance(types, list) and len(types) >= layers:
        kinds = [KINDS.get(str(kind), "other") for kind in types[:layers]]
        return kinds if window else ["full" if kind == "sliding" else kind for kind in kinds]
    if not isinstance(window, int):
        return ["full"] * layers
    every = config.get("sliding_window_pattern")
    if isinstance(every, int) and every > 0:
        return ["full" if (layer + 1) % every == 0 else "sliding" for layer in range(layers)]
    first = config.get("max_window_layers", 0)
    return ["full" if layer < first else "sliding" for layer in range(layers)]
