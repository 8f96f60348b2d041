"""SL528 cache-test-vacuous: prefix caching is on and no prompt comes twice, so nothing is ever found in the cache.

With fresh prompts, a restart in every block and one level, each prompt is sent once a server. The comparison would pass as one
with caching and shows nothing of it.

Fails:

    load: {concurrency: [4], requests: 64, prefix_caching: true}

Passes:

    load: {concurrency: [1, 4], requests: 64, prefix_caching: false}

Way out: switch it off, or bring a prompt file whose prompts share their beginnings.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from speclint.diagnostic import Finding
from speclint.releases import Release
from speclint.spec import Spec

SEVERITY = "warning"
NEEDS = "spec"


def check(spec: Spec, release: Release | None) -> Iterator[Finding]:
    if spec.load.get("prefix_caching") is not True or spec.loads != 1:
        return
    resident = spec.design.get("servers") == "resident" and spec.design.get("prompts") == "same"
    if resident or not spec.workloads or not all(_is_generated(row) for row in spec.workloads):
        return
    message = "prefix caching is on, and every prompt is sent once to a server: nothing can be found in the cache"
    related = (("/protocol/load/concurrency", "one level"), ("/protocol/design", "prompts and servers"))
    yield Finding("/protocol/load/prefix_caching", message, "write false, or use prompts that share beginnings", related=related)


def _is_generated(workload: dict[str, Any]) -> bool:
    prompts = workload.get("prompts")
    return isinstance(prompts, dict) and "generator" in prompts
