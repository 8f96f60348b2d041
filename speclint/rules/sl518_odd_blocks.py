"""SL518 odd-blocks: an odd number of blocks leaves a drift of the machine in the ratio.

The order of arms is mirrored in every second block, so that warming, throttling and neighbours cancel over each pair of
blocks. The last block of an odd number has no mirror image.

Fails:

    design: {blocks: 5, warmup: 16}

Passes:

    design: {blocks: 6, warmup: 16}

Way out: an even number.
"""

from __future__ import annotations

from collections.abc import Iterator

from speclint.diagnostic import Finding
from speclint.releases import Release
from speclint.spec import Spec

SEVERITY = "error"
NEEDS = "spec"


def check(spec: Spec, release: Release | None) -> Iterator[Finding]:
    blocks = spec.at("protocol", "design", "blocks", kind=int)
    if blocks is not None and blocks % 2:
        message = f"{blocks} blocks: the last one has no mirror image, so a drift of the machine does not cancel"
        yield Finding("/protocol/design/blocks", message, f"write {blocks + 1}")
