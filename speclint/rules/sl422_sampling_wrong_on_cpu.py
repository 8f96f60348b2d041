"""SL422 sampling-wrong-on-cpu: above temperature 0 this release's verification is broken on a CPU.

Without triton-cpu the temperature, top_k and top_p of verified rows are never written back: answers come from another
distribution than the target's (log-probability per token -4.27 instead of -2.05 at temperature 0.01), and top_k stops the
engine. Lengths, drafts and acceptance look fine. Greedy answers are right.

Source: vllm/utils/cpu_triton_utils.py, 0.21.0 to 0.33.0; vllm-project/vllm#55005.

Fails:

    placement: {device: cpu}
    sampling: {temperature: 0.7, top_p: 1.0, top_k: 0, seed: 0}

Passes:

    placement: {device: cpu}
    sampling: {temperature: 0.0, top_p: 1.0, top_k: 0, seed: 0}

Way out: temperature 0, or a GPU.
"""

from __future__ import annotations

from collections.abc import Iterator

from speclint.diagnostic import Finding
from speclint.releases import Release
from speclint.spec import Spec

SEVERITY = "error"
NEEDS = "spec"


def check(spec: Spec, release: Release | None) -> Iterator[Finding]:
    defect = next((row for row in release.defects if row.rule == "SL422"), None) if release else None
    if release is None or defect is None or spec.method is None or not defect.applies(spec.data):
        return
    message = f"above temperature 0 speculation samples from a wrong distribution on a CPU with vLLM {release.version}"
    related = (("/pair/placement/device", "on this device"),)
    source = f"{defect.upstream}; vllm/utils/cpu_triton_utils.py, {defect.first} on"
    yield Finding("/protocol/sampling/temperature", message, "use temperature 0.0, or a GPU", source, related=related)
