"""SL510 prefix-cache-uncontrolled: with prefix caching on, a window finds its prompts cached by the one before.

Every level of a block sends the same prompts, in another order of levels in each block. With the cache on, all but the first
window skip the prefill, and TTFT says which came first.

Source: vllm-project/vllm#15106, #12101.

Fails:

    load: {concurrency: [1, 4], requests: 32, prefix_caching: true}

Passes:

    load: {concurrency: [1, 4], requests: 32, prefix_caching: false}

Way out: switch it off for the comparison, or measure one level a spec and say so in `purpose`.
"""

from __future__ import annotations

from collections.abc import Iterator

from speclint.diagnostic import Finding
from speclint.releases import Release
from speclint.spec import Spec

SEVERITY = "warning"
NEEDS = "spec"


def check(spec: Spec, release: Release | None) -> Iterator[Finding]:
    if spec.load.get("prefix_caching") is not True:
        return
    again = spec.design.get("prompts") == "same" and spec.design.get("servers") == "resident"
    if spec.loads > 1 or again:
        message = "with prefix caching every window after the first finds its prompts in the cache"
        related = (("/protocol/load/concurrency", "each level sends the same prompts"),)
        yield Finding("/protocol/load/prefix_caching", message, "write false", related=related)
