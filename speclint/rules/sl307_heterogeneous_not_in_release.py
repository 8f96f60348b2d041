"""SL307 heterogeneous-not-in-release: this release does not map between vocabularies.

The setting came with 0.25.0. On 0.9.1 to 0.15.1 it is dropped without a word and the draft's ids are read as the target's;
on 0.16.0 to 0.24.0 the engine refuses it. On a GPU, 0.31.0 moved draft models to the V2 runner, where no code reads the
setting: ids pass unmapped, without a warning.

Source: vllm/config/speculative.py and v1/spec_decode/vocab_mapping.py, 0.25.0 on (PR 38174);
v1/worker/gpu/spec_decode/draft_model/speculator.py, 0.31.0.

Fails:

    engine: {name: vllm, version: "0.24.0"}
    vocabulary: {mode: heterogeneous}

Passes:

    engine: {name: vllm, version: "0.32.0"}
    vocabulary: {mode: heterogeneous}

Way out: 0.25.0 to 0.30.0, or 0.32.0 and later.
"""

from __future__ import annotations

from collections.abc import Iterator

from speclint.diagnostic import Finding
from speclint.methods import heterogeneous
from speclint.releases import Release
from speclint.spec import Spec

SEVERITY = "error"
NEEDS = "spec"

EFFECTS = {
    "dropped": "drops the setting without a word and reads draft ids as target ids",
    "refused": "refuses the setting",
    "type_error": "refuses the setting",
}


def check(spec: Spec, release: Release | None) -> Iterator[Finding]:
    if release is None or not heterogeneous(spec):
        return
    if "use_heterogeneous_vocab" not in release.settings:
        message = f"vLLM {release.version} has no heterogeneous vocabularies; it {EFFECTS[release.unknown_keys]}"
        source = "vllm/config/speculative.py, 0.25.0 on; PR 38174"
    elif release.in_range("0.31.0", "0.31.0") and spec.device == "cuda" and spec.method == "draft_model":
        message = f"vLLM {release.version} ignores use_heterogeneous_vocab on a GPU: ids pass unmapped, without a warning"
        source = "v1/worker/gpu/spec_decode/draft_model/speculator.py, 0.31.0"
    else:
        return
    related = (("/pair/engine/version", "this release"),)
    help = "use 0.25.0-0.30.0, or 0.32.0 and later"
    yield Finding("/pair/vocabulary/mode", message, help, source, related=related)
