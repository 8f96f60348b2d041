"""SL202 revision-missing: a target, draft or tokenizer without a revision.

Without one the hub's newest state is loaded, at each start anew. A pinned target beside an unpinned draft is the common
case: the draft's own `revision` belongs inside `speculative`.

Source: reported for launchers that fetch the drafter from main (raullenchai/Rapid-MLX#2920, sgl-project/sglang#5255).

Fails:

    speculative: {method: draft_model, model: Qwen/Qwen3-0.6B, num_speculative_tokens: 3}

Passes:

    speculative: {method: draft_model, model: Qwen/Qwen3-0.6B,
                  revision: c1899de289a04d12100db370d81485cdf75e47ca, num_speculative_tokens: 3}

Way out: add `revision`: the full commit of a hub id, or the tree digest of a local folder.
"""

from __future__ import annotations

from collections.abc import Iterator

from speclint.diagnostic import Finding, pointer
from speclint.methods import draft_model
from speclint.releases import Release
from speclint.spec import Spec, is_local

SEVERITY = "error"
NEEDS = "spec"

REFERENCES = (
    ("target", ("pair", "target")),
    ("tokenizer", ("pair", "target", "tokenizer")),
    ("draft", ("pair", "speculative")),
)


def check(spec: Spec, release: Release | None) -> Iterator[Finding]:
    for what, keys in REFERENCES:
        model = spec.at(*keys, "model", kind=str)
        if model is None or "revision" in spec.section(*keys) or (what == "draft" and draft_model(spec) is None):
            continue
        local = is_local(model, None, spec.folder)
        help = "`speclint lock` prints the tree digest to paste" if local else "add the 40-digit commit as `revision`"
        yield Finding(pointer(*keys, "model"), f"the {what} `{model}` has no revision", help)
