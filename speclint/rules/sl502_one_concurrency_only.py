"""SL502 one-concurrency-only: one concurrency level shows one side of the trade.

Alone, the target waits for memory and verification is nearly free; under load drafts compete with other requests. Reported
for an n-gram draft on a 7B: 12.7 against 15.7 ms a token alone, 19.4 against 18.5 with 16 requests.

Source: vllm-project/vllm#27379, #4266.

Fails:

    load: {concurrency: [1], requests: 32}

Passes:

    load: {concurrency: [1, 8], requests: 64}

Way out: add the level that the service runs at, or 1.
"""

from __future__ import annotations

from collections.abc import Iterator

from speclint.diagnostic import Finding
from speclint.releases import Release
from speclint.spec import Spec

SEVERITY = "error"
NEEDS = "spec"


def check(spec: Spec, release: Release | None) -> Iterator[Finding]:
    if len(set(spec.concurrency)) == 1 and len(spec.listing("protocol", "load", "concurrency")) == 1:
        level = spec.concurrency[0]
        message = f"{level} is the only concurrency level: gains alone and losses under load cannot be told apart"
        help = "add a level under load, such as 8" if level == 1 else "add level 1"
        yield Finding("/protocol/load/concurrency", message, help)
