"""SL509 too-few-blocks: too few blocks, requests or warm-up requests for the verdicts that are asked for.

A cell with fewer than 4 valid blocks is undecided. A window has at least 8 requests per slot, and a percentile q is judged
with at least 10 requests beyond it: 20 for p50, 100 for p90, 200 for p95, 1000 for p99. For TTFT each slot's first request
does not count in closed loop. Each cell is warmed with at least two requests a slot.

Fails:

    load: {concurrency: [1, 8], requests: 32}
    criteria: [{id: tail, metric: ttft_p95, compare: ratio, at_most: 1.2}]

Passes:

    load: {concurrency: [1, 8], requests: 208}
    criteria: [{id: tail, metric: ttft_p95, compare: ratio, at_most: 1.2}]

Way out: raise the number that the message names, or judge a lower percentile.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from speclint.diagnostic import Finding, pointer
from speclint.releases import Release
from speclint.spec import Spec

SEVERITY = "error"
NEEDS = "spec"

LEAST_BLOCKS = 4
PER_SLOT = 8
BEYOND = 10
PERCENTILE = re.compile(r"(.+)_p(\d\d)")


def check(spec: Spec, release: Release | None) -> Iterator[Finding]:
    blocks = spec.at("protocol", "design", "blocks", kind=int)
    if blocks is not None and blocks < LEAST_BLOCKS:
        message = f"with {blocks} blocks every criterion stays undecided; {LEAST_BLOCKS} valid blocks are needed"
        yield Finding("/protocol/design/blocks", message, "write 6: it decides about an 11 % distance at 5 % spread")
    requests, levels = spec.at("protocol", "load", "requests", kind=int), spec.concurrency
    if requests is None or not levels:
        return
    busiest = max(levels)
    related = (("/protocol/load/concurrency", "highest level here"),)
    if requests < PER_SLOT * busiest:
        message = f"{requests} requests a window at concurrency {busiest}; {PER_SLOT * busiest} are needed"
        help = f"write {PER_SLOT * busiest} or more, or lower the level"
        yield Finding("/protocol/load/requests", message, help, related=related)
    warmup = spec.at("protocol", "design", "warmup", kind=int)
    if warmup is not None and warmup < 2 * busiest:
        message = f"{warmup} warm-up requests at concurrency {busiest}; two a slot ({2 * busiest}) are needed"
        yield Finding("/protocol/design/warmup", message, f"write {2 * busiest} or more", related=related)
    yield from _percentiles(spec, requests, levels)


def _percentiles(spec: Spec, requests: int, levels: list[int]) -> Iterator[Finding]:
    for index, row in spec.criteria:
        match = PERCENTILE.fullmatch(str(row.get("metric")))
        if match is None:
            continue
        level = row.get("concurrency", "all")
        slots = 0 if level == "open" else level if level in levels else max(levels)
        needed = math.ceil(BEYOND / (1 - int(match[2]) / 100) - 1e-9) + (slots if match[1] == "ttft" else 0)
        if requests < needed:
            where = f"at concurrency {slots}" if slots else "in open loop"
            message = f"`{row['metric']}` {where} needs {needed} requests a window, there are {requests}"
            help = f"write {needed} or more, or judge a lower percentile"
            related = (("/protocol/load/requests", "requests"),)
            yield Finding(pointer("protocol", "criteria", index, "metric"), message, help, related=related)
