"""SL409 draft-context-short: the draft's context is shorter than the one that the target is served with.

Past the draft's length the V1 runner goes on counting drafts that are only placeholders: drafts and draft tokens look
right and nothing is accepted. On a GPU 0.33.0 lowers the whole server's `max_model_len` instead; 0.31.0 and 0.32.0 run
positions past the draft's length. A `max_model_len` of the draft above that of the server is refused.

Source: vllm/config/speculative.py, 0.8.2 on; vllm/v1/worker/gpu_model_runner.py, 0.11.0 on (run on 0.32.0);
vllm/config/vllm.py, 0.33.0; vllm-project/vllm#48894.

Fails:

    engine_args: {max_model_len: 8192}
    speculative: {method: draft_model, max_model_len: 2048}

Passes:

    engine_args: {max_model_len: 2048}
    speculative: {method: draft_model}

Way out: lower `engine_args.max_model_len` to the draft's length, or use a draft with a longer one.
"""

from __future__ import annotations

from collections.abc import Iterator

from speclint.arms import runs_on_v2
from speclint.diagnostic import Finding
from speclint.methods import LOOKUP
from speclint.releases import Release
from speclint.spec import Spec

SEVERITY = "error"
NEEDS = "spec"

LIMIT = "/pair/speculative/max_model_len"
SERVED = "/pair/engine_args/max_model_len"
REFUSED = "vllm/config/speculative.py, 0.8.2-0.33.0 (ValueError)"
DRAFT = "/lock/draft/config/max_position_embeddings"


def check(spec: Spec, release: Release | None) -> Iterator[Finding]:
    if spec.method is None or spec.method in LOOKUP:
        return
    limit = spec.at("pair", "speculative", "max_model_len", kind=int)
    served = spec.at("pair", "engine_args", "max_model_len", kind=int) or 0
    if limit is not None and limit > served > 0:
        message = f"the draft is to see {limit} tokens and the target is served with {served}: vLLM does not start"
        related = ((SERVED, "the target's context"),)
        yield Finding(LIMIT, message, f"write {served} or less, or leave it out", REFUSED, related=related)
        return
    own = spec.at("lock", "draft", "config", "max_position_embeddings", kind=int)
    draft = min((length, path) for length, path in ((limit, LIMIT), (own, DRAFT)) if length is not None) if limit or own else None
    if draft is None or spec.context is None or draft[0] >= spec.context[1]:
        return
    path, length = spec.context
    message = f"the draft sees {draft[0]} tokens, the target is served with {length}: {_effect(spec, release)}"
    related = ((path, "the target's context"),)
    help = f"set engine_args.max_model_len to {draft[0]}, or use a draft with a longer context"
    yield Finding(draft[1], message, help, "vllm/v1/worker/gpu_model_runner.py, 0.11.0 on", related=related)


def _effect(spec: Spec, release: Release | None) -> str:
    if release is not None and runs_on_v2(spec, release):
        if release.in_range("0.33.0", None):
            return f"vLLM {release.version} lowers the server's max_model_len"
        return f"vLLM {release.version} drafts at positions that the draft was not made for"
    return "past it drafts are placeholders that are counted and never accepted"
