"""SL416 set-twice: an engine argument, or a field of `extra_body`, that the spec states elsewhere.

Two places can contradict each other, and the reviewer reads one of them. `extra_body` is merged into the request last: with
`temperature: 1.0` there, `sampling.temperature: 0.0` is never sent. From 0.22.0 vLLM itself refuses a speculative setting given
both ways.

Source: vllm/engine/arg_utils.py, 0.22.0 on (--spec-method, --spec-model, --spec-tokens).

Fails:

    placement: {device: cuda, tensor_parallel_size: 2}
    engine_args: {tensor_parallel_size: 2}

Passes:

    placement: {device: cuda, tensor_parallel_size: 2}
    engine_args: {}

Way out: keep the place that the message names.
"""

from __future__ import annotations

from collections.abc import Iterator

from speclint.diagnostic import Finding, pointer
from speclint.releases import Release
from speclint.spec import Spec

SEVERITY = "error"
NEEDS = "spec"

BODY = ("protocol", "request", "extra_body")
HOMES = {
    "dtype": ("pair", "target", "dtype"),
    "quantization": ("pair", "target", "quantization"),
    "code_revision": ("pair", "target", "code_revision"),
    "tokenizer": ("pair", "target", "tokenizer", "model"),
    "tokenizer_revision": ("pair", "target", "tokenizer", "revision"),
    "device": ("pair", "placement", "device"),
    "tensor_parallel_size": ("pair", "placement", "tensor_parallel_size"),
    "pipeline_parallel_size": ("pair", "placement", "pipeline_parallel_size"),
    "distributed_executor_backend": ("pair", "placement", "distributed_executor_backend"),
    "spec_method": ("pair", "speculative", "method"),
    "spec_model": ("pair", "speculative", "model"),
    "spec_tokens": ("pair", "speculative", "num_speculative_tokens"),
}


def check(spec: Spec, release: Release | None) -> Iterator[Finding]:
    for key in spec.engine_args:
        home = HOMES.get(key.lstrip("-").replace("-", "_"))
        if home is None:
            continue
        there = spec.at(*home, kind=object) is not None
        related = ((pointer(*home), "stated here"),) if there else ()
        message = f"`{key}` belongs to {'.'.join(home)}" + (", where it stands already" if there else "")
        help = "remove it here" if there else "move it there"
        yield Finding(pointer("pair", "engine_args", key), message, help, on_key=True, related=related)
    for key in spec.section(*BODY):
        if key in spec.sampling:
            related = ((pointer("protocol", "sampling", key), "never sent"),)
            message = f"`{key}` stands in protocol.sampling, and this is sent instead of it"
            yield Finding(pointer(*BODY, key), message, "remove it here", on_key=True, related=related)
