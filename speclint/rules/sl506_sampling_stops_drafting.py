"""SL506 sampling-stops-drafting: with this parameter the release quietly decodes without drafts.

Until 0.13.0 ngram and suffix skip every request that has a penalty, `min_p` or `logprobs`: the pair then measures the target.

Source: vllm/v1/spec_decode/utils.py, 0.8.0 to 0.13.0.

Fails:

    engine: {name: vllm, version: "0.13.0"}
    speculative: {method: ngram}
    sampling: {repetition_penalty: 1.05}

Passes:

    engine: {name: vllm, version: "0.14.0"}
    speculative: {method: ngram}
    sampling: {repetition_penalty: 1.05}

Way out: remove the parameter, or use 0.14.0 or later.
"""

from __future__ import annotations

from collections.abc import Iterator

from speclint.diagnostic import Finding
from speclint.releases import Release
from speclint.requests import parameters
from speclint.spec import Spec

SEVERITY = "error"
NEEDS = "spec"


def check(spec: Spec, release: Release | None) -> Iterator[Finding]:
    if release is None or spec.method is None:
        return
    for row in release.raw["sampling_with_speculation"]:
        if row["effect"] != "stops_drafting" or spec.method not in (row["methods"] or [spec.method]):
            continue
        for path, value in parameters(spec, row["parameter"]):
            if row["parameter"] == "min_p" and not spec.temperature:
                continue
            message = f"with `{row['parameter']}: {value}` vLLM {release.version} drafts nothing by {spec.method}"
            related = (("/pair/speculative/method", "method"),)
            yield Finding(path, message, "remove it, or use 0.14.0 or later", "vllm/v1/spec_decode/utils.py", related=related)
