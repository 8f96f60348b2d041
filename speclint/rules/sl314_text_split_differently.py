"""SL314 text-split-differently: the ids agree, and the two tokenizers still make other tokens of the same text.

The engine tokenizes with the target's tokenizer alone. Where the draft's normaliser, pre-tokenizer or merges differ, it was
trained on other sequences of the same ids than the ones it is given, and proposes worse on such text.

Source: `speclint lock` gives a fixed list of texts to both tokenizers; vllm/v1/spec_decode/draft_model.py.

Fails:

    vocabulary: {mode: shared}
    lock: {pair: {ids_differ: 0, texts: {compared: 48, differ: 31}}}

Passes:

    vocabulary: {mode: shared}
    lock: {pair: {ids_differ: 0, texts: {compared: 48, differ: 0}}}

Way out: a draft with the target's whole tokenizer, or a criterion on acceptance that shows what it costs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from speclint.diagnostic import Finding
from speclint.releases import Release
from speclint.spec import Spec

SEVERITY = "warning"
NEEDS = "lock"


def check(spec: Spec, release: Release | None) -> Iterator[Finding]:
    if spec.method != "draft_model" or spec.vocabulary_mode != "shared" or _ordinary_ids_differ(spec):
        return
    texts = spec.section("lock", "pair", "texts")
    differ, compared = texts.get("differ"), texts.get("compared")
    if not isinstance(differ, int) or differ == 0:
        return
    message = f"{differ} of {compared} texts become other tokens by the draft's tokenizer, though the ids agree"
    help = f"{_example(spec)}use a draft with the target's whole tokenizer, or expect lower acceptance on such text"
    yield Finding("/lock/pair/texts/differ", message, help, related=(("/pair/vocabulary/mode", "shared"),))


def _ordinary_ids_differ(spec: Spec) -> bool:
    """Then texts differ for that reason alone, and SL302 says so."""
    return any(spec.at("lock", "pair", f"ids_differ_{kind}", kind=int) for kind in ("ordinary", "added"))


def _example(spec: Spec) -> str:
    first = spec.section("lock", "pair", "texts", "first")
    if not first:
        return ""
    text = json.dumps(first.get("text"), ensure_ascii=False)
    return f"first: {text} is {first.get('target_tokens')} tokens to the target, {first.get('draft_tokens')} to the draft; "
