"""SL514 eager-only: without CUDA graphs a GPU's baseline is slow, and speculation looks better than it will be.

Reported: 1.5 times faster with eager execution in both arms, 0.62 times with graphs in both.

Source: zai-org/GLM-OCR#218; vllm-project/vllm#47277.

Fails:

    placement: {device: cuda}
    engine_args: {enforce_eager: true}

Passes:

    placement: {device: cuda}
    engine_args: {}

Way out: remove `enforce_eager`, unless the service runs eagerly too.
"""

from __future__ import annotations

from collections.abc import Iterator

from speclint.diagnostic import Finding
from speclint.releases import Release
from speclint.spec import Spec

SEVERITY = "warning"
NEEDS = "spec"


def check(spec: Spec, release: Release | None) -> Iterator[Finding]:
    if spec.device == "cuda" and spec.engine_args.get("enforce_eager") is True:
        message = "eager execution slows the target more than the pair; the ratio does not carry over to CUDA graphs"
        yield Finding("/pair/engine_args/enforce_eager", message, "remove it", "zai-org/GLM-OCR#218")
