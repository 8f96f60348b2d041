"""SL406 draft-tensor-parallel: a draft tensor-parallel size that this release cannot run.

The config takes 1 or the target's size. On the V1 runner an ordinary draft model must have the target's size, so 1 beside a
larger target passes the config and fails later.

Source: vllm/config/speculative.py, 0.8.2 on; vllm/v1/spec_decode/draft_model.py, 0.15.0 on.

Fails:

    placement: {device: cuda, tensor_parallel_size: 4}
    speculative: {method: draft_model, draft_tensor_parallel_size: 2}

Passes:

    placement: {device: cuda, tensor_parallel_size: 4}
    speculative: {method: draft_model}

Way out: leave it out; the draft then takes the target's size.
"""

from __future__ import annotations

from collections.abc import Iterator

from speclint.arms import runs_on_v2
from speclint.diagnostic import Finding
from speclint.releases import Release
from speclint.spec import Spec

SEVERITY = "error"
NEEDS = "spec"

PATH = "/pair/speculative/draft_tensor_parallel_size"


def check(spec: Spec, release: Release | None) -> Iterator[Finding]:
    draft = spec.at("pair", "speculative", "draft_tensor_parallel_size", kind=int)
    target = spec.at("pair", "placement", "tensor_parallel_size", kind=int) or 1
    if draft is None or draft < 1 or draft == target:
        return
    related = (("/pair/placement/tensor_parallel_size", "the target's size"),)
    if draft != 1:
        message = f"draft_tensor_parallel_size {draft} is neither 1 nor the target's {target}"
        yield Finding(PATH, message, "leave it out", "vllm/config/speculative.py, 0.8.2 on", related=related)
    elif release is not None and _needs_equal(spec, release):
        message = f"vLLM {release.version} runs a draft model on the target's {target} ranks only, not on {draft}"
        source = "vllm/v1/spec_decode/draft_model.py, 0.15.0 on (V1 runner)"
        yield Finding(PATH, message, "leave it out", source, related=related)


def _needs_equal(spec: Spec, release: Release) -> bool:
    return spec.method == "draft_model" and release.in_range("0.15.0", None) and not runs_on_v2(spec, release)
