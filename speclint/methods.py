"""Facts about speculative methods that several rules need."""

from __future__ import annotations

from speclint.spec import Spec

LOOKUP = frozenset(("ngram", "ngram_gpu", "suffix"))
"""Methods that draft by looking text up: no draft model, no weights, no draft vocabulary."""
HEADS = frozenset(("eagle", "eagle3", "mtp", "medusa", "mlp_speculator", "dflash", "dspark"))
"""Methods whose draft is trained for one target and shares its vocabulary."""


def heterogeneous(spec: Spec) -> bool:
    """Whether the draft is meant to have another vocabulary, by the mode or by the setting."""
    return spec.vocabulary_mode == "heterogeneous" or spec.speculative.get("use_heterogeneous_vocab") is True


def draft_model(spec: Spec) -> str | None:
    """The draft's model reference; None for methods that have none. The `model` of custom_class is the path of a Python class."""
    return None if spec.method in LOOKUP or spec.method == "custom_class" else spec.at("pair", "speculative", "model", kind=str)
