"""SL503 output-not-fixed: with `stop: length` something else can still end or lengthen answers.

Equal work is what makes the arms comparable: with `stop: length` every answer has its own fixed number of tokens in every
arm. Stop strings end answers early, and fields of `extra_body` replace what the runner sends.

Fails:

    output: {tokens: 32, spread: 0.5, stop: length}
    sampling: {stop: ["\\n"]}

Passes:

    output: {tokens: 32, spread: 0.5, stop: natural}
    sampling: {stop: ["\\n"]}

Way out: remove it, or use `stop: natural` and metrics that natural lengths allow (SL521).
"""

from __future__ import annotations

from collections.abc import Iterator

from speclint.diagnostic import Finding, pointer
from speclint.releases import Release
from speclint.spec import Spec

SEVERITY = "error"
NEEDS = "spec"

LENGTHS = ("max_tokens", "max_completion_tokens", "min_tokens", "ignore_eos", "stop", "stop_token_ids", "n")


def check(spec: Spec, release: Release | None) -> Iterator[Finding]:
    indexes = [index for index, _ in spec.rows("protocol", "workloads")]
    fixed = [i for i in indexes if spec.section("protocol", "workloads", i, "output").get("stop") == "length"]
    if not fixed:
        return
    related = ((pointer("protocol", "workloads", fixed[0], "output", "stop"), "lengths are fixed here"),)
    if spec.sampling.get("stop"):
        help = "remove the stop strings, or use `stop: natural`"
        yield Finding("/protocol/sampling/stop", "stop strings end answers before their length", help, related=related)
    for key in spec.section("protocol", "request", "extra_body"):
        if key in LENGTHS:
            path = pointer("protocol", "request", "extra_body", key)
            message = f"`{key}` replaces what the runner sends to fix the length of answers"
            yield Finding(path, message, "remove it", on_key=True, related=related)
