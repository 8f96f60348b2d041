"""SL208 remote-code-unpinned: `trust_remote_code` runs Python from the hub at whatever commit it has today.

The model's revision does not pin code that its config refers to in another repository.

Fails:

    engine_args: {trust_remote_code: true}
    target: {model: org/name, revision: b968826d9c46dd6066d109eabc6255188de91218}

Passes:

    engine_args: {trust_remote_code: true}
    target: {model: org/name, revision: b968…, code_revision: b968826d9c46dd6066d109eabc6255188de91218}

Way out: add `code_revision`, or do without remote code.
"""

from __future__ import annotations

from collections.abc import Iterator

from speclint.diagnostic import Finding, pointer
from speclint.methods import draft_model
from speclint.releases import Release
from speclint.spec import Spec, is_local

SEVERITY = "error"
NEEDS = "spec"


def check(spec: Spec, release: Release | None) -> Iterator[Finding]:
    if spec.engine_args.get("trust_remote_code") is not True:
        return
    named = ((spec.at("pair", "target", "model", kind=str), "target"), (draft_model(spec), "speculative"))
    for model, side in named:
        keys = ("pair", side)
        if model is None or "code_revision" in spec.section(*keys):
            continue
        if is_local(model, spec.at(*keys, "revision", kind=str), spec.folder):
            continue  # its code is inside the tree digest
        message = f"trust_remote_code is on and the code of `{model}` is not pinned"
        related = (("/pair/engine_args/trust_remote_code", "switched on here"),)
        yield Finding(pointer(*keys, "model"), message, "add `code_revision` with the full commit", related=related)
