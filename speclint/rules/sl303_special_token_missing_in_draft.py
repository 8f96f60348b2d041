"""SL303 special-token-missing-in-draft: the draft's tokenizer lacks special tokens of the target.

If the chat template writes such a token or an answer stops at it, the draft can never propose it: every turn has steps
that are lost. Special tokens that nothing uses are only named.

Source: ggml-org/llama.cpp#3812, #4025; lmstudio-ai/lmstudio-bug-tracker#502.

Fails:

    lock: {draft: {tokenizer: {missing: {used: ["<turn_end>"], unused: [], count: 1}}}}

Passes:

    lock: {draft: {tokenizer: {missing: {used: [], unused: [], count: 0}}}}

Way out: a draft trained with the target's chat tokens.
"""

from __future__ import annotations

from collections.abc import Iterator

from speclint.diagnostic import Finding
from speclint.releases import Release
from speclint.spec import Spec

SEVERITY = "error"
NEEDS = "lock"

PATH = "/lock/draft/tokenizer/missing"


def check(spec: Spec, release: Release | None) -> Iterator[Finding]:
    if spec.method != "draft_model" or spec.vocabulary_mode != "shared":
        return
    missing = ("lock", "draft", "tokenizer", "missing")
    used, unused = spec.listing(*missing, "used"), spec.listing(*missing, "unused")
    count = spec.at(*missing, "count", kind=int) or 0
    if used:
        message = f"the draft lacks {_names(used)}, which the chat template or the end of an answer needs"
        yield Finding(PATH, message, "use a draft trained with the target's special tokens", on_key=True)
    elif count:
        tokens = f"{count} special tokens" if count > 1 else "one special token"
        message = f"the draft lacks {tokens} that neither template nor stop set uses: {_names(unused)}"
        yield Finding(PATH, message, "nothing to do unless prompts contain them", on_key=True, severity="info")


def _names(tokens: list[object]) -> str:
    return ", ".join(f"`{token}`" for token in tokens[:10])
