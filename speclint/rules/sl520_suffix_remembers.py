"""SL520 suffix-remembers: suffix decoding keeps answers and drafts from them when a prompt comes again.

Every level of a block sends the same prompts to the same server, so later levels draft from the answers of earlier ones:
acceptance then measures the cache.

Source: vllm/config/speculative.py, 0.11.1 on (suffix_decoding_max_cached_requests, 10,000 by default).

Fails:

    speculative: {method: suffix, num_speculative_tokens: 8}

Passes:

    speculative: {method: suffix, num_speculative_tokens: 8, suffix_decoding_max_cached_requests: 0}

Way out: switch the cache off for the comparison.
"""

from __future__ import annotations

from collections.abc import Iterator

from speclint.diagnostic import Finding
from speclint.releases import Release
from speclint.spec import Spec

SEVERITY = "error"
NEEDS = "spec"


def check(spec: Spec, release: Release | None) -> Iterator[Finding]:
    if spec.method != "suffix" or spec.speculative.get("suffix_decoding_max_cached_requests") == 0:
        return
    repeated = spec.design.get("servers") == "resident" and spec.design.get("prompts") == "same"
    if spec.loads > 1 or repeated:
        message = "suffix decoding drafts from cached answers of the same prompts at an earlier level"
        related = (("/protocol/load/concurrency", "each level sends the same prompts"),)
        yield Finding("/pair/speculative/method", message, "write `suffix_decoding_max_cached_requests: 0`", related=related)
