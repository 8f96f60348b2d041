"""SL508 criterion-not-measured: a criterion names a cell, level or limit that this protocol does not give.

It could never be decided.

Fails:

    load: {concurrency: [1, 4], requests: 32}
    criteria: [{id: busy, metric: output_throughput, compare: ratio, concurrency: 8, at_least: 0.95}]

Passes:

    load: {concurrency: [1, 8], requests: 64}
    criteria: [{id: busy, metric: output_throughput, compare: ratio, concurrency: 8, at_least: 0.95}]

Way out: name a workload id and a level that the protocol has, `all`, or `open` beside protocol.arrival.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from speclint.data import metrics
from speclint.diagnostic import Finding, pointer
from speclint.releases import Release
from speclint.shape import did_you_mean, one_of
from speclint.spec import Spec

SEVERITY = "error"
NEEDS = "spec"

WHOLE_START = ("kv_capacity_tokens", "kv_capacity_sequences", "memory_peak_bytes")


def check(spec: Spec, release: Release | None) -> Iterator[Finding]:
    seen: dict[str, int] = {}
    for index, row in spec.criteria:
        name = row.get("id")
        if isinstance(name, str) and name in seen:
            related = ((pointer("protocol", "criteria", seen[name], "id"), "first here"),)
            message = f"two criteria are called `{name}`"
            yield Finding(_path(index, "id"), message, "verdicts name them; rename one", related=related)
        elif isinstance(name, str):
            seen[name] = index
        yield from _cell(spec, index, row)
        yield from _weights(spec, index, row)
        if row.get("metric") in ("goodput", "goodput_share") and not spec.section("protocol", "slo"):
            message = f"{row['metric']} counts requests within protocol.slo, which is missing"
            yield Finding(_path(index, "metric"), message, "add protocol.slo")


def _path(index: int, key: str) -> str:
    return pointer("protocol", "criteria", index, key)


def _weights(spec: Spec, index: int, row: dict[str, Any]) -> Iterator[Finding]:
    """A mean over workloads is one of ratios, of workloads that there are."""
    weights = row.get("weights")
    if not isinstance(weights, dict):
        return
    if "workload" in row:
        yield Finding(_path(index, "workload"), "weights name the workloads already", "remove `workload`")
    if row.get("compare") != "ratio" or metrics().get(str(row.get("metric")), {}).get("kind") != "ratio":
        message = f"a mean over workloads is one of ratios to the target; `{row.get('metric')}` is not compared so"
        yield Finding(_path(index, "weights"), message, "add `compare: ratio`, or judge each workload")
    ids = [str(item["id"]) for item in spec.workloads if "id" in item]
    for name in weights:
        if ids and name not in ids:
            help = did_you_mean(name, ids) or f"workloads are {one_of(ids)}"
            path = pointer("protocol", "criteria", index, "weights", name)
            yield Finding(path, f"there is no workload `{name}`", help, on_key=True)


def _cell(spec: Spec, index: int, row: dict[str, Any]) -> Iterator[Finding]:
    workload, level = row.get("workload", "all"), row.get("concurrency", "all")
    ids = [str(item["id"]) for item in spec.workloads if "id" in item]
    if row.get("metric") in WHOLE_START:
        for key in ("workload", "concurrency"):
            if row.get(key, "all") != "all":
                message = f"`{row['metric']}` is one figure of a whole start, not of a cell"
                yield Finding(_path(index, key), message, f"remove `{key}`")
        return
    if isinstance(workload, str) and workload != "all" and ids and workload not in ids:
        help = did_you_mean(workload, ids) or f"workloads are {one_of(ids)}"
        yield Finding(_path(index, "workload"), f"there is no workload `{workload}`", help)
    if isinstance(level, int) and spec.concurrency and level not in spec.concurrency:
        related = (("/protocol/load/concurrency", "levels"),)
        help = f"levels are {one_of(spec.concurrency)}"
        yield Finding(_path(index, "concurrency"), f"concurrency {level} is not measured", help, related=related)
    if level == "open" and not spec.section("protocol", "arrival"):
        help = "add protocol.arrival: a process, a rate and a seed"
        yield Finding(_path(index, "concurrency"), "there is no open loop: protocol.arrival is missing", help)
