"""SL207 pin-not-honoured: in heterogeneous mode the engine reloads both tokenizers without a revision.

The weights stay pinned; the tokenizers that build the id map come from whatever the hub cache resolves `main` to. Offline
with one snapshot cached that is the pinned one.

Source: vllm/v1/spec_decode/draft_model.py, 0.25.0 to 0.33.0; vllm-project/vllm PR 54780.

Fails:

    vocabulary: {mode: heterogeneous}      # with hub ids

Passes:

    vocabulary: {mode: heterogeneous}      # with local folders, or HF_HUB_OFFLINE=1 and one snapshot

Way out: run with `HF_HUB_OFFLINE=1` and only the pinned snapshots in the cache.
"""

from __future__ import annotations

from collections.abc import Iterator

from speclint.diagnostic import Finding
from speclint.methods import heterogeneous
from speclint.releases import Release
from speclint.spec import Spec, is_local

SEVERITY = "info"
NEEDS = "spec"


def check(spec: Spec, release: Release | None) -> Iterator[Finding]:
    if release is None or not release.in_range("0.25.0", "0.33.0") or not heterogeneous(spec):
        return
    if spec.method != "draft_model" or not _from_hub(spec):
        return
    message = f"vLLM {release.version} reloads both tokenizers without a revision in heterogeneous mode"
    help = "run offline (HF_HUB_OFFLINE=1) with only the pinned snapshots in the hub cache"
    yield Finding("/pair/vocabulary/mode", message, help, "vllm/v1/spec_decode/draft_model.py, 0.25.0-0.33.0; PR 54780")


def _from_hub(spec: Spec) -> bool:
    for keys in (("pair", "target"), ("pair", "speculative")):
        model = spec.at(*keys, "model", kind=str)
        if model and not is_local(model, spec.at(*keys, "revision", kind=str), spec.folder):
            return True
    return False
