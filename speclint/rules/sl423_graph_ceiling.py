"""SL423 graph-ceiling: a level's verification is larger than any CUDA graph, so the pair runs without graphs there.

Verification handles K + 1 tokens a request. Graphs end at 512 tokens a step and at twice `max_num_seqs` requests (0.11.1 and
0.12.0: tokens); the target alone stays below both. Past the end the pair pays for every kernel launch and speculation gets the
blame. From 0.29.0 on graphs are counted in requests.

Source: vllm/config/vllm.py `_set_cudagraph_sizes`, 0.11.1 to 0.28.0; vllm-project/vllm#54933, PR 37865, PR 50488.

Fails:

    engine: {name: vllm, version: "0.26.0"}
    engine_args: {max_num_seqs: 256}
    load: {concurrency: [1, 256], requests: 2048}

Passes:

    engine: {name: vllm, version: "0.26.0"}
    load: {concurrency: [1, 64], requests: 512}

Way out: `max_cudagraph_capture_size` of at least concurrency x (K + 1), a lower level, or 0.29.0 and later.
"""

from __future__ import annotations

from collections.abc import Iterator

from speclint.diagnostic import Finding, pointer
from speclint.releases import Release
from speclint.spec import Spec

SEVERITY = "warning"
NEEDS = "spec"

LARGEST = 512  # tokens; some releases take 1024 on one generation of devices
SAID = ("cudagraph_capture_sizes", "max_cudagraph_capture_size", "compilation_config", "cuda_graph_sizes")


def check(spec: Spec, release: Release | None) -> Iterator[Finding]:
    if release is None or spec.device != "cuda" or not release.in_range("0.11.1", "0.28.0") or spec.k is None:
        return
    if spec.engine_args.get("enforce_eager") is True or any(name in spec.engine_args for name in SAID):
        return
    ceiling = _ceiling(spec, release, spec.k)
    for index, level in enumerate(spec.listing("protocol", "load", "concurrency")):
        if isinstance(level, int) and level * (spec.k + 1) > ceiling:
            message = f"{level} requests x {spec.k + 1} tokens = {level * (spec.k + 1)}; graphs end at {ceiling} tokens a step"
            help = f"set max_cudagraph_capture_size to {level * (spec.k + 1)}, or use 0.29.0 or later"
            source = "vllm/config/vllm.py, 0.11.1-0.28.0; PR 50488"
            related = (("/pair/speculative/num_speculative_tokens", "K, and one token more"),)
            yield Finding(pointer("protocol", "load", "concurrency", index), message, help, source, related=related)


def _ceiling(spec: Spec, release: Release, k: int) -> int:
    """Largest captured batch. Unit: tokens."""
    sequences = spec.at("pair", "engine_args", "max_num_seqs", kind=int)
    if sequences is None:
        return LARGEST
    return min(LARGEST, sequences * 2 * (k + 1 if release.in_range("0.13.0", None) else 1))
