"""SL210 hub-artifact-not-cached: with HF_HUB_OFFLINE set, a pinned model is not in this machine's hub cache.

A run here would stop while it loads. Nothing is said where the hub may be asked: there the run fetches the pinned revision.

Fails:

    target: {model: Qwen/Qwen3-8B, revision: b968…}      # HF_HUB_OFFLINE=1, no snapshot of b968… here

Passes:

    target: {model: Qwen/Qwen3-8B, revision: b968…}      # the snapshot is cached, or the hub may be asked

Way out: `hf download MODEL --revision REVISION` where the hub can be reached, or run where the model is.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from speclint.diagnostic import Finding, pointer
from speclint.hub_cache import snapshot
from speclint.methods import draft_model
from speclint.releases import Release
from speclint.spec import Spec, is_folder, is_local

SEVERITY = "info"
NEEDS = "spec"

COMMIT = re.compile(r"[0-9a-f]{40}")
REFERENCES = (("pair", "target"), ("pair", "target", "tokenizer"), ("pair", "speculative"))


def check(spec: Spec, release: Release | None) -> Iterator[Finding]:
    if os.environ.get("HF_HUB_OFFLINE", "").upper() not in ("1", "ON", "YES", "TRUE"):
        return
    for keys in REFERENCES:
        model, revision = spec.at(*keys, "model", kind=str), spec.at(*keys, "revision", kind=str)
        if not model or not revision or not COMMIT.fullmatch(revision) or is_local(model, revision, spec.folder):
            continue
        if keys[-1] == "speculative" and draft_model(spec) is None:
            continue
        if not is_folder(snapshot(model, revision)):
            message = f"`{model}` at {revision[:12]} is not in the hub cache here, and HF_HUB_OFFLINE is set"
            help = f"`hf download {model} --revision {revision}` where the hub can be reached"
            yield Finding(pointer(*keys, "model"), message, help)
