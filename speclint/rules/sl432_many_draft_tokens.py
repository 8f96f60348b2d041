"""SL432 many-draft-tokens: more draft tokens a step than answers have room for, or so many that drafting outweighs the target.

A draft model reads its weights once for each draft token, one after the other. Alone, where reading weights is what a step costs,
K drafts of a model of a tenth of the size cost K tenths of a step of the target, and the pair is faster only above 1 + K / 10
tokens a step. Where that is twice a step or more, this note says the figure; it says none where the bytes of the files are not
those that a step reads: of a mixture of experts, whose steps read a few of them, and of weights that are quantized as they load.
Drafts beyond the end of an answer are never delivered, whatever the method.

Source: the step times of a result (break-even length, DX05); vllm-project/vllm#47277.

Fails:

    speculative: {method: draft_model, num_speculative_tokens: 40}
    lock: {target: {weights: {bytes: 16381470720}}, draft: {weights: {bytes: 1192099840}}}

Passes:

    speculative: {method: draft_model, num_speculative_tokens: 5}
    lock: {target: {weights: {bytes: 16381470720}}, draft: {weights: {bytes: 1192099840}}}

Way out: a smaller number; `specrun predict` gives the tokens a step of every K before a pair is started.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from speclint.diagnostic import Finding, pointer
from speclint.releases import Release
from speclint.spec import Spec

SEVERITY = "info"
NEEDS = "spec"

PATH = "/pair/speculative/num_speculative_tokens"
EXPERTS = re.compile(r"moe|mixtral|deepseek_?v[2-9]|gpt_?oss|llama_?4|dbrx|grok", re.IGNORECASE)
"""Model types and architectures of mixtures of experts: most say so, these others are well known."""


def check(spec: Spec, release: Release | None) -> Iterator[Finding]:
    if spec.k is None or spec.k < 1:
        return
    yield from _cost(spec, spec.k)
    yield from _room(spec, spec.k)


def _cost(spec: Spec, k: int) -> Iterator[Finding]:
    """What K passes of a draft model read, beside the one of the target that verifies them."""
    target, draft = spec.both("weights", "bytes", kind=int)
    if spec.method != "draft_model" or not target or not draft or spec.speculative.get("parallel_drafting") is True:
        return
    if _read_in_part(spec):
        return
    if k * draft < target or draft * 2 >= target:  # half the size or more is SL428
        return
    read = k * draft / target
    message = (
        f"{k} draft steps read {read:.1f} times the target's weights: alone, the pair needs about {1 + read:.1f} tokens a step"
    )
    help = f"a step gives {k + 1} at most; `specrun predict` says what each K gives, and a smaller one needs less"
    related = (("/lock/target/weights/bytes", "the target"), ("/lock/draft/weights/bytes", "the draft"))
    yield Finding(PATH, message, help, related=related)


def _read_in_part(spec: Spec) -> bool:
    """Whether a step of either model reads fewer bytes than its files have."""
    if spec.section("pair", "target").get("quantization") or spec.speculative.get("quantization"):
        return True
    architectures = [name for listed in spec.both("config", "architectures", kind=list) for name in listed or ()]
    return any(EXPERTS.search(str(name)) for name in (*spec.both("config", "model_type", kind=str), *architectures))


def _room(spec: Spec, k: int) -> Iterator[Finding]:
    """A step cannot deliver more than an answer still lacks."""
    for index, row in spec.rows("protocol", "workloads"):
        output = ("protocol", "workloads", index, "output")
        tokens, spread = spec.at(*output, "tokens", kind=int), spec.at(*output, "spread", kind=float) or 0.0
        if tokens is not None and k >= tokens * (1 + spread):
            message = (
                f"{k} draft tokens a step, and an answer of workload `{row.get('id')}` has {tokens * (1 + spread):.0f} at most"
            )
            related = ((pointer(*output, "tokens"), "its answers"),)
            yield Finding(PATH, message, "fewer draft tokens, or longer answers", related=related, severity="warning")
