"""SL414 backend-cannot-speculate: on a CPU this release cannot run speculative decoding.

0.10.0 to 0.19.1 stop with an assertion; 0.20.0 to 0.20.2 start and fail at the first verification.

Source: vllm/v1/worker/cpu_model_runner.py, 0.10.0 to 0.19.1; vllm/utils/cpu_triton_utils.py, 0.20.0 to 0.20.2 (PR 41932).

Fails:

    engine: {name: vllm, version: "0.20.2"}
    placement: {device: cpu}

Passes:

    engine: {name: vllm, version: "0.21.0"}
    placement: {device: cpu}

Way out: 0.21.0 or later.
"""

from __future__ import annotations

from collections.abc import Iterator

from speclint.diagnostic import Finding
from speclint.releases import Release
from speclint.spec import Spec

SEVERITY = "error"
NEEDS = "spec"


def check(spec: Spec, release: Release | None) -> Iterator[Finding]:
    if release is None or spec.device != "cpu" or not release.in_range("0.10.0", "0.20.2"):
        return
    late = release.in_range("0.20.0", None)
    how = "fails at its first verification" if late else "stops with an assertion"
    message = f"vLLM {release.version} on a CPU {how} with any speculative method"
    related = (("/pair/engine/version", "this release"),)
    yield Finding("/pair/placement/device", message, "use 0.21.0 or later", "PR 41932; 0.10.0-0.20.2", related=related)
