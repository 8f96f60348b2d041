"""SL504 sampling-not-explicit: temperature, top_p, top_k and seed must all be written.

What is not sent comes from the model's own generation_config, from the server, or from a benchmark's default, which moved in
January 2026 from temperature 0 to the model's.

Source: vllm-project/vllm#32723.

Fails:

    sampling: {temperature: 0.0}

Passes:

    sampling: {temperature: 0.0, top_p: 1.0, top_k: 0, seed: 0}

Way out: write all four; `top_p: 1.0` and `top_k: 0` switch these off.
"""

from __future__ import annotations

from collections.abc import Iterator

from speclint.diagnostic import Finding
from speclint.releases import Release
from speclint.shape import one_of
from speclint.spec import Spec

SEVERITY = "error"
NEEDS = "spec"

NEUTRAL = {"temperature": "0.0", "top_p": "1.0", "top_k": "0", "seed": "0"}


def check(spec: Spec, release: Release | None) -> Iterator[Finding]:
    if spec.at("protocol", "sampling", kind=dict) is None:
        return
    missing = [name for name in NEUTRAL if name not in spec.sampling]
    if missing:
        help = "write " + ", ".join(f"{name}: {NEUTRAL[name]}" for name in missing) + " if that is what you mean"
        message = f"{one_of(missing).replace(' or ', ' and ')} would be left to a default"
        yield Finding("/protocol/sampling", message, help, on_key=True)
