"""SL521 duration-with-natural-stop: a metric of whole requests where answers may end by themselves.

If the arms answer at different lengths, duration and request rate compare different work. With `stop: natural` decode time
per token, TTFT and steady output throughput may be judged.

Fails:

    output: {tokens: 128, stop: natural}
    criteria: [{id: faster, metric: request_duration_p50, compare: ratio, at_most: 0.9}]

Passes:

    output: {tokens: 128, stop: natural}
    criteria: [{id: faster, metric: decode_time_per_token, compare: ratio, at_most: 0.9}]

Way out: `stop: length` for this workload, or another metric.
"""

from __future__ import annotations

from collections.abc import Iterator

from speclint.diagnostic import Finding, pointer
from speclint.releases import Release
from speclint.spec import Spec

SEVERITY = "error"
NEEDS = "spec"

WHOLE = ("request_duration_", "tpot_", "inter_chunk_gap_", "output_throughput_window", "request_throughput", "goodput")


def check(spec: Spec, release: Release | None) -> Iterator[Finding]:
    natural = {
        str(row.get("id")): index
        for index, row in spec.rows("protocol", "workloads")
        if spec.at("protocol", "workloads", index, "output", "stop", kind=str) == "natural"
    }
    for index, row in spec.criteria:
        hit = [name for name in natural if row.get("workload", "all") in ("all", name)]
        if not hit or not str(row.get("metric")).startswith(WHOLE):
            continue
        message = f"`{row['metric']}` compares different work where answers end by themselves (workload `{hit[0]}`)"
        related = ((pointer("protocol", "workloads", natural[hit[0]], "output", "stop"), "natural here"),)
        help = "judge decode_time_per_token, ttft or output_throughput there, or use `stop: length`"
        yield Finding(pointer("protocol", "criteria", index, "metric"), message, help, related=related)
