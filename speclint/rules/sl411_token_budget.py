"""SL411 token-budget: drafting takes so many slots of `max_num_batched_tokens` that none, or few, are left to schedule.

A draft model takes one slot a request, parallel drafting K - 1 more. 0.17.0 to 0.27.1 take them off the budget for each of
`max_num_seqs` requests: at zero the start fails from 0.20.0 on, and nothing is scheduled before. From 0.28.0 on one request's
slots must fit. With LoRA every request's K + 1 tokens must fit at once.

Source: vllm/config/vllm.py, vllm/config/speculative.py, 0.17.0 on; vllm/engine/arg_utils.py, 0.11.1 on; vllm-project/vllm#50708.

Fails:

    engine: {name: vllm, version: "0.26.0"}
    speculative: {method: dflash, model: org/head, num_speculative_tokens: 16}
    engine_args: {max_num_batched_tokens: 2048, max_num_seqs: 256}

Passes:

    engine: {name: vllm, version: "0.26.0"}
    engine_args: {max_num_batched_tokens: 2048, max_num_seqs: 64}

Way out: raise `max_num_batched_tokens`, or lower `max_num_seqs` or the number of draft tokens.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from speclint.diagnostic import Finding, Severity
from speclint.releases import Release
from speclint.spec import Spec

SEVERITY = "error"
NEEDS = "spec"

BUDGET = "/pair/engine_args/max_num_batched_tokens"
SEQUENCES = "/pair/engine_args/max_num_seqs"
SOURCE = "vllm/config/vllm.py"
PARALLEL = ("dflash", "dspark")


def check(spec: Spec, release: Release | None) -> Iterator[Finding]:
    budget = spec.at("pair", "engine_args", "max_num_batched_tokens", kind=int)
    if release is None or budget is None or spec.k is None or spec.k < 1:
        return
    sequences = spec.at("pair", "engine_args", "max_num_seqs", kind=int)
    if sequences is not None and release.in_range("0.17.0", "0.27.1"):
        yield from _shared(spec, release, budget, sequences)
    elif release.in_range("0.28.0", None) and budget <= slots(spec):
        message = f"{budget} tokens a step leave no room beside the {slots(spec)} slots that a request drafts into"
        yield Finding(BUDGET, message, "raise it", f"{SOURCE}, 0.28.0 on", related=_related("num_speculative_tokens"))
    needed = (sequences or 0) * (spec.k + 1)
    if spec.engine_args.get("enable_lora") is True and budget < needed and release.in_range("0.11.1", None):
        message = f"with LoRA max_num_seqs x (K + 1) = {needed} tokens must fit into {budget}"
        related = ((SEQUENCES, "requests"), *_related("num_speculative_tokens"))
        yield Finding(BUDGET, message, f"raise it to {needed}", "vllm/engine/arg_utils.py, 0.11.1 on", related=related)


def slots(spec: Spec) -> int:
    """Slots that drafting takes of each request."""
    parallel = spec.method in PARALLEL or spec.speculative.get("parallel_drafting") is True
    return ((spec.k or 0) - 1 if parallel else 0) + (spec.method == "draft_model")


def _shared(spec: Spec, release: Release, budget: int, sequences: int) -> Iterator[Finding]:
    left = budget - slots(spec) * sequences
    if left * 4 >= budget:
        return
    sum_ = f"{budget} - {slots(spec)} x {sequences} = {left}"
    if left > 0:
        message, severity = f"drafting leaves {sum_} tokens a step: prompts are cut into small pieces", "warning"
    elif release.in_range("0.20.0", None):
        message, severity = f"drafting leaves {sum_} tokens a step: vLLM {release.version} does not start", "error"
    else:
        message, severity = f"drafting leaves {sum_} tokens a step: vLLM {release.version} schedules nothing", "error"
    related = ((SEQUENCES, "times this"), *_related("num_speculative_tokens"))
    yield Finding(
        BUDGET, message, "raise it, or lower max_num_seqs", f"{SOURCE}, 0.17.0-0.27.1", False, related, cast(Severity, severity)
    )


def _related(setting: str) -> tuple[tuple[str, str], ...]:
    return ((f"/pair/speculative/{setting}", "draft tokens"),)
