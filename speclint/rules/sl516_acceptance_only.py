"""SL516 acceptance-only: no criterion judges latency or throughput.

Accepted tokens promise no speed. Reported: 81 % of drafts accepted and 0.62 times the speed; acceptance length 3.21 at
12.2 tokens/s against 26.5 without speculation.

Source: vllm-project/vllm#47277, #27726; zai-org/GLM-OCR#218.

Fails:

    criteria: [{id: accepted, metric: acceptance_rate, at_least: 0.4}]

Passes:

    criteria:
      - {id: accepted, metric: acceptance_rate, at_least: 0.4}
      - {id: faster, metric: request_duration_p50, compare: ratio, at_most: 0.9}

Way out: add a ratio of request duration, TPOT or throughput.
"""

from __future__ import annotations

from collections.abc import Iterator

from speclint.data import metrics
from speclint.diagnostic import Finding
from speclint.releases import Release
from speclint.spec import Spec

SEVERITY = "error"
NEEDS = "spec"


def check(spec: Spec, release: Release | None) -> Iterator[Finding]:
    rows = [(row, metrics().get(str(row.get("metric")), {})) for _, row in spec.criteria]
    kinds = [metric.get("kind") for _, metric in rows]
    if not kinds or None in kinds:
        return
    help = "add {id: faster, metric: request_duration_p50, compare: ratio, at_most: 0.95}"
    if "ratio" not in kinds:
        message = "no criterion judges latency or throughput; accepted tokens promise no speed"
        yield Finding("/protocol/criteria", message, help, "vllm-project/vllm#47277", on_key=True)
        return
    judged = [(row, metric) for row, metric in rows if metric["kind"] == "ratio"]
    if not any("compare" in row for row, _ in judged):
        row, metric = judged[0]
        message = (
            f"no criterion holds the pair against the target: without `compare`, {row['metric']} is a limit in {metric['unit']}"
        )
        yield Finding("/protocol/criteria", message, help, on_key=True, severity="warning")
