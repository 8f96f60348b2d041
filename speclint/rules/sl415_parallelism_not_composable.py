"""SL415 parallelism-not-composable: speculation together with a parallelism that it does not work with.

Over pipeline stages some methods are refused at the start, some fail an interface check, and a hand-made way around it gave
corrupted text without an error; no release is known to be right. Prefill context parallelism is refused, later for all but DSpark
and one-layer MTP.

Source: vllm/config/vllm.py, vllm/v1/worker/gpu/, 0.11.1 on; vllm-project/vllm#14117, #49355, #52069, #57755.

Fails:

    placement: {device: cuda, pipeline_parallel_size: 4}

Passes:

    placement: {device: cuda, tensor_parallel_size: 4}

Way out: split the target over tensor-parallel ranks.
"""

from __future__ import annotations

from collections.abc import Iterator

from speclint.arms import Effect
from speclint.diagnostic import Finding
from speclint.releases import Release
from speclint.spec import Spec

SEVERITY = "error"
NEEDS = "spec"

REFUSED = (
    Effect(frozenset(("eagle3",)), "0.17.0", "0.29.0"),
    Effect(frozenset(("dflash",)), "0.24.0", "0.29.0"),
    Effect(frozenset(("dspark",)), "0.25.0", "0.29.0"),
)
CONTEXT = "prefill_context_parallel_size"


def check(spec: Spec, release: Release | None) -> Iterator[Finding]:
    if spec.method is None:
        return
    stages = spec.at("pair", "placement", "pipeline_parallel_size", kind=int) or 1
    related = (("/pair/speculative/method", "the method"),)
    if stages > 1:
        message = f"`{spec.method}` over {stages} pipeline stages {_effect(spec.method, release)}"
        help = "use tensor_parallel_size instead"
        yield Finding("/pair/placement/pipeline_parallel_size", message, help, related=related)
    ranks = spec.at("pair", "engine_args", CONTEXT, kind=int) or 1
    if ranks > 1 and release and release.in_range("0.26.0", None) and spec.method not in ("dspark", "mtp"):
        message = f"vLLM {release.version} refuses `{spec.method}` with prefill context parallelism"
        yield Finding(
            f"/pair/engine_args/{CONTEXT}", message, "take it away", "vllm/v1/worker/gpu/pcp_manager.py", related=related
        )


def _effect(method: str, release: Release | None) -> str:
    refused = [row for row in REFUSED if release and method in row.methods and release.in_range(row.first, row.last)]
    if refused and release:
        return f"is refused by vLLM {release.version} (Model Runner V2)"
    if release and release.in_range("0.11.1", "0.14.1"):
        return f"is not supported by vLLM {release.version}, and asynchronous scheduling is refused with it"
    return "is not known to work in any release"
