"""SL309 mode-contradicts-settings: `vocabulary.mode` says one thing and the speculative settings another.

The mode states what you mean; the settings are what vLLM gets.

Fails:

    vocabulary: {mode: heterogeneous}
    speculative: {method: draft_model, model: org/draft}

Passes:

    vocabulary: {mode: heterogeneous}
    speculative: {method: draft_model, model: org/draft, use_heterogeneous_vocab: true}

Way out: `shared` for a draft with the target's tokenizer, `heterogeneous` with `use_heterogeneous_vocab: true`, `none` for
ngram and suffix.
"""

from __future__ import annotations

from collections.abc import Iterator

from speclint.diagnostic import Finding
from speclint.methods import LOOKUP
from speclint.releases import Release
from speclint.spec import Spec

SEVERITY = "error"
NEEDS = "spec"

MODE = "/pair/vocabulary/mode"
FLAG = "/pair/speculative/use_heterogeneous_vocab"


def check(spec: Spec, release: Release | None) -> Iterator[Finding]:
    mode, flag = spec.vocabulary_mode, spec.speculative.get("use_heterogeneous_vocab")
    if mode is None or spec.method is None:
        return
    if mode == "heterogeneous" and flag is not True and spec.method == "draft_model":
        message = "mode heterogeneous needs `use_heterogeneous_vocab: true` in pair.speculative"
        yield Finding(MODE, message, "add it, or use mode shared", related=(("/pair/speculative", "settings"),))
    if mode != "heterogeneous" and flag is True:
        message = f"mode {mode} and `use_heterogeneous_vocab: true` contradict each other"
        yield Finding(MODE, message, "use mode heterogeneous, or remove the setting", related=((FLAG, "set here"),))
    if mode == "shared" and spec.method in LOOKUP:
        yield _method(spec, f"method `{spec.method}` has no draft vocabulary", "use mode none")
    if mode == "none" and spec.method not in LOOKUP and (release is None or spec.method in release.methods):
        yield _method(spec, f"method `{spec.method}` drafts tokens of a vocabulary", "use mode shared or heterogeneous")


def _method(spec: Spec, message: str, help: str) -> Finding:
    return Finding(MODE, message, help, related=(("/pair/speculative/method", "method"),))
