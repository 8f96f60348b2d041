"""SL313 adds-bos-differs: one tokenizer puts a beginning-of-text token before a prompt and the other does not.

The engine tokenizes with the target's tokenizer alone. A draft trained with BOS then reads every prompt without it, or the
reverse, and proposes worse.

Source: ggml-org/llama.cpp#3812; LostRuins/koboldcpp#2325.

Fails:

    lock: {target: {tokenizer: {add_bos: false}}, draft: {tokenizer: {add_bos: true}}}

Passes:

    lock: {target: {tokenizer: {add_bos: true}}, draft: {tokenizer: {add_bos: true}}}

Way out: expect lower acceptance, or use a draft of the same family.
"""

from __future__ import annotations

from collections.abc import Iterator

from speclint.diagnostic import Finding
from speclint.releases import Release
from speclint.spec import Spec

SEVERITY = "warning"
NEEDS = "lock"


def check(spec: Spec, release: Release | None) -> Iterator[Finding]:
    target, draft = spec.both("tokenizer", "add_bos", kind=bool)
    if spec.method != "draft_model" or target is None or draft is None or target == draft:
        return
    adds, lacks = ("target", "draft") if target else ("draft", "target")
    message = f"the {adds}'s tokenizer adds a beginning-of-text token, the {lacks}'s does not"
    related = (("/lock/target/tokenizer/add_bos", "target"),)
    help = "prompts are tokenized by the target's alone; expect lower acceptance"
    yield Finding("/lock/draft/tokenizer/add_bos", message, help, related=related)
