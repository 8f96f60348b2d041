"""SL310 fallback-token: a tokenizer without an unknown token: in heterogeneous mode EOS stands in, or the engine refuses.

Tokens that only one side has are replaced before the other side sees them. With EOS as replacement the draft reads ends of
text inside the prompt, which costs acceptance. With neither token the engine does not start.

Source: vllm/v1/spec_decode/vocab_mapping.py, 0.25.0 to 0.33.0.

Fails:

    lock: {pair: {fallback: {draft: {kind: none}}}}

Passes:

    lock: {pair: {fallback: {target: {kind: unk}, draft: {kind: unk}}}}

Way out: nothing to do for EOS but to know it; with none, another tokenizer.
"""

from __future__ import annotations

from collections.abc import Iterator

from speclint.diagnostic import Finding, pointer
from speclint.methods import heterogeneous
from speclint.releases import Release
from speclint.spec import Spec

SEVERITY = "info"
NEEDS = "lock"

SOURCE = "vllm/v1/spec_decode/vocab_mapping.py, 0.25.0-0.33.0"


def check(spec: Spec, release: Release | None) -> Iterator[Finding]:
    if not heterogeneous(spec):
        return
    for side in ("target", "draft"):
        kind = spec.at("lock", "pair", "fallback", side, "kind", kind=str)
        path = pointer("lock", "pair", "fallback", side)
        if kind == "none":
            message = f"the {side}'s tokenizer has neither an unknown token nor EOS; vLLM refuses to start"
            yield Finding(path, message, "use a tokenizer with one of them", SOURCE, severity="error")
        elif kind == "eos":
            message = f"the {side} has no unknown token; EOS stands in for every token that it lacks"
            yield Finding(path, message, "expect lower acceptance where texts hold such tokens", SOURCE)
