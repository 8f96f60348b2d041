"""SL519 lock-step-lengths: answers of one length make the target's requests finish and prefill together.

In the pair they do not, because acceptance differs. Simulated at concurrency 8 with decode work equal in both arms: the ratio
of median TTFT is 0.66 with fixed lengths and 1.64 with spread ones, and throughput is 9 % low with fixed ones.

Fails:

    load: {concurrency: [1, 8], requests: 64}
    output: {tokens: 32, stop: length}

Passes:

    load: {concurrency: [1, 8], requests: 64}
    output: {tokens: 32, spread: 0.5, stop: length}

Way out: `spread: 0.5`; the lengths are the same list in every arm.
"""

from __future__ import annotations

from collections.abc import Iterator

from speclint.diagnostic import Finding, pointer
from speclint.releases import Release
from speclint.spec import Spec

SEVERITY = "error"
NEEDS = "spec"


def check(spec: Spec, release: Release | None) -> Iterator[Finding]:
    if not spec.concurrency or max(spec.concurrency) == 1:
        return
    for index, _ in spec.rows("protocol", "workloads"):
        output = spec.section("protocol", "workloads", index, "output")
        if output.get("stop") != "length" or output.get("spread", 0) != 0:
            continue
        message = "answers of one length run in lock-step in the target and not in the pair: TTFT ratios change sign"
        related = (("/protocol/load/concurrency", "above 1 here"),)
        path = pointer("protocol", "workloads", index, "output", "spread" if "spread" in output else "tokens")
        yield Finding(path, message, "write `spread: 0.5` beside it", related=related)
