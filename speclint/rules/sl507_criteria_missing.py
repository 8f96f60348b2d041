"""SL507 criteria-missing: a criterion that cannot fail, or that looks at the wrong side of its metric.

`acceptance_rate at_least: 0` is met by any pair. `request_duration_p50 at_least: 0.9` is met by a pair that is slow. A ratio of
90 is ninety times the target's, not 90 %.

Fails:

    criteria: [{id: accepted, metric: acceptance_rate, at_least: 0}]

Passes:

    criteria: [{id: accepted, metric: acceptance_rate, at_least: 0.4}]

Way out: state the figure below (or above) which you would not deploy the pair.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from speclint.data import metrics
from speclint.diagnostic import Finding, pointer
from speclint.releases import Release
from speclint.shape import in_percent
from speclint.spec import Spec

SEVERITY = "error"
NEEDS = "spec"

NO_RATIO = 10  # no pair is ten times as fast, and nobody would deploy one that is ten times as slow
LOWEST = {"acceptance_rate": 0.0, "mean_accepted_length": 1.0, "tokens_per_step": 1.0}


def check(spec: Spec, release: Release | None) -> Iterator[Finding]:
    for index, row in spec.criteria:
        metric = metrics().get(str(row.get("metric")))
        bound = next((name for name in ("at_most", "at_least") if name in row), None)
        threshold = spec.at("protocol", "criteria", index, bound or "", kind=float)
        if metric is None or bound is None or threshold is None:
            continue
        path = pointer("protocol", "criteria", index, bound)
        wanted = "at_most" if metric["better"] == "lower" else "at_least"
        if bound != wanted:
            message = f"`{row['metric']}` is better when {metric['better']}, so `{bound}` is met by a worse pair"
            yield Finding(path, message, f"write `{wanted}`", on_key=True)
        elif row.get("compare") == "ratio" and threshold >= NO_RATIO:
            message = f"`{bound}: {threshold:g}` is {threshold:g} times the target's"
            yield Finding(path, message, in_percent(threshold))
        elif _vacuous(row, bound, threshold):
            message = f"`{bound}: {threshold:g}` is met by every pair"
            yield Finding(path, message, "state the figure beyond which you would not deploy the pair")


def _vacuous(row: dict[str, Any], bound: str, threshold: float) -> bool:
    if bound == "at_most":
        return False
    floor = 0.0 if row.get("compare") == "ratio" else LOWEST.get(str(row.get("metric")), 0.0)
    return threshold <= floor
