"""SL306 heterogeneous-with-local-argmax: the local-argmax shortcut bypasses the vocabulary map.

The shortcut returns draft ids before they are masked and mapped. 0.25.0 to 0.32.0 do so without a word; 0.33.0 refuses.

Source: vllm-project/vllm#51561; vllm/v1/spec_decode/llm_base_proposer.py, 0.25.0 to 0.32.0.

Fails:

    speculative: {method: draft_model, use_heterogeneous_vocab: true, use_local_argmax_reduction: true}

Passes:

    speculative: {method: draft_model, use_heterogeneous_vocab: true}

Way out: remove `use_local_argmax_reduction`.
"""

from __future__ import annotations

from collections.abc import Iterator

from speclint.diagnostic import Finding
from speclint.methods import heterogeneous
from speclint.releases import Release
from speclint.spec import Spec

SEVERITY = "error"
NEEDS = "spec"


def check(spec: Spec, release: Release | None) -> Iterator[Finding]:
    if spec.speculative.get("use_local_argmax_reduction") is not True or not heterogeneous(spec):
        return
    silent = release is not None and release.in_range("0.25.0", "0.32.0")
    message = "use_local_argmax_reduction returns draft ids before they are mapped to the target's vocabulary"
    message += f"; vLLM {release.version} says nothing" if silent and release else ""
    related = (("/pair/vocabulary/mode", "the vocabulary is set here"),)
    source = "vllm-project/vllm#51561; silent in 0.25.0-0.32.0, refused from 0.33.0"
    yield Finding("/pair/speculative/use_local_argmax_reduction", message, "remove it", source, related=related)
