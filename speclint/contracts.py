"""What each speculative method needs of target and draft, as data; the rules judge a lock's facts by it.

Read from vllm/config/speculative.py, vllm/v1/spec_decode/ and vllm/model_executor/models/ of 0.32.0. In which releases a method
exists at all is in the releases' own files.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from speclint.spec import Spec


class Contract(NamedTuple):
    """One method. `reads`: what of the target the draft is fed; `layers`: of how many layers, where its config does not say."""

    reads: Literal["tokens", "last layer", "several layers"]
    layers: int | None = None
    same_width: bool = False
    """The draft's `hidden_size` is the target's: it works on the target's hidden states themselves."""
    mask_token: bool = False
    """Drafts all positions at once and needs an id that stands for a position not drafted yet."""
    keeps_kv: bool = True
    """The draft has a KV cache of its own beside the target's."""


CONTRACTS = {
    "draft_model": Contract("tokens"),
    "eagle": Contract("last layer", layers=1),
    "eagle3": Contract("several layers", layers=3),
    "mtp": Contract("last layer", layers=1),
    "medusa": Contract("last layer", same_width=True, keeps_kv=False),
    "mlp_speculator": Contract("last layer", same_width=True, keeps_kv=False),
    "dflash": Contract("several layers", mask_token=True),
    "dspark": Contract("several layers", mask_token=True),
    "ngram": Contract("tokens", keeps_kv=False),
    "ngram_gpu": Contract("tokens", keeps_kv=False),
    "suffix": Contract("tokens", keeps_kv=False),
}
# What a head's architecture, model type or `speculators_model_type` is called, and the method that runs it; first match counts.
NAMES = (
    ("peagle", "eagle3"),
    ("eagle3", "eagle3"),
    ("dflash", "dflash"),
    ("dspark", "dspark"),
    ("medusa", "medusa"),
    ("mlp_speculator", "mlp_speculator"),
    ("mlpspeculator", "mlp_speculator"),
)


def declared_method(spec: Spec) -> str | None:
    """The method that the draft's own files say it was made for; None where they do not."""
    config = spec.section("lock", "draft", "config")
    names = [config.get("proposes"), *spec.listing("lock", "draft", "config", "architectures"), config.get("model_type")]
    words = [str(name).lower() for name in names if name]
    return next((method for name in words for mark, method in NAMES if mark in name), None)


def trained_tokens(spec: Spec) -> int | None:
    """How many tokens a step the draft was made to propose, by its heads or its block; None where that is no limit."""
    config = spec.section("lock", "draft", "config")
    heads, block = config.get("heads"), config.get("block_size")
    if spec.method == "medusa":
        return heads if isinstance(heads, int) else None
    if spec.method not in ("dflash", "dspark") or not isinstance(block, int):
        return None
    # The block's first position holds the last accepted token, unless the draft predicts from there too. Dense DSpark
    # checkpoints (not in the speculators format) predict at every position.
    dense = spec.method == "dspark" and "proposes" not in config
    return block if dense or config.get("from_anchor") is True else block - 1
