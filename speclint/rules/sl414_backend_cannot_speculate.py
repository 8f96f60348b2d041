"""SL414 backend-cannot-speculate: on a CPU this release cannot run speculative decoding, or not with synthetic acceptance.

Up to 0.9.0 every method, and up to 0.9.2 a draft model, is run by the V0 engine, which can. 0.9.1 and 0.9.2 choose V1 for the
other methods on x86 and give it a worker of V0, so that the server does not start: a warning, as a spec does not name the
processor. 0.10.0 to 0.19.1 stop with an assertion; 0.20.0 to 0.20.2 start and fail at the first verification. Later releases
speculate on a CPU, and stop at the first verification with synthetic acceptance, which their CPU kernels refuse.

Source: vllm/engine/arg_utils.py and vllm/platforms/cpu.py, 0.9.1 and 0.9.2; vllm/v1/worker/cpu_model_runner.py, 0.10.0 to 0.19.1;
vllm/utils/cpu_triton_utils.py, 0.20.0 to 0.20.2 (PR 41932); the same file in 0.21.0, 0.26.0 and 0.32.0, run with 0.32.0.

Fails:

    engine: {name: vllm, version: "0.20.2"}
    placement: {device: cpu}

Passes:

    engine: {name: vllm, version: "0.21.0"}
    placement: {device: cpu}

Way out: 0.21.0 or later; on 0.9.1 and 0.9.2 `VLLM_USE_V1: "0"` under `pair.env`; a GPU for synthetic acceptance.
"""

from __future__ import annotations

from collections.abc import Iterator

from speclint.diagnostic import Finding
from speclint.releases import Release
from speclint.rules.sl417_synthetic_acceptance import invented
from speclint.spec import Spec

SEVERITY = "error"
NEEDS = "spec"


V1_METHODS = ("ngram", "medusa", "eagle", "eagle3", "deepseek_mtp")  # of 0.9.1 and 0.9.2
DEVICE = "/pair/placement/device"


def check(spec: Spec, release: Release | None) -> Iterator[Finding]:
    if release is None or spec.device != "cpu":
        return
    if release.in_range("0.9.1", "0.9.2"):
        yield from _half_v1(spec, release)
    if release.in_range("0.21.0", None):
        yield from _synthetic(spec, release)
    if not release.in_range("0.10.0", "0.20.2"):
        return
    late = release.in_range("0.20.0", None)
    how = "fails at its first verification" if late else "stops with an assertion"
    message = f"vLLM {release.version} on a CPU {how} with any speculative method"
    related = (("/pair/engine/version", "this release"),)
    yield Finding(DEVICE, message, "use 0.21.0 or later", "PR 41932; 0.10.0-0.20.2", related=related)


def _synthetic(spec: Spec, release: Release) -> Iterator[Finding]:
    path = invented(spec) or ""
    if path.startswith("/pair/speculative/"):  # not by dummy weights, with which a CPU speculates
        message = f"vLLM {release.version} on a CPU refuses synthetic acceptance: the engine dies at its first verification"
        source = "vllm/utils/cpu_triton_utils.py, seen with 0.32.0"
        yield Finding(path, message, "make the cost model on a GPU", source, related=((DEVICE, "the device"),))


def _half_v1(spec: Spec, release: Release) -> Iterator[Finding]:
    if spec.method in V1_METHODS and spec.section("pair", "env").get("VLLM_USE_V1") != "0":
        message = f"vLLM {release.version} on an x86 CPU runs `{spec.method}` in V1 with a worker of V0, and does not start"
        help = 'write `VLLM_USE_V1: "0"` under pair.env, or use 0.21.0 or later'
        related = (("/pair/engine/version", "this release"),)
        yield Finding(DEVICE, message, help, "vllm/platforms/cpu.py, 0.9.1-0.9.2", related=related, severity="warning")
