"""SL404 method-not-in-release: this release has no such method, or lists it and fails when it is used.

Draft models were refused from 0.10.0 to 0.14.1; `mlp_speculator` was listed up to 0.32.0 but had no code since 0.10.0;
`suffix` came with 0.11.1, `dflash` with 0.20.0, `dspark` with 0.25.0; `medusa` went with 0.33.0.

Source: vllm/config/speculative.py of each release; vllm-project/vllm#24322, #31883, #47825.

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

from speclint.diagnostic import Finding
from speclint.releases import Release, known, load
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


def _having(method: str) -> str:
    having = [version for version in known() if (other := load(version)) and _runs(other, method)]
    return f"it runs in {having[0]} to {having[-1]} (releases known here)" if having else "no release known here runs it"


def _runs(release: Release, method: str) -> bool:
    return method in release.methods and method not in release.methods_refused
