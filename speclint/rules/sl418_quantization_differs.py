"""SL418 quantization-differs: a draft that shares the target's config is stored in another format, or stays unquantized.

Heads and MTP layers are loaded by the target's quantization config. In another format some stop with a shape error; others
load and next to nothing they draft is accepted. A target that is quantized while it loads leaves a draft model as it is.

Source: vllm-project/vllm#49133, #40849, #41745; sgl-project/sglang#28196.

Fails:

    speculative: {method: dspark}
    lock: {target: {config: {quantization: nvfp4}}, draft: {config: {quantization: mxfp4}}}

Passes:

    speculative: {method: dspark}
    lock: {target: {config: {quantization: nvfp4}}, draft: {config: {quantization: nvfp4}}}

Way out: a head in the target's format, or measure first with the unquantized target.
"""

from __future__ import annotations

from collections.abc import Iterator

from speclint.diagnostic import Finding
from speclint.methods import HEADS
from speclint.releases import Release
from speclint.spec import Spec

SEVERITY = "warning"
NEEDS = "lock"

TARGET = "/lock/target/config/quantization"
DRAFT = "/lock/draft/config/quantization"


def check(spec: Spec, release: Release | None) -> Iterator[Finding]:
    target, draft = spec.both("config", "quantization", kind=str)
    online = spec.at("pair", "target", "quantization", kind=str)
    if spec.method in HEADS and draft and draft != target:
        message = f"the draft is stored in `{draft}`, the target in `{target or 'no quantized format'}`"
        help = "take a head in the target's format; acceptance near zero would be this"
        yield Finding(DRAFT, message, help, related=((TARGET, "the target"),))
    elif online and not target and "draft" in spec.lock and not draft and "quantization" not in spec.speculative:
        message = f"`{online}` quantizes the target while it loads; the draft keeps its full weights"
        help = "say `quantization` under pair.speculative too, or count the draft's memory at full size"
        related = (("/pair/speculative/model", "the draft"),)
        yield Finding("/pair/target/quantization", message, help, related=related, severity="info")
