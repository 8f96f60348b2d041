"""SL308 overlap-low: in heterogeneous mode the two vocabularies share too few token strings.

Only shared tokens can be drafted. Its implementers report acceptance of about 80 % at full overlap, 61 % at 99.8 %, 25 % at
80 %. Below 90 % of the target's tokens this is a warning, below 50 % or 100 tokens an error (limits ours; vLLM itself only
logs a warning under 100).

Source: vllm-project/vllm#38174, #45020; vllm/v1/spec_decode/vocab_mapping.py, 0.25.0 on.

Fails:

    lock: {pair: {overlap_target: 0.42, intersection: 63000}}

Passes:

    lock: {pair: {overlap_target: 0.998, intersection: 151000}}

Way out: a draft of the same family.
"""

from __future__ import annotations

from collections.abc import Iterator

from speclint.diagnostic import Finding
from speclint.methods import heterogeneous
from speclint.releases import Release
from speclint.spec import Spec

SEVERITY = "warning"
NEEDS = "lock"


def check(spec: Spec, release: Release | None) -> Iterator[Finding]:
    overlap = spec.at("lock", "pair", "overlap_target", kind=float)
    shared = spec.at("lock", "pair", "intersection", kind=int)
    if overlap is None or not heterogeneous(spec) or spec.method != "draft_model":
        return
    few = shared is not None and shared < 100
    if overlap >= 0.9 and not few:
        return
    counted = f" ({shared} tokens)" if shared is not None else ""
    message = f"the draft can propose {overlap:.1%} of the target's tokens{counted}"
    help = "use a draft of the target's family: only shared tokens can be accepted"
    path = "/lock/pair/intersection" if few else "/lock/pair/overlap_target"
    source = "vllm-project/vllm#38174; limits 90 %, 50 % and 100 tokens are ours"
    yield Finding(path, message, help, source, severity="error" if few or overlap < 0.5 else None)
