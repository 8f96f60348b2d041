"""SL513 criteria-contradict: criteria that cannot be met, alone or together.

Fails:

    criteria:
      - {id: a, metric: acceptance_rate, at_least: 0.8}
      - {id: b, metric: acceptance_rate, at_most: 0.5}

Passes:

    criteria: [{id: a, metric: acceptance_rate, at_least: 0.5}]

Way out: keep the one that decides about the deployment.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from speclint.diagnostic import Finding, pointer
from speclint.releases import Release
from speclint.shape import in_percent
from speclint.spec import Spec

SEVERITY = "error"
NEEDS = "spec"


def check(spec: Spec, release: Release | None) -> Iterator[Finding]:
    for index, row in spec.criteria:
        low, high = spec.at("protocol", "criteria", index, "at_least", kind=float), _at_most(spec, index)
        ceiling = _ceiling(spec, row)
        if low is not None and ceiling is not None and low > ceiling:
            message = f"`{row['metric']}` cannot exceed {ceiling:g}"
            help = in_percent(low) if ceiling == 1 and low <= 100 else f"write {ceiling:g} or less"
            yield Finding(pointer("protocol", "criteria", index, "at_least"), message, help)
        if high is not None and (high < 0 or (high == 0 and row.get("compare") == "ratio")):
            path = pointer("protocol", "criteria", index, "at_most")
            yield Finding(path, f"`{row.get('metric')}` is never that low", "write a positive bound")
        if low is not None:
            yield from _against(spec, index, row, low)


def _against(spec: Spec, index: int, row: dict[str, Any], low: float) -> Iterator[Finding]:
    for other, against in spec.criteria:
        high = _at_most(spec, other)
        if high is not None and low > high and _cell(row) == _cell(against):
            related = ((pointer("protocol", "criteria", other, "at_most"), f"at most {high:g} here"),)
            message = f"at least {low:g} contradicts criterion `{against.get('id')}`"
            yield Finding(pointer("protocol", "criteria", index, "at_least"), message, "keep one of the two", related=related)


def _at_most(spec: Spec, index: int) -> float | None:
    return spec.at("protocol", "criteria", index, "at_most", kind=float)


def _cell(row: dict[str, Any]) -> tuple[Any, ...]:
    return row.get("metric"), row.get("compare"), row.get("workload", "all"), row.get("concurrency", "all")


def _ceiling(spec: Spec, row: dict[str, Any]) -> float | None:
    """The largest value that a level metric can take; with K draft tokens a step gives at most K + 1."""
    if row.get("metric") == "acceptance_rate":
        return 1.0
    lengths = row.get("metric") in ("mean_accepted_length", "tokens_per_step")
    return spec.k + 1.0 if lengths and spec.k is not None else None
