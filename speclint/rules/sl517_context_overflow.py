"""SL517 context-overflow: an answer alone does not fit into the context that the model is served with.

Such requests are refused or cut. Prompts come on top; how long they are is known to the tokenizer only, so this rule counts
one token for them and never more.

Fails:

    engine_args: {max_model_len: 256}
    output: {tokens: 256, spread: 0.5, stop: length}

Passes:

    engine_args: {max_model_len: 1024}
    output: {tokens: 256, spread: 0.5, stop: length}

Way out: raise `max_model_len`, or ask for shorter answers.
"""

from __future__ import annotations

from collections.abc import Iterator

from speclint.diagnostic import Finding, pointer
from speclint.releases import Release
from speclint.spec import Spec

SEVERITY = "error"
NEEDS = "spec"


def check(spec: Spec, release: Release | None) -> Iterator[Finding]:
    if spec.context is None:
        return
    path, context = spec.context
    for index, _ in spec.rows("protocol", "workloads"):
        output = ("protocol", "workloads", index, "output")
        tokens, spread = spec.at(*output, "tokens", kind=int), spec.at(*output, "spread", kind=float) or 0.0
        if tokens is None or tokens * (1 + spread) < context:
            continue
        message = f"answers of up to {tokens * (1 + spread):.0f} tokens do not fit into a context of {context}"
        related = ((path, "context"),)
        yield Finding(pointer(*output, "tokens"), message, "raise max_model_len, or ask for less", related=related)
