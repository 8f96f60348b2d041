"""SL305 heterogeneous-needs-greedy-draft: a draft of another vocabulary must be sampled greedily.

Probabilistic draft sampling needs the draft's probabilities over the target's ids, and the id map carries none. This rejects
the combination, not draft models: drop one of the two settings.

Source: vllm/config/speculative.py, 0.25.0 to 0.33.0 (ValueError).

Fails:

    speculative: {method: draft_model, use_heterogeneous_vocab: true, draft_sample_method: probabilistic}

Passes:

    speculative: {method: draft_model, use_heterogeneous_vocab: true, draft_sample_method: greedy}

Way out: remove `draft_sample_method` (greedy is the default), or use a draft that shares the vocabulary.
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
    sampled = spec.at("pair", "speculative", "draft_sample_method", kind=str)
    if sampled in (None, "greedy") or not heterogeneous(spec):
        return
    message = f"draft_sample_method `{sampled}` cannot be combined with a heterogeneous vocabulary"
    help = "this rejects the combination, not draft models: remove draft_sample_method, or use mode shared"
    related = (("/pair/vocabulary/mode", "the vocabulary is set here"),)
    source = "vllm/config/speculative.py, 0.25.0-0.33.0"
    yield Finding("/pair/speculative/draft_sample_method", message, help, source, related=related)
