"""SL301 vocab-size-differs: in shared mode the two configs state different vocabulary sizes.

vLLM compares the padded number of the configs, not the tokenizers, and refuses the pair. Where every token id agrees the
difference is padding only; sizes of one family are often padded differently (Qwen2.5: 151936 and 152064).

Source: vllm/config/speculative.py, 0.15.0 on; vllm-project/vllm#13849, #42775.

Fails:

    lock: {target: {config: {vocab_size: 152064}}, draft: {config: {vocab_size: 151936}}}

Passes:

    lock: {target: {config: {vocab_size: 151936}}, draft: {config: {vocab_size: 151936}}}

Way out: a draft of a size that is padded like the target, or heterogeneous mode (0.25.0 on). Editing the config's number
does not help: the weights have the rows they have (SL311).
"""

from __future__ import annotations

from collections.abc import Iterator

from speclint.diagnostic import Finding
from speclint.releases import Release
from speclint.spec import Spec

SEVERITY = "error"
NEEDS = "lock"


def check(spec: Spec, release: Release | None) -> Iterator[Finding]:
    if spec.method != "draft_model" or spec.vocabulary_mode != "shared":
        return
    target, draft = spec.both("config", "vocab_size", kind=int)
    if target is None or draft is None or target == draft:
        return
    differ = spec.at("lock", "pair", "ids_differ", kind=int)
    message = f"vocab_size is {target} for the target and {draft} for the draft, and shared mode needs equal sizes"
    if differ == 0:
        message += f"; every token id agrees, so this is padding only ({abs(target - draft)} rows)"
    help = "use a draft size padded like the target, or mode heterogeneous (0.25.0 on)"
    related = (("/lock/target/config/vocab_size", "target"), ("/lock/draft/config/vocab_size", "draft"))
    yield Finding("/pair/vocabulary/mode", message, help, "vllm/config/speculative.py, 0.15.0 on", related=related)
