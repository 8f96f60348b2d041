"""SL433 draft-missing: a method that drafts with a model of its own, and no `model` to draft with.

vLLM refuses such settings when it starts. An MTP layer is part of the target, a DSpark draft may be, and n-gram and suffix
decoding look drafts up in the text; every other method needs a checkpoint (`custom_class`: the path of its class).

Source: vllm/config/speculative.py, 0.8.2 to 0.33.0 (ValueError).

Fails:

    speculative: {method: draft_model, num_speculative_tokens: 3}

Passes:

    speculative: {method: draft_model, model: Qwen/Qwen3-0.6B,
                  revision: c1899de289a04d12100db370d81485cdf75e47ca, num_speculative_tokens: 3}

Way out: add `model` and `revision`; or method `ngram`, which needs none.
"""

from __future__ import annotations

from collections.abc import Iterator

from speclint.diagnostic import Finding
from speclint.releases import Release
from speclint.spec import Spec

SEVERITY = "error"
NEEDS = "spec"

NEEDS_MODEL = frozenset(("draft_model", "eagle", "eagle3", "medusa", "mlp_speculator", "dflash", "custom_class"))


def check(spec: Spec, release: Release | None) -> Iterator[Finding]:
    if spec.method in NEEDS_MODEL and "model" not in spec.speculative:
        message = f"method `{spec.method}` drafts with a model, and none is named: vLLM does not start"
        yield Finding("/pair/speculative/method", message, "add `model` and its `revision`, or use a method that needs none")
