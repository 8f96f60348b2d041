"""SL408 ngram-window: one bound of the n-gram window alone fixes both.

Given alone, `prompt_lookup_max: 4` also makes the shortest match 4, not 1 as its description says: fewer matches, fewer
drafts. With neither, both are 5, in every release: only text that repeats five tokens is drafted from. The lower bound must not
exceed the upper.

Source: vllm/config/speculative.py, 0.8.2 to 0.33.0 (run on 0.32.0).

Fails:

    speculative: {method: ngram, num_speculative_tokens: 4, prompt_lookup_max: 4}

Passes:

    speculative: {method: ngram, num_speculative_tokens: 4, prompt_lookup_min: 2, prompt_lookup_max: 4}

Way out: write both bounds.
"""

from __future__ import annotations

from collections.abc import Iterator

from speclint.diagnostic import Finding, pointer
from speclint.releases import Release
from speclint.spec import Spec

SEVERITY = "warning"
NEEDS = "spec"

SOURCE = "vllm/config/speculative.py, 0.8.2-0.33.0"
DEFAULT = 5
BOUNDS = ("prompt_lookup_min", "prompt_lookup_max")


def check(spec: Spec, release: Release | None) -> Iterator[Finding]:
    if spec.method not in ("ngram", "ngram_gpu"):
        return
    low, high = (spec.at("pair", "speculative", name, kind=int) for name in BOUNDS)
    if low is not None and high is not None:
        if low > high:
            message = f"the shortest match {low} is longer than the longest {high}"
            related = ((pointer("pair", "speculative", BOUNDS[1]), "longest"),)
            path = pointer("pair", "speculative", BOUNDS[0])
            yield Finding(path, message, "swap them", SOURCE, related=related, severity="error")
    elif low is not None or high is not None:
        given, other = BOUNDS if low is not None else BOUNDS[::-1]
        value = low if low is not None else high
        message = f"{given} alone makes {other} {value} as well: only matches of exactly {value} tokens count"
        yield Finding(pointer("pair", "speculative", given), message, f"write {other} too", SOURCE)
    elif not any(name in spec.speculative for name in BOUNDS):
        message = f"without bounds both are {DEFAULT}: a draft comes only where the last {DEFAULT} tokens stood before"
        help = f"write {BOUNDS[0]} and {BOUNDS[1]}, {DEFAULT} and {DEFAULT} if that is meant"
        yield Finding("/pair/speculative/method", message, help, SOURCE, severity="info")
