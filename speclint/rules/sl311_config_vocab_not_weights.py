"""SL311 config-vocab-not-weights: a config states another vocabulary size than its embedding has rows.

Such a config was edited, often to get past the size check of shared mode. The weights do not load, or rows are made up.

Source: vllm-project/vllm#10913, #14939.

Fails:

    lock: {draft: {config: {vocab_size: 152064}, weights: {embedding_rows: 151936}}}

Passes:

    lock: {draft: {config: {vocab_size: 151936}, weights: {embedding_rows: 151936}}}

Way out: restore the published config, and see SL301 for ways out of different sizes.
"""

from __future__ import annotations

from collections.abc import Iterator

from speclint.diagnostic import Finding
from speclint.releases import Release
from speclint.spec import Spec

SEVERITY = "error"
NEEDS = "lock"


def check(spec: Spec, release: Release | None) -> Iterator[Finding]:
    for side in ("target", "draft"):
        stated = spec.at("lock", side, "config", "vocab_size", kind=int)
        rows = spec.at("lock", side, "weights", "embedding_rows", kind=int)
        if stated is None or rows is None or stated == rows:
            continue
        message = f"the {side}'s config says vocab_size {stated}, its embedding has {rows} rows"
        related = ((f"/lock/{side}/weights/embedding_rows", "read from the weights"),)
        yield Finding(f"/lock/{side}/config/vocab_size", message, "restore the published config", related=related)
