"""SL312 reduced-draft-vocab-without-map: a head with a reduced vocabulary lacks the table to the target's ids.

Without the `d2t` tensor the head's ids are taken for the first ids of the target, without a message, and acceptance
collapses.

Source: NVIDIA-NeMo/Automodel#2447.

Fails:

    lock: {draft: {config: {draft_vocab_size: 32000}, weights: {format: safetensors}}}

Passes:

    lock: {draft: {config: {draft_vocab_size: 32000}, weights: {format: safetensors, draft_map_rows: 32000}}}

Way out: a checkpoint that holds the table, of one row per draft token.
"""

from __future__ import annotations

from collections.abc import Iterator

from speclint.diagnostic import Finding
from speclint.releases import Release
from speclint.spec import Spec

SEVERITY = "error"
NEEDS = "lock"

HELP = "use a checkpoint whose `d2t` tensor has one row per draft token"


def check(spec: Spec, release: Release | None) -> Iterator[Finding]:
    draft = spec.at("lock", "draft", "config", "draft_vocab_size", kind=int)
    target = spec.at("lock", "target", "config", "vocab_size", kind=int)
    weights = spec.section("lock", "draft", "weights")
    if draft is None or target is None or draft >= target or "headers" in weights or not weights:
        return
    rows = weights.get("draft_map_rows")
    path = "/lock/draft/config/draft_vocab_size"
    if rows is None:
        message = f"the head drafts {draft} of {target} tokens and its weights hold no table to the target's ids"
        yield Finding(path, message, HELP, "NVIDIA-NeMo/Automodel#2447")
    elif rows != draft:
        message = f"the head drafts {draft} tokens and its table to the target's ids has {rows} rows"
        yield Finding(path, message, HELP, related=(("/lock/draft/weights/draft_map_rows", "rows"),))
