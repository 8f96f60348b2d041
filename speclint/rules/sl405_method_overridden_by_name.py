"""SL405 method-overridden-by-name: the draft's name makes vLLM choose another method than the spec's.

Unless the method is itself eagle, eagle3, dflash or dspark, vLLM looks for `eagle-`, `eagle3`, `dflash` and `dspark` in the
draft's path, in this order, and takes the method from it, even against an explicit `method`. A local draft is given to vLLM by
its absolute path: the word may stand in the name of a folder far above it.

Source: vllm/config/speculative.py: `eagle-` from 0.8.2, `eagle3` from 0.9.1, `dflash` from 0.20.0, `dspark` from 0.25.0;
vllm-project/vllm#47486.

Fails:

    speculative: {method: draft_model, model: models/my-eagle-draft}

Passes:

    speculative: {method: draft_model, model: models/my-draft}

Way out: rename the folder, or load the draft by a path without the word.
"""

from __future__ import annotations

from collections.abc import Iterator

from speclint.diagnostic import Finding
from speclint.methods import draft_model
from speclint.releases import Release
from speclint.spec import Spec, is_folder

SEVERITY = "error"
NEEDS = "spec"

WORDS = (
    ("eagle-", "eagle", "0.8.2"),
    ("eagle3", "eagle3", "0.9.1"),
    ("dflash", "dflash", "0.20.0"),
    ("dspark", "dspark", "0.25.0"),
)
KEPT = frozenset(method for _, method, _ in WORDS)


def check(spec: Spec, release: Release | None) -> Iterator[Finding]:
    model = draft_model(spec)
    if release is None or model is None or spec.method is None or spec.method in KEPT:
        return
    folder = spec.folder / model
    path = str(folder.resolve()) if is_folder(folder) else model
    for word, method, first in WORDS:
        if word in path.lower() and release.in_range(first, None):
            where = "name" if word in model.lower() else f"path, {path},"
            message = f"`{word}` in the draft's {where} makes vLLM {release.version} run method {method}, not {spec.method}"
            related = (("/pair/speculative/method", "asked for here"),)
            source = f"vllm/config/speculative.py, {first} on"
            help = "rename the folder that has the word in its name"
            yield Finding("/pair/speculative/model", message, help, source, related=related)
            return
