"""SL407 speculative-token-count: the number of draft tokens is missing, not positive, or beyond what can be verified.

A missing count is an error or the draft's own default, by release and method. Verification takes at most 32 draft tokens a
step up to 0.10.2 and 128 from 0.11.0 (an assertion without a message). A head trained for n tokens takes n or less, or a
multiple of n; Medusa has as many heads as its checkpoint holds, and a DFlash or DSpark draft was trained for its block only.

Source: vllm/config/speculative.py, 0.8.2 on; vllm/v1/sample/rejection_sampler.py; vllm-project/vllm#5893, #44566.

Fails:

    speculative: {method: ngram, num_speculative_tokens: 0}

Passes:

    speculative: {method: ngram, num_speculative_tokens: 4}

Way out: write the count; 2 to 5 is usual for draft models.
"""

from __future__ import annotations

from collections.abc import Iterator

from speclint.contracts import trained_tokens
from speclint.diagnostic import Finding
from speclint.releases import Release
from speclint.spec import Spec

SEVERITY = "error"
NEEDS = "spec"

PATH = "/pair/speculative/num_speculative_tokens"


def check(spec: Spec, release: Release | None) -> Iterator[Finding]:
    if spec.method is None:
        return
    if "num_speculative_tokens" not in spec.speculative:
        message = "num_speculative_tokens is missing; without it the count is the draft's own default or an error"
        yield Finding("/pair/speculative", message, "write the number of draft tokens per step", on_key=True)
        return
    k = spec.k
    if k is None:
        return
    limit = 32 if release is not None and release.in_range(None, "0.10.2") else 128
    if k < 1:
        yield Finding(PATH, f"{k} draft tokens per step: at least 1 is needed", "write 1 or more")
    elif k > limit:
        message = f"{k} draft tokens per step; at most {limit} can be verified"
        yield Finding(PATH, message, f"write {limit} or less", "vllm/v1/sample/rejection_sampler.py")
    else:
        yield from _trained(spec, k)
        yield from _beyond(spec, k)


def _beyond(spec: Spec, k: int) -> Iterator[Finding]:
    """Medusa's missing heads have no weights; a block is only drafted worse beyond its end."""
    most = trained_tokens(spec)
    if most is None or k <= most:
        return
    fact = "heads" if spec.method == "medusa" else "block_size"
    message = f"{k} draft tokens per step from a draft made for {most}"
    related = ((f"/lock/draft/config/{fact}", "made for"),)
    yield Finding(PATH, message, f"write {most} or less", related=related, severity=None if fact == "heads" else "warning")


def _trained(spec: Spec, k: int) -> Iterator[Finding]:
    side = "draft" if "draft" in spec.lock else "target"
    trained = spec.at("lock", side, "config", "n_predict", kind=int)
    if trained is None or k <= trained or k % trained == 0:
        return
    message = f"{k} draft tokens per step is no multiple of the {trained} that the head was trained for"
    related = ((f"/lock/{side}/config/n_predict", "trained for"),)
    yield Finding(PATH, message, f"write {trained} or a multiple", "vllm/config/speculative.py, 0.8.2 on", related=related)
