"""SL531 expected-answer-impossible: answers cannot, or may not, all end as `request.expect` asks: no run is established then.

With `stop: length` every answer is kept from ending by itself and its finish reason is `length`: to expect `stop` is an error.
With `stop: natural` an answer that ends by itself has `stop`, and one that reaches its limit has `length`: to expect either of
all answers is a warning, for one that ends the other way is enough. The check comes after the run, when all of it is measured.

Fails:

    request: {endpoint: completions, expect: {finish_reason: stop}}
    output: {tokens: 128, spread: 0.5, stop: length}

Passes:

    request: {endpoint: completions, expect: {finish_reason: length}}
    output: {tokens: 128, spread: 0.5, stop: length}

Way out: `length` where every workload has `stop: length`, else `any`.
"""

from __future__ import annotations

from collections.abc import Iterator

from speclint.diagnostic import Finding, Severity, pointer
from speclint.releases import Release
from speclint.spec import Spec

SEVERITY = "error"
NEEDS = "spec"

EXPECTED = "/protocol/request/expect/finish_reason"
DOUBTFUL: dict[tuple[str | None, str | None], tuple[Severity, str, str]] = {
    ("stop", "length"): ("error", "never end by themselves", "write `length`"),
    ("length", "natural"): ("warning", "may end by themselves", "write `any`"),
    ("stop", "natural"): ("warning", "may reach their limit", "write `any`"),
}
"""By what is expected and how answers stop: severity, what answers do instead, and the way out."""


def check(spec: Spec, release: Release | None) -> Iterator[Finding]:
    expected = spec.at("protocol", "request", "expect", "finish_reason", kind=str)
    for index, row in spec.rows("protocol", "workloads"):
        output = ("protocol", "workloads", index, "output", "stop")
        doubt = DOUBTFUL.get((expected, spec.at(*output, kind=str)))
        if doubt:
            severity, instead, help = doubt
            message = f"every answer is to end with `{expected}`, and those of workload `{row.get('id')}` {instead}"
            yield Finding(EXPECTED, message, help, related=((pointer(*output), "here"),), severity=severity)
