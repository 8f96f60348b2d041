"""SL404 method-not-in-release: this release has no such method, or lists it and fails when it is used.

Draft models ran in the V0 engine only until 0.9.2 and were refused from 0.10.0 to 0.14.1; `mlp_speculator` was listed up to
0.32.0 but had no code since 0.10.0; `suffix` came with 0.11.1, `dflash` with 0.20.0, `dspark` with 0.25.0; `medusa` went with
0.33.0.

Source: vllm/config/speculative.py of each release; vllm/engine/arg_utils.py, 0.8.2 to 0.14.1; vllm-project/vllm#24322,
#31883, #47825.

Fails:

    engine: {name: vllm, version: "0.13.0"}
    speculative: {method: draft_model}

Passes:

    engine: {name: vllm, version: "0.15.0"}
    speculative: {method: draft_model}

Way out: a release that has the method, or a method that the release has.
"""

from __future__ import annotations

from collections.abc import Iterator

from speclint.arms import needs_v0
from speclint.diagnostic import Finding
from speclint.releases import Release, spans
from speclint.shape import did_you_mean
from speclint.spec import Spec

SEVERITY = "error"
NEEDS = "spec"

PATH = "/pair/speculative/method"
RELATED = (("/pair/engine/version", "this release"),)


def check(spec: Spec, release: Release | None) -> Iterator[Finding]:
    method = spec.method
    if release is None or method is None or spec.device is None:
        return
    if method in release.methods_refused:
        message = f"vLLM {release.version} cannot run method `{method}`: {release.methods_refused[method]}"
        yield Finding(PATH, message, _having(method), related=RELATED)
    elif method not in release.methods:
        near = did_you_mean(method, release.methods)
        message = f"vLLM {release.version} has no method `{method}`"
        yield Finding(PATH, message, near or _having(method), related=RELATED)
    elif needs_v0(spec, release) and spec.section("pair", "env").get("VLLM_USE_V1") == "1":
        message = f"vLLM {release.version} runs method `{method}` in its V0 engine only, and the environment asks for V1"
        help = 'write `VLLM_USE_V1: "0"`, for both arms'
        yield Finding(PATH, message, help, "vllm/engine/arg_utils.py", related=(("/pair/env/VLLM_USE_V1", "asked for here"),))


def _having(method: str) -> str:
    having = spans(lambda release: _runs(release, method))
    return f"it runs in {having} (releases known here)" if having else "no release known here runs it"


def _runs(release: Release, method: str) -> bool:
    return method in release.methods and method not in release.methods_refused
