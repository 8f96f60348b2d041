"""SL511 random-prompts: acceptance is judged on prompts of random tokens.

No draft predicts noise, and none needs to: the figure says nothing about text that users send. Random prompts are fine for
throughput alone. The file or workload is recognised by its name.

Source: reported in reference cases of vllm bench serve with --dataset-name random.

Fails:

    prompts: {file: prompts/random_1024.jsonl, sha256: …}
    criteria: [{id: accepted, metric: acceptance_rate, at_least: 0.4}]

Passes:

    prompts: {file: prompts/support_tickets.jsonl, sha256: …}
    criteria: [{id: accepted, metric: acceptance_rate, at_least: 0.4}]

Way out: prompts of the service, or one of the generators.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from speclint.data import metrics
from speclint.diagnostic import Finding, pointer
from speclint.releases import Release
from speclint.spec import Spec

SEVERITY = "warning"
NEEDS = "spec"

RANDOM = re.compile(r"(^|[^a-z])random([^a-z]|$)", re.IGNORECASE)


def check(spec: Spec, release: Release | None) -> Iterator[Finding]:
    for index, row in spec.rows("protocol", "workloads"):
        file = spec.at("protocol", "workloads", index, "prompts", "file", kind=str) or ""
        name = row.get("id")
        judged = _judged(spec, name)
        if judged is not None and (RANDOM.search(file) or RANDOM.search(str(name))):
            message = "acceptance on random prompts says nothing about text"
            related = ((pointer("protocol", "criteria", judged, "metric"), "judged here"),)
            path = pointer("protocol", "workloads", index, "prompts", "file" if RANDOM.search(file) else "generator")
            yield Finding(path, message, "use prompts of the service, or a generator", related=related)


def _judged(spec: Spec, workload: object) -> int | None:
    for index, row in spec.criteria:
        level = metrics().get(str(row.get("metric")), {}).get("kind") == "level"
        if level and row.get("workload", "all") in ("all", workload):
            return index
    return None
