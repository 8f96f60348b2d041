"""SL412 head-does-not-fit: a head was built for a target of another width, depth or name, or is run by another method.

An EAGLE head reads one layer of the target beside the token's embedding, EAGLE-3, DFlash and DSpark heads read several layers,
Medusa and MLP speculators work on the last one itself. Run by the wrong method, a head starts and nothing it drafts is
accepted; layers that the target does not have end in a shape error after minutes of loading.

Source: vllm/model_executor/models/llama_eagle.py, llama_eagle3.py, qwen3_dflash.py; vllm-project/vllm#18906, #19174;
sgl-project/sglang#21272.

Fails:

    speculative: {method: eagle3}
    lock: {target: {config: {hidden_size: 8192}}, draft: {config: {hidden_size: 6144}, weights: {fused_width: 24576}}}

Passes:

    speculative: {method: eagle3}
    lock: {target: {config: {hidden_size: 4096}}, draft: {config: {hidden_size: 4096}, weights: {fused_width: 12288}}}

Way out: a head that was trained on this target, or the method that its card names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from speclint.contracts import CONTRACTS, declared_method
from speclint.diagnostic import Finding
from speclint.methods import HEADS
from speclint.releases import Release
from speclint.spec import Spec, is_local

SEVERITY = "error"
NEEDS = "lock"

FUSED = "/lock/draft/weights/fused_width"
WIDTH = "/lock/target/config/hidden_size"
LAYERS = "/lock/draft/config/target_layers"
HELP = "take a head that was trained on this target"


def check(spec: Spec, release: Release | None) -> Iterator[Finding]:
    if "draft" not in spec.lock or spec.method not in CONTRACTS:
        return
    other = _other_method(spec)
    if other:
        message = f"the draft's files say {other}, and {spec.method} would run it as what it is not"
        yield Finding("/pair/speculative/method", message, f"write `{other}`")
    elif spec.method in HEADS:
        yield from _base_model(spec)
        yield from _depth(spec)
        yield from _width(spec)


def _other_method(spec: Spec) -> str | None:
    """The method that the head needs, if it is not the spec's."""
    declared = declared_method(spec)
    width = spec.at("lock", "target", "config", "hidden_size", kind=int)
    fused = spec.at("lock", "draft", "weights", "fused_width", kind=int)
    if declared is None and spec.method == "eagle" and width and fused == 3 * width:
        return "eagle3"
    return declared if declared != spec.method else None


def _base_model(spec: Spec) -> Iterator[Finding]:
    """Names are compared where both are hub ids: a folder's name says nothing, and variants carry the base's name."""
    made_for = spec.at("lock", "draft", "config", "base_model", kind=str)
    target, revision = spec.at("pair", "target", "model", kind=str), spec.at("pair", "target", "revision", kind=str)
    if not made_for or not target or is_local(target, revision, spec.folder):
        return
    ours, theirs = _family(target), _family(made_for)
    if ours not in theirs and theirs not in ours:
        message = f"the head's files name `{made_for}` as their target, not `{target}`"
        related = (("/pair/target/model", "this target"),)
        yield Finding("/lock/draft/config/base_model", message, HELP, related=related, severity="warning")


def _family(name: str) -> str:
    """Letters and digits of a model's name, without its organisation and the words that only say how it was tuned or stored."""
    words = re.sub(r"\b(meta|instruct|chat|it|base|hf)\b", "", name.rpartition("/")[2].lower())
    return re.sub(r"[^a-z0-9]", "", words)


def _depth(spec: Spec) -> Iterator[Finding]:
    layers = spec.at("lock", "target", "config", "num_hidden_layers", kind=int)
    read = [layer for layer in spec.listing("lock", "draft", "config", "target_layers") if isinstance(layer, int)]
    beyond = [layer for layer in read if layers and layer > layers]
    if beyond:
        message = f"the head reads the target's layers {_listed(read)}, and the target has {layers}"
        related = (("/lock/target/config/num_hidden_layers", "the target's layers"),)
        yield Finding(LAYERS, message, HELP, related=related)


def _listed(layers: list[int]) -> str:
    return ", ".join(str(layer) for layer in layers)


def _width(spec: Spec) -> Iterator[Finding]:
    width = spec.at("lock", "target", "config", "hidden_size", kind=int)
    fused = spec.at("lock", "draft", "weights", "fused_width", kind=int)
    read = len(spec.listing("lock", "draft", "config", "target_layers"))
    if not width:
        return
    related = ((WIDTH, "the target's width"),)
    if fused is not None and fused % width:
        message = f"the head reads {fused} numbers, no multiple of the target's width {width}"
        yield Finding(FUSED, message, HELP, related=related)
    elif fused is not None and read and fused != read * width:
        message = f"the head's input is {fused} wide, and {read} layers of the target are {read * width}"
        yield Finding(FUSED, message, HELP, related=(*related, (LAYERS, "the layers that it reads")))
    else:
        yield from _own_width(spec, width)


def _own_width(spec: Spec, width: int) -> Iterator[Finding]:
    """A head without embeddings of its own takes the target's, which must have its width; some work on its states alone."""
    own = spec.at("lock", "draft", "config", "hidden_size", kind=int)
    weights = spec.section("lock", "draft", "weights")
    same = CONTRACTS[spec.method or ""].same_width
    if own in (None, width) or (not same and ("headers" in weights or weights.get("embedding_rows"))):
        return
    why = "it works on the target's hidden states" if same else "the head has no embeddings of its own"
    message = f"the head is {own} wide, the target {width}, and {why}"
    yield Finding("/lock/draft/config/hidden_size", message, HELP, related=((WIDTH, "the target's width"),))
