"""Open loop: when requests are due, whatever is in flight."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import accumulate
from typing import Any, Literal

from speclint.workload import Draw

OPEN: Literal["open"] = "open"
Level = int | Literal["open"]  # requests in flight, or the open loop of protocol.arrival


def due_times(arrival: Mapping[str, Any], count: int, *window: object) -> list[float]:
    """Poisson arrivals: the due time of each request, decided by `protocol.arrival` and the window's name. Unit: s.

    Gaps are drawn as they come. They are not stretched to end at count / rate, which would take the bursts of a short
    window away.
    """
    draw = Draw("arrival", arrival["seed"], *window)
    gaps = (-math.log(1 - draw.unit()) / arrival["rate"] for _ in range(count))
    return [round(time, 6) for time in accumulate(gaps)]


def place(level: Level | None, of: str = "") -> str:
    """A cell's load in words, after the workload's name: `at 4` (`at concurrency 4` with `of`), or `in open loop`."""
    return "in open loop" if level == OPEN else f"at {of}{level}"
