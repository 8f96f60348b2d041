"""Whether a result's verdicts follow from the figures that stand in the same entry, and whether two sets of figures agree.

Blocks are stored with 6 significant digits, so an interval recomputed from them may differ from the stored one by a few
units of the sixth digit; a verdict must follow from the stored interval exactly.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from speclint.data import metrics
from specrun.arrival import place
from specrun.compare import interval_of
from specrun.evidence import START_METRICS
from specrun.scope import NOTHING

TOLERANCE = 5e-5
"""Of an interval recomputed from stored blocks, relative to its largest number."""

Criterion = Mapping[str, Any]


def contradictions(entry: Mapping[str, Any], protocol: Mapping[str, Any]) -> list[str]:
    """What in the entry's verdicts contradicts its own intervals and blocks, in words."""
    criteria = {criterion["id"]: criterion for criterion in protocol["criteria"]}
    verdicts = entry["verdicts"]
    if entry["established"]["verdict"] != "established":
        return ["criteria were judged although the pair was not established"] if verdicts else []
    if [verdict["id"] for verdict in verdicts] != list(criteria):
        return ["the criteria judged are not those of the spec, in their order"]
    if any(sentence.startswith(NOTHING) for sentence in entry["scope"]) and {v["verdict"] for v in verdicts} != {"undecided"}:
        return ["a verdict stands beside the words that nothing is judged"]
    return [text for verdict in verdicts for text in _of_verdict(criteria[verdict["id"]], verdict, protocol)]


def unlike(stored: Any, found: Any, at: str = "") -> Iterator[str]:
    """Pointers at which a recomputed value differs from the stored one: numbers by more than 1 in the sixth digit."""
    if isinstance(stored, dict) and isinstance(found, dict) and stored.keys() == found.keys():
        for key in stored:
            yield from unlike(stored[key], found[key], f"{at}/{key}")
    elif isinstance(stored, list) and isinstance(found, list | tuple) and len(stored) == len(found):
        for index, (one, other) in enumerate(zip(stored, found, strict=True)):
            yield from unlike(one, other, f"{at}/{index}")
    elif not _alike(stored, found):
        yield at or "/"


def _alike(stored: Any, found: Any) -> bool:
    if _is_number(stored) and _is_number(found):
        return bool(abs(stored - found) <= 1.001 * _sixth_digit(max(abs(stored), abs(found))))
    return type(stored) is type(found) and bool(stored == found)


def _sixth_digit(value: float) -> float:
    """One unit of the sixth significant digit."""
    return 10.0 ** (math.floor(math.log10(value)) - 5) if value else 0.0


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _of_verdict(criterion: Criterion, verdict: Mapping[str, Any], protocol: Mapping[str, Any]) -> Iterator[str]:
    cells, confidence = verdict["cells"], protocol["confidence"]
    for cell in cells:
        where = f"{verdict['id']}, {cell['workload']} {place(cell['concurrency'])}"
        yield from (f"{where}: {text}" for text in _of_cell(criterion, cell, confidence, len(cells)))
    claimed = "met" if verdict["verdict"] == "met_one_start" else verdict["verdict"]
    done, planned = _blocks(criterion, cells), protocol["design"]["blocks"]
    if claimed != "undecided" and done < planned:
        yield f"{verdict['id']}: called {claimed} after {done} of {planned} blocks"
    expected = _over_cells([cell["verdict"] for cell in cells])
    # A void cell makes a criterion undecided whatever the other cells say.
    if claimed != expected and not (claimed == "undecided" and _void(cells)):
        yield f"{verdict['id']}: called {claimed}, its cells say {expected}"


def _blocks(criterion: Criterion, cells: Sequence[Mapping[str, Any]]) -> float:
    """Blocks that a verdict rests on; what is read at a start need not be one of each block."""
    if criterion["metric"] in START_METRICS:
        return math.inf
    return max((len(cell["blocks"]) for cell in cells), default=math.inf)


def _over_cells(verdicts: Sequence[str]) -> str:
    if "not_met" in verdicts:
        return "not_met"
    return "met" if verdicts and set(verdicts) == {"met"} else "undecided"


def _void(cells: Sequence[Mapping[str, Any]]) -> bool:
    return any(cell["verdict"] == "undecided" and None in cell["blocks"] for cell in cells)


def _of_cell(criterion: Criterion, cell: Mapping[str, Any], confidence: float, cells: int) -> Iterator[str]:
    stored = tuple(cell[key] for key in ("value", "low", "high"))
    if None in stored:
        if cell["verdict"] != "undecided":
            yield f"called {cell['verdict']} without an interval"
        return
    values = [value for value in cell["blocks"] if value is not None]
    found = _interval(criterion, values, confidence)
    if found is None or not _close(stored, found):
        yield f"its blocks give {_shown(found)}, the entry says {_shown(stored)}"
        return
    expected = _verdict(criterion, stored, _interval(criterion, values, 1 - (1 - confidence) / cells) or stored)
    if cell["verdict"] != expected:
        yield f"called {cell['verdict']}, its interval says {expected}"


def _interval(criterion: Criterion, values: Sequence[float], confidence: float) -> tuple[float, float, float] | None:
    if not values:
        return None
    if metrics()[criterion["metric"]]["kind"] == "exact":
        worst = max(values) if "at_most" in criterion else min(values)
        return worst, worst, worst
    ratio = criterion.get("compare") == "ratio"
    if len(values) < 2 or (ratio and min(values) <= 0):
        return None
    return interval_of(values, ratio, confidence)


def _verdict(criterion: Criterion, interval: Sequence[float], wider: Sequence[float]) -> str:
    """Met by the stored interval; not met only if the interval for this many cells lies on the bad side too."""
    if "at_most" in criterion:
        met, not_met = interval[2] <= criterion["at_most"], wider[1] > criterion["at_most"]
    else:
        met, not_met = interval[1] >= criterion["at_least"], wider[2] < criterion["at_least"]
    return "met" if met else "not_met" if not_met else "undecided"


def _close(stored: Sequence[float], found: Sequence[float]) -> bool:
    scale = max(map(abs, found))
    return all(abs(one - other) <= TOLERANCE * scale for one, other in zip(stored, found, strict=True))


def _shown(interval: Sequence[float] | None) -> str:
    return "no interval" if interval is None else "{:.6g} [{:.6g}, {:.6g}]".format(*interval)
