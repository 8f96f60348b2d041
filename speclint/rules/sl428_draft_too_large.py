"""SL428 draft-too-large: the draft's weights are half of the target's, or more, so that drafting costs about what it saves.

K draft steps precede each verification. A draft of half the size spends K / 2 target steps on them, and at most K + 1 tokens
come of it; it also takes the memory of the KV cache. The same model in 4 bit is such a draft.

Source: vllm-project/vllm#47277, #27726; sgl-project/sglang#6949.

Fails:

    lock: {target: {weights: {bytes: 16381470720}}, draft: {weights: {bytes: 8811204608}}}

Passes:

    lock: {target: {weights: {bytes: 16381470720}}, draft: {weights: {bytes: 1192099840}}}

Way out: a draft of a tenth of the size or less, or a method without a draft model.
"""

from __future__ import annotations

from collections.abc import Iterator

from speclint.diagnostic import Finding
from speclint.releases import Release
from speclint.spec import Spec

SEVERITY = "warning"
NEEDS = "lock"

TARGET, DRAFT = "/lock/target/weights/bytes", "/lock/draft/weights/bytes"


def check(spec: Spec, release: Release | None) -> Iterator[Finding]:
    target, draft = spec.both("weights", "bytes", kind=int)
    if spec.method == "draft_model" and target and draft and draft * 2 >= target:
        message = f"the draft's weights are {draft / target:.0%} of the target's: even good drafts hardly pay"
        help = "take a draft of a tenth of the size or less"
        yield Finding(DRAFT, message, help, related=((TARGET, "the target"),))
