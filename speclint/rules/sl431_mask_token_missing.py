"""SL431 mask-token-missing: a draft that proposes all positions at once names no mask token, or one outside its vocabulary.

Parallel drafting (PARD, P-EAGLE, DFlash, DSpark) fills the positions that are still to be drafted with a token of their own. A
draft that was not trained for it has none, and the engine stops while loading; an ordinary draft model cannot be made to draft
in parallel by the setting.

Source: vllm/v1/spec_decode/llm_base_proposer.py, vllm/v1/worker/gpu/spec_decode/utils.py, 0.16.0 on.

Fails:

    speculative: {method: draft_model, parallel_drafting: true}
    lock: {format: 2, draft: {config: {vocab_size: 151936}}}

Passes:

    speculative: {method: draft_model, parallel_drafting: true}
    lock: {format: 2, draft: {config: {vocab_size: 151936, mask_token: 151665}}}

Way out: a draft that was trained for parallel drafting, or take `parallel_drafting` away.
"""

from __future__ import annotations

from collections.abc import Iterator

from speclint.contracts import CONTRACTS
from speclint.diagnostic import Finding
from speclint.releases import Release
from speclint.spec import Spec

SEVERITY = "error"
NEEDS = "lock"

SOURCE = "vllm/v1/spec_decode/llm_base_proposer.py, 0.16.0 on"
FIRST_FORMAT = 2  # earlier locks do not hold the fact


def check(spec: Spec, release: Release | None) -> Iterator[Finding]:
    known = (spec.at("lock", "format", kind=int) or 0) >= FIRST_FORMAT and "draft" in spec.lock
    if not known or spec.method not in CONTRACTS or (release is not None and not release.in_range("0.16.0", None)):
        return
    asked = spec.speculative.get("parallel_drafting") is True
    if not (asked or CONTRACTS[spec.method].mask_token):
        return
    path = "/pair/speculative/parallel_drafting" if asked else "/pair/speculative/method"
    mask = spec.at("lock", "draft", "config", "mask_token", kind=int)
    rows = _rows(spec)
    if mask is None:
        message = "the draft's config names no mask token, which drafting in parallel needs"
        yield Finding(path, message, "use a draft that was trained for parallel drafting", SOURCE)
    elif rows and mask >= rows:
        message = f"the draft's mask token is {mask}, and its embedding has {rows} rows"
        yield Finding("/lock/draft/config/mask_token", message, "restore the published config", SOURCE)


def _rows(spec: Spec) -> int | None:
    """Rows of the embedding that the draft looks the token up in: its own, else the target's."""
    own = spec.at("lock", "draft", "weights", "embedding_rows", kind=int)
    return own or spec.at("lock", "target", "config", "vocab_size", kind=int)
