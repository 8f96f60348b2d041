"""SL505 sampling-refused: a sampling parameter that this release refuses or ignores with speculation.

From 0.14.0 `min_p` and `logit_bias` make every request of the pair fail with HTTP 400; until 0.13.0 they were ignored, which
is worse. `min_tokens` above 1 was refused from 0.14.0 to 0.16.0. At temperature 0 `min_p` is reset and accepted.

Source: vllm/sampling_params.py, 0.17.0 on; vllm/v1/engine/input_processor.py, 0.14.0 to 0.16.0; vllm-project/vllm#42744.

Fails:

    sampling: {temperature: 0.7, top_p: 1.0, top_k: 0, seed: 0, min_p: 0.05}

Passes:

    sampling: {temperature: 0.7, top_p: 1.0, top_k: 0, seed: 0, min_p: 0.0}

Way out: remove the parameter; `top_p` works with speculation.
"""

from __future__ import annotations

from collections.abc import Iterator

from speclint.diagnostic import Finding
from speclint.releases import Release
from speclint.requests import parameters
from speclint.spec import Spec

SEVERITY = "error"
NEEDS = "spec"

EFFECTS = {"refused": "refuses every request of the pair", "ignored": "ignores it without a word in the pair"}


def check(spec: Spec, release: Release | None) -> Iterator[Finding]:
    if release is None or spec.method is None:
        return
    for row in release.raw["sampling_with_speculation"]:
        name, effect = row["parameter"], row["effect"]
        if effect not in EFFECTS or spec.method not in (row["methods"] or [spec.method]):
            continue
        for path, value in parameters(spec, name):
            if name == "min_p" and not spec.temperature:
                continue  # reset at temperature 0, and accepted
            message = f"`{name}: {value}` with speculation: vLLM {release.version} {EFFECTS[effect]}"
            source = f"vLLM {row['first'] or 'first'} to {row['last'] or 'now'}; vllm-project/vllm#42744"
            yield Finding(path, message, "remove it", source, related=(("/pair/speculative/method", "speculation"),))
