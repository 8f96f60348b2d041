"""SL608 verdict-contradicts-figures: a verdict is not what its interval and threshold say.

Met needs the whole interval on the good side of the threshold, not met an interval wholly on the other. A criterion is met
if every cell is, and not met if one cell is not.

Fails:

    criteria: [{id: faster, metric: request_duration_p50, compare: ratio, at_most: 0.9}]
    results: [{verdicts: [{id: faster, verdict: met, cells: [{value: 0.95, low: 0.91, high: 0.99, verdict: met}]}]}]

Passes:

    results: [{verdicts: [{id: faster, verdict: not_met, cells: [{value: 0.95, low: 0.91, high: 0.99, verdict: not_met}]}]}]

Way out: none by hand; `specrun verify` recomputes every figure from the records.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from speclint.diagnostic import Finding, pointer
from speclint.releases import Release
from speclint.spec import Spec

SEVERITY = "error"
NEEDS = "results"

HELP = "`specrun verify` recomputes it from the records"


def check(spec: Spec, release: Release | None) -> Iterator[Finding]:
    for index, entry in spec.results:
        yield from _coverage(spec, index, entry)
        for place, verdict in spec.rows("results", index, "verdicts"):
            yield from _verdict(spec, ("results", index, "verdicts", place), verdict)


def _coverage(spec: Spec, index: int, entry: dict[str, Any]) -> Iterator[Finding]:
    """An established result judges every criterion once, another one none."""
    listed = [verdict.get("id") for _, verdict in spec.rows("results", index, "verdicts")]
    established = spec.at("results", index, "established", "verdict", kind=str) == "established"
    wanted = [row.get("id") for _, row in spec.criteria] if established else []
    if "verdicts" in entry and sorted(map(str, listed)) != sorted(map(str, wanted)):
        said = ", ".join(map(str, listed)) or "none"
        message = f"verdicts are given for {said}; expected {', '.join(map(str, wanted)) or 'none'}"
        yield Finding(pointer("results", index, "verdicts"), message, HELP, on_key=True)


def _verdict(spec: Spec, keys: tuple[str | int, ...], verdict: dict[str, Any]) -> Iterator[Finding]:
    found = next(((i, row) for i, row in spec.criteria if row.get("id") == verdict.get("id")), None)
    if found is None:
        return
    place, criterion = found
    outcomes: list[str] = []
    for index, cell in spec.rows(*keys, "cells"):
        outcomes.append(str(cell.get("verdict")))
        allowed = _allowed(criterion, cell)
        if allowed and str(cell.get("verdict")) not in allowed:
            interval = f"[{cell['low']:g}, {cell['high']:g}]"
            message = f"`{cell.get('verdict')}` contradicts the interval {interval}"
            related = ((pointer("protocol", "criteria", place), "the criterion"),)
            yield Finding(pointer(*keys, "cells", index, "verdict"), message, HELP, related=related)
    stated = str(verdict.get("verdict"))
    if stated not in _overall(outcomes):
        message = f"`{stated}` contradicts its cells: {', '.join(outcomes) or 'none'}"
        yield Finding(pointer(*keys, "verdict"), message, HELP)


def _allowed(criterion: dict[str, Any], cell: dict[str, Any]) -> tuple[str, ...]:
    """Verdicts that the interval allows; beyond the threshold at this level, several cells may still leave it open."""
    low, high = cell.get("low"), cell.get("high")
    upper = "at_most" in criterion
    threshold = criterion.get("at_most", criterion.get("at_least"))
    if low is None and high is None:
        return ("undecided",) if cell.get("value") is None else ()
    if not all(isinstance(x, (int, float)) for x in (low, high, threshold)):
        return ()
    assert low is not None and high is not None and threshold is not None
    if high <= threshold if upper else low >= threshold:
        return ("met",)
    if low > threshold if upper else high < threshold:
        return ("not_met", "undecided")
    return ("undecided",)


def _overall(outcomes: list[str]) -> tuple[str, ...]:
    """Void cells make a criterion undecided whatever the others say."""
    if outcomes and all(outcome == "met" for outcome in outcomes):
        return ("met", "met_one_start", "undecided")
    return ("not_met", "undecided") if "not_met" in outcomes else ("undecided",)
