"""SL211 unsafe-weights: weights are read from pickle files, which run code while they load.

Safetensors hold numbers only. `load_format: pt` reads pickle files even where safetensors lie beside them.

Source: vllm/model_executor/model_loader/default_loader.py, 0.8.2 on.

Fails:

    lock: {target: {weights: {format: pickle}}}

Passes:

    lock: {target: {weights: {format: safetensors}}}

Way out: a revision that has safetensors, or convert the checkpoint; take `load_format` away.
"""

from __future__ import annotations

from collections.abc import Iterator

from speclint.diagnostic import Finding, pointer
from speclint.releases import Release
from speclint.spec import Spec

SEVERITY = "warning"
NEEDS = "lock"


def check(spec: Spec, release: Release | None) -> Iterator[Finding]:
    for side, keys in (("target", ("pair", "target")), ("draft", ("pair", "speculative"))):
        stored = spec.at("lock", side, "weights", "format", kind=str)
        if stored == "pickle":
            message = f"the {side}'s weights are pickle files: loading them runs whatever code they hold"
            related = ((pointer(*keys, "model"), "this model"),)
            yield Finding(f"/lock/{side}/weights/format", message, "pin a revision with safetensors", related=related)
    if spec.engine_args.get("load_format") == "pt" and _has_both(spec):
        message = "`pt` reads pickle files, though safetensors lie beside them"
        yield Finding("/pair/engine_args/load_format", message, "take load_format away")


def _has_both(spec: Spec) -> bool:
    return any(spec.at("lock", side, "weights", "pickle_too", kind=bool) for side in ("target", "draft"))
