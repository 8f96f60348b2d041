"""SL523 ratio-of-pair-only-metric: a ratio to the target of something that the target does not have.

The target makes no drafts, so acceptance has no value there to divide by.

Fails:

    criteria: [{id: accepted, metric: acceptance_rate, compare: ratio, at_least: 0.9}]

Passes:

    criteria: [{id: accepted, metric: acceptance_rate, at_least: 0.4}]

Way out: remove `compare`.
"""

from __future__ import annotations

from collections.abc import Iterator

from speclint.data import metrics
from speclint.diagnostic import Finding, pointer
from speclint.releases import Release
from speclint.spec import Spec

SEVERITY = "error"
NEEDS = "spec"


def check(spec: Spec, release: Release | None) -> Iterator[Finding]:
    for index, row in spec.criteria:
        if row.get("compare") == "ratio" and metrics().get(str(row.get("metric")), {}).get("kind") == "level":
            message = f"the target has no `{row['metric']}` to compare with"
            yield Finding(pointer("protocol", "criteria", index, "compare"), message, "remove `compare: ratio`")
