"""SL509 too-few-blocks: too few blocks, requests or warm-up requests for the verdicts that are asked for.

A cell with fewer than 4 valid blocks is undecided. A window has at least 8 requests per slot and 16 in all, and a percentile q
is judged with at least 10 requests beyond it: 20 for p50, 100 for p90, 200 for p95, 1000 for p99. For TTFT each slot's first
request does not count in closed loop. Each cell is warmed with at least two requests a slot. One number holds for every level; a
list has a number for each of `concurrency`, so that one slot need not send as many as sixty-four.

Fails:

    load: {concurrency: [1, 8], requests: 32}
    criteria: [{id: tail, metric: ttft_p95, compare: ratio, at_most: 1.2}]

Passes:

    load: {concurrency: [1, 8], requests: [201, 208]}
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
LEAST = 16  # of a window at any level: figures of fewer hang on which prompts came first
BEYOND = 10
REQUESTS, WARMUP, LEVELS = ("protocol", "load", "requests"), ("protocol", "design", "warmup"), "/protocol/load/concurrency"
PERCENTILE = re.compile(r"(.+)_p(\d\d)")


def check(spec: Spec, release: Release | None) -> Iterator[Finding]:
    blocks = spec.at("protocol", "design", "blocks", kind=int)
    if blocks is not None and blocks < LEAST_BLOCKS:
        message = f"with {blocks} blocks every criterion stays undecided; {LEAST_BLOCKS} valid blocks are needed"
        yield Finding("/protocol/design/blocks", message, "write 6: it decides about an 11 % distance at 5 % spread")
    requests = _by_level(spec, REQUESTS)
    yield from _of_each_level(requests, REQUESTS, PER_SLOT, "requests a window", "{} are needed", ", or lower the level")
    warmup = _by_level(spec, WARMUP)
    yield from _of_each_level(warmup, WARMUP, 2, "warm-up requests", "two a slot ({}) are needed", "")
    if isinstance(requests, dict) and requests:
        yield from _percentiles(spec, requests)


def _by_level(spec: Spec, path: tuple[str, ...]) -> dict[int, int] | Finding:
    """Requests at each level of concurrency; empty where the spec does not say, a finding where lists do not match."""
    levels, wanted = spec.concurrency, spec.at(*path, kind=object)
    counts = [wanted] * len(levels) if type(wanted) is int else wanted
    if not levels or not isinstance(counts, list) or any(type(count) is not int for count in counts):
        return {}
    if len(counts) != len(levels):
        message = f"{len(counts)} number{'s' if len(counts) != 1 else ''} for {len(levels)} levels of concurrency"
        help = "write one number for each level, in their order, or one for all"
        return Finding(pointer(*path), message, help, related=((LEVELS, "the levels"),))
    return dict(zip(levels, counts, strict=True))


def _of_each_level(
    found: dict[int, int] | Finding, path: tuple[str, ...], each: int, what: str, needed: str, other: str
) -> Iterator[Finding]:
    """The list that does not match, or the highest level with fewer than `each` requests for every slot."""
    if isinstance(found, Finding):
        yield found
        return
    least_at = {level: max(each * level, LEAST if path == REQUESTS else 0) for level in found}
    short = [level for level, count in found.items() if count < least_at[level]]
    if short:
        level, least = max(short), least_at[max(short)]
        message = f"{found[level]} {what} at concurrency {level}; {needed.format(least)}"
        yield Finding(pointer(*path), message, f"write {least} or more{other}", related=((LEVELS, "the level is here"),))


def _judged(requests: dict[int, int], level: object) -> dict[int, int]:
    """Requests at each level that a criterion speaks of; level 0 stands for the open loop."""
    if level == "open":
        return {0: max(requests.values())}
    return {level: requests[level]} if isinstance(level, int) and level in requests else requests


def _percentiles(spec: Spec, requests: dict[int, int]) -> Iterator[Finding]:
    for index, row in spec.criteria:
        match = PERCENTILE.fullmatch(str(row.get("metric")))
        if match is None:
            continue
        judged = _judged(requests, row.get("concurrency", "all"))
        beyond = math.ceil(BEYOND / (1 - int(match[2]) / 100) - 1e-9)
        least = {slots: beyond + (slots if match[1] == "ttft" else 0) for slots in judged}
        short = [slots for slots in judged if judged[slots] < least[slots]]
        if short:
            slots, needed = max(short), least[max(short)]
            where = f"at concurrency {slots}" if slots else "in open loop"
            message = f"`{row['metric']}` {where} needs {needed} requests a window, there are {judged[slots]}"
            help = f"write {needed} or more, or judge a lower percentile"
            related = ((pointer(*REQUESTS), "requests"),)
            yield Finding(pointer("protocol", "criteria", index, "metric"), message, help, related=related)
