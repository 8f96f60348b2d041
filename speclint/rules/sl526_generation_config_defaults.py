"""SL526 generation-config-defaults: the checkpoint brings sampling defaults that the spec does not mention.

A server that is started by hand fills what a request leaves out from generation_config.json; the run starts servers without
that file. A repetition penalty changes greedy answers too, and with them what is accepted. The file is looked for in the model's
folder and in the hub cache; where it is not here, nothing is said.

Source: vllm/engine/arg_utils.py `generation_config`, 0.8.2 on; vllm-project/vllm#32723.

Fails:

    target: {model: models/chat}      # its generation_config.json holds "repetition_penalty": 1.05
    sampling: {temperature: 0.0, top_p: 1.0, top_k: 0, seed: 0}

Passes:

    target: {model: models/chat}
    sampling: {temperature: 0.0, top_p: 1.0, top_k: 0, seed: 0, repetition_penalty: 1.05}

Way out: write the parameter under protocol.sampling, with the value that your service will have.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from speclint.diagnostic import Finding
from speclint.hub_cache import snapshot
from speclint.releases import Release
from speclint.requests import NEUTRAL
from speclint.spec import Spec

SEVERITY = "info"
NEEDS = "spec"

FILE = "generation_config.json"
FILLED = ("temperature", "top_p", "top_k", "min_p", "repetition_penalty")
MOST_BYTES = 100_000


def check(spec: Spec, release: Release | None) -> Iterator[Finding]:
    sampling = spec.at("protocol", "sampling", kind=dict)
    if sampling is None:
        return
    stated = _stated(spec)
    left_out = {name: stated[name] for name in FILLED if name in stated and name not in sampling}
    shown = ", ".join(f"{name} {value}" for name, value in left_out.items() if value not in NEUTRAL.get(name, (None,)))
    if shown:
        message = f"the checkpoint's {FILE} says {shown}; a server started by hand serves it, this run does not"
        related = (("/pair/target/model", "this checkpoint"),)
        yield Finding("/protocol/sampling", message, "write what your service will have", on_key=True, related=related)


def _stated(spec: Spec) -> dict[str, Any]:
    """What the target's file says; nothing if it is not here."""
    model, revision = spec.at("pair", "target", "model", kind=str), spec.at("pair", "target", "revision", kind=str)
    folders = [spec.folder / model, *([snapshot(model, revision)] if revision else [])] if model else []
    for folder in folders:
        try:
            with (folder / FILE).open("rb") as file:
                stated = json.loads(file.read(MOST_BYTES))
            return {name: value for name, value in stated.items() if isinstance(value, int | float)}
        except (OSError, ValueError, AttributeError, RecursionError):
            continue
    return {}
