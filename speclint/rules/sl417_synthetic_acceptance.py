"""SL417 synthetic-acceptance: acceptance is set by hand or the weights are random, so nothing is measured of the pair.

Synthetic acceptance accepts drafts at a chosen rate; answers are meaningless. It is useful for a cost model, declared as
`kind: cost_model`, and an acceptance criterion then judges the number that was typed in. A cost model proves nothing of
drafts and answers, so it is no name for a pair of which nothing is invented.

Source: vllm/config/speculative.py, 0.19.0 on; vllm-project/vllm#39359, #53987.

Fails:

    protocol: {kind: measurement}
    speculative: {rejection_sample_method: synthetic, synthetic_acceptance_length: 3.0}

Passes:

    protocol: {kind: cost_model}
    speculative: {rejection_sample_method: synthetic, synthetic_acceptance_length: 3.0}

Way out: remove the synthetic settings, or declare the cost model and drop acceptance criteria.
"""

from __future__ import annotations

from collections.abc import Iterator

from speclint.data import metrics
from speclint.diagnostic import Finding, pointer
from speclint.releases import Release
from speclint.spec import Spec

SEVERITY = "error"
NEEDS = "spec"

SETTINGS = ("synthetic_acceptance_rate", "synthetic_acceptance_rates", "synthetic_acceptance_length")


def check(spec: Spec, release: Release | None) -> Iterator[Finding]:
    where, declared = invented(spec), spec.at("protocol", "kind", kind=str) == "cost_model"
    if where is None:
        if declared:
            message = "nothing is invented here, so this would be a measurement without its proofs"
            yield Finding("/protocol/kind", message, "take `kind` away, or set synthetic acceptance or dummy weights")
        return
    if not declared:
        message = "acceptance is invented here, so this is no measurement of the pair"
        yield Finding(where, message, "remove it, or declare `protocol.kind: cost_model`")
        return
    for index, row in spec.criteria:
        if metrics().get(str(row.get("metric")), {}).get("kind") == "level":
            message = f"`{row.get('metric')}` would be judged on invented acceptance"
            path = pointer("protocol", "criteria", index, "metric")
            yield Finding(path, message, "remove this criterion", related=((where, "invented here"),))


def invented(spec: Spec) -> str | None:
    if spec.speculative.get("rejection_sample_method") == "synthetic":
        return "/pair/speculative/rejection_sample_method"
    for name in SETTINGS:
        if spec.speculative.get(name) is not None:
            return pointer("pair", "speculative", name)
    return "/pair/engine_args/load_format" if spec.engine_args.get("load_format") == "dummy" else None
