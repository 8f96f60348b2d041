"""SL426 environment-outside-spec: a variable that servers would not get: only those of engine and libraries pass.

Servers start from a scrubbed environment, so that a run depends on the spec and not on the shell it was started from. Names
that begin with VLLM_, OMP_, KMP_, LD_PRELOAD, CUDA_, NCCL_ or PYTORCH_ are passed on.

Fails:

    env: {HTTP_PROXY: "http://proxy:3128"}

Passes:

    env: {OMP_NUM_THREADS: "4"}

Way out: remove it; proxies, tokens and cache folders belong to the machine and are not part of the pair.
"""

from __future__ import annotations

from collections.abc import Iterator

from speclint.diagnostic import Finding, pointer
from speclint.releases import Release
from speclint.spec import Spec

SEVERITY = "error"
NEEDS = "spec"

PASSED = ("VLLM_", "OMP_", "KMP_", "LD_PRELOAD", "CUDA_", "NCCL_", "PYTORCH_")


def check(spec: Spec, release: Release | None) -> Iterator[Finding]:
    for key in spec.section("pair", "env"):
        if not key.startswith(PASSED):
            message = f"`{key}` is not passed to servers"
            help = f"only names that begin with {', '.join(PASSED)} are; remove it"
            yield Finding(pointer("pair", "env", key), message, help, on_key=True)
