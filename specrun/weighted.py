"""One figure over several workloads: the geometric mean of their ratios, with weights that the spec states, and never without."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from specrun.arrival import Level
from specrun.evidence import Evidence, Series, series

NAME = "weighted"  # stands where a verdict names the workload


def weighted(criterion: Mapping[str, Any], level: Level | None, evidence: Evidence) -> Series:
    """Each block's weighted ratio at one level. A block that is void in one workload is void; one without a value has none."""
    parts = {name: series(evidence, (name, level), criterion["metric"], over="target") for name in criterion["weights"]}
    void = {block: f"{name}: {why}" for name, part in parts.items() for block, why in part.void.items()}
    faults = [f"{name}: {why}" for name, part in parts.items() for why in part.faults]
    blocks = sorted({block for part in parts.values() for block in part.values})
    ratios = {block: [part.values.get(block) for part in parts.values()] for block in blocks}
    weights = [*criterion["weights"].values()]
    return Series({b: None if b in void else _mean(values, weights) for b, values in ratios.items()}, void, faults)


def _mean(values: list[float | None], weights: list[float]) -> float | None:
    known = [value for value in values if value is not None]
    if len(known) < len(weights):
        return None
    return math.exp(math.fsum(w * math.log(value) for w, value in zip(weights, known, strict=True)) / math.fsum(weights))
