"""SL430 target-speculates-by-itself: the target's own config switches speculation on, so no arm runs the target alone.

A checkpoint with `speculators_config` is a head, not a model: vLLM serves the verifier that it names, at no pinned revision,
with this head as its draft, whatever the command line says. No argument prevents it; only naming the verifier itself does.

Source: vllm/transformers_utils/config.py `maybe_override_with_speculators`, 0.10.1 on.

Fails:

    target: {model: org/Qwen3-8B-speculator.eagle3}
    lock: {target: {config: {speculators: true}}}

Passes:

    target: {model: Qwen/Qwen3-8B}
    speculative: {method: eagle3, model: org/Qwen3-8B-speculator.eagle3}
    lock: {draft: {config: {speculators: true}}}

Way out: the verifier as target, this checkpoint as draft.
"""

from __future__ import annotations

from collections.abc import Iterator

from speclint.diagnostic import Finding
from speclint.releases import Release
from speclint.spec import Spec

SEVERITY = "error"
NEEDS = "lock"


def check(spec: Spec, release: Release | None) -> Iterator[Finding]:
    config = spec.section("lock", "target", "config")
    if config.get("speculators") is not True or (release is not None and not release.in_range("0.10.1", None)):
        return
    verifier, method = config.get("base_model"), config.get("proposes")
    served = f"`{verifier}`" if verifier else "the verifier that it names"
    message = f"the target's config switches speculation on: in every arm vLLM serves {served} with this checkpoint as its draft"
    help = f"name {served} as target, and this checkpoint under pair.speculative" + (f" with method `{method}`" if method else "")
    source = "vllm/transformers_utils/config.py, 0.10.1 on"
    related = (("/lock/target/config/speculators", "read from its config"),)
    yield Finding("/pair/target/model", message, help, source, related=related)
