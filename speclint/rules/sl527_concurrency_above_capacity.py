"""SL527 concurrency-above-capacity: a level asks for more requests at once than the server runs.

The rest wait in its queue: the figures are those of a lower level with the waiting added, and TTFT is mostly waiting.

Source: vllm/v1/core/sched/scheduler.py, 0.8.2 on.

Fails:

    engine_args: {max_num_seqs: 8}
    load: {concurrency: [1, 16], requests: 128}

Passes:

    engine_args: {max_num_seqs: 16}
    load: {concurrency: [1, 16], requests: 128}

Way out: raise `max_num_seqs` or the KV cache, or leave the level out.
"""

from __future__ import annotations

from collections.abc import Iterator

from speclint.diagnostic import Finding, pointer
from speclint.releases import Release
from speclint.spec import Spec

SEVERITY = "error"
NEEDS = "spec"

BLOCK = 16  # tokens, vLLM's default on a GPU
SEQUENCES, BLOCKS = "/pair/engine_args/max_num_seqs", "/pair/engine_args/num_gpu_blocks_override"


def check(spec: Spec, release: Release | None) -> Iterator[Finding]:
    sequences = spec.at("pair", "engine_args", "max_num_seqs", kind=int)
    tokens = _cache_tokens(spec)
    shortest = min((n for n in _answers(spec)), default=0)
    for index, level in enumerate(spec.listing("protocol", "load", "concurrency")):
        path = pointer("protocol", "load", "concurrency", index)
        if not isinstance(level, int):
            continue
        if sequences is not None and level > sequences:
            message = f"{level} requests at once, and the server runs {sequences}: the others wait"
            yield Finding(path, message, f"set max_num_seqs to {level}", related=((SEQUENCES, "the server's limit"),))
        elif tokens is not None and level * shortest > tokens:
            message = f"{level} answers of {shortest} tokens need {level * shortest} tokens of KV cache; there are {tokens}"
            help = "raise num_gpu_blocks_override, or leave the level out"
            yield Finding(path, message, help, related=((BLOCKS, "the cache"),))


def _cache_tokens(spec: Spec) -> int | None:
    """Tokens that the KV cache holds, where the spec fixes it; a block of a CPU differs with what is installed."""
    blocks = spec.at("pair", "engine_args", "num_gpu_blocks_override", kind=int)
    size = spec.at("pair", "engine_args", "block_size", kind=int) or (BLOCK if spec.device == "cuda" else None)
    return None if blocks is None or size is None else blocks * size


def _answers(spec: Spec) -> Iterator[int]:
    """Middle answer length of each workload; prompts come on top. Unit: tokens."""
    for index, _ in spec.rows("protocol", "workloads"):
        tokens = spec.at("protocol", "workloads", index, "output", "tokens", kind=int)
        if tokens is not None:
            yield tokens
