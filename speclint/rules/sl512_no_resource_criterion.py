"""SL512 no-resource-criterion: no criterion looks at memory or KV capacity, which a draft's weights and cache take.

A pair that answers faster alone and holds half as many requests is a loss for a busy service. ngram and suffix hold no
weights and are not asked.

Fails:

    criteria: [{id: faster, metric: request_duration_p50, compare: ratio, at_most: 0.9}]

Passes:

    criteria:
      - {id: faster, metric: request_duration_p50, compare: ratio, at_most: 0.9}
      - {id: capacity, metric: kv_capacity_tokens, compare: ratio, at_least: 0.85}

Way out: add a criterion on `kv_capacity_tokens`, `kv_capacity_sequences` or `memory_peak_bytes`.
"""

from __future__ import annotations

from collections.abc import Iterator

from speclint.diagnostic import Finding
from speclint.methods import LOOKUP
from speclint.releases import Release
from speclint.rules.sl508_criterion_not_measured import WHOLE_START
from speclint.spec import Spec

SEVERITY = "warning"
NEEDS = "spec"


def check(spec: Spec, release: Release | None) -> Iterator[Finding]:
    if spec.method in LOOKUP or spec.method is None or not spec.criteria:
        return
    if all(row.get("metric") not in WHOLE_START for _, row in spec.criteria):
        help = "add {id: capacity, metric: kv_capacity_tokens, compare: ratio, at_least: 0.85}"
        yield Finding("/protocol/criteria", "no criterion looks at memory or KV capacity", help, on_key=True)
