"""SL610 impossible-figures: a figure that no run can give.

With K draft tokens a step yields 1 to K + 1 tokens; a rate lies between 0 and 1; a ratio is positive; an interval holds its
value; an arm without speculation has no acceptance.

Fails:

    speculative: {num_speculative_tokens: 3}
    results: [{figures: {columns: [workload, concurrency, arm, mean_accepted_length], rows: [[varied, 1, pair, 5.2]]}}]

Passes:

    results: [{figures: {columns: [workload, concurrency, arm, mean_accepted_length], rows: [[varied, 1, pair, 2.1]]}}]

Way out: none by hand; `specrun verify` recomputes every figure from the records.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from speclint.data import metrics
from speclint.diagnostic import Finding, pointer
from speclint.releases import Release
from speclint.spec import Spec

SEVERITY = "error"
NEEDS = "results"

HELP = "`specrun verify` recomputes it from the records"
RATES = ("acceptance_rate", "acceptance_rate_counters")
LENGTHS = ("mean_accepted_length", "tokens_per_step")


def check(spec: Spec, release: Release | None) -> Iterator[Finding]:
    for index, _ in spec.results:
        yield from _figures(spec, index)
        for section in ("ratios",):
            for place, row in spec.rows("results", index, section):
                yield from _interval(row, ("results", index, section, place), positive=True)
        for place, verdict in spec.rows("results", index, "verdicts"):
            ratio = _is_ratio(spec, verdict.get("id"))
            for cell, row in spec.rows("results", index, "verdicts", place, "cells"):
                yield from _interval(row, ("results", index, "verdicts", place, "cells", cell), positive=ratio)


def _figures(spec: Spec, index: int) -> Iterator[Finding]:
    columns = spec.listing("results", index, "figures", "columns")
    for place, row in enumerate(spec.listing("results", index, "figures", "rows")):
        if not isinstance(row, list):
            continue
        path = pointer("results", index, "figures", "rows", place)
        if len(row) != len(columns):
            yield Finding(path, f"{len(row)} values in a table of {len(columns)} columns", HELP)
            continue
        cells = dict(zip(map(str, columns), row, strict=True))
        for column, value in cells.items():
            wrong = _wrong(column, value, spec.k, cells.get("arm") == "pair")
            if wrong:
                yield Finding(f"{path}/{list(cells).index(column)}", f"{column} {value}: {wrong}", HELP)


def _wrong(column: str, value: Any, k: int | None, speculates: bool) -> str:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return ""
    if column in RATES and not 0 <= value <= 1:
        return "a rate lies between 0 and 1"
    if column in RATES and value and not speculates:
        return "an arm without speculation accepts nothing"
    if column in LENGTHS and k is not None and not 1 <= value <= k + 1 and (speculates or value):
        return f"a step gives 1 to K + 1 = {k + 1} tokens"
    return "it cannot be negative" if column in metrics() and value < 0 else ""


def _interval(row: dict[str, Any], keys: tuple[str | int, ...], positive: bool) -> Iterator[Finding]:
    value, low, high = (row.get(name) for name in ("value", "low", "high"))
    numbers = [x for x in (low, value, high) if isinstance(x, (int, float)) and not isinstance(x, bool)]
    if len(numbers) == 3 and numbers != sorted(numbers):
        yield Finding(pointer(*keys, "value"), f"{value} does not lie in its interval [{low}, {high}]", HELP)
    if positive and numbers and min(numbers) <= 0:
        yield Finding(pointer(*keys, "value"), "a ratio is positive", HELP)


def _is_ratio(spec: Spec, name: Any) -> bool:
    """Whether the criterion is a ratio of times or rates; counts of failures may be 0 on both sides."""
    found = next((row for _, row in spec.criteria if row.get("id") == name), {})
    return found.get("compare") == "ratio" and metrics().get(str(found.get("metric")), {}).get("kind") == "ratio"
