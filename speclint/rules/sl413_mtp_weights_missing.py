"""SL413 mtp-weights-missing: the config declares MTP layers and the weights hold none of them.

Requantized and fine-tuned checkpoints often drop the layer and keep the config. Earlier releases fill it from uninitialised
memory and accept nothing; later ones stop while loading.

Source: vllm-project/vllm#35548, #13704.

Fails:

    speculative: {method: mtp}
    lock: {target: {config: {mtp_layers: 1}, weights: {mtp_tensors: 0}}}

Passes:

    speculative: {method: mtp}
    lock: {target: {config: {mtp_layers: 1}, weights: {mtp_tensors: 12}}}

Way out: a checkpoint that ships the MTP layer, or another method.
"""

from __future__ import annotations

from collections.abc import Iterator

from speclint.diagnostic import Finding
from speclint.releases import Release
from speclint.spec import Spec

SEVERITY = "error"
NEEDS = "lock"


def check(spec: Spec, release: Release | None) -> Iterator[Finding]:
    method = spec.method or ""
    if (release.method_aliases.get(method, method) if release else method) != "mtp":
        return
    side = "draft" if "draft" in spec.lock else "target"
    declared = spec.at("lock", side, "config", "mtp_layers", kind=int)
    if declared and spec.at("lock", side, "weights", "mtp_tensors", kind=int) == 0:
        message = f"the config declares {declared} MTP layer(s), the weights hold none"
        related = ((f"/lock/{side}/config/mtp_layers", "declared here"), ("/pair/speculative/method", "asked for here"))
        yield Finding(f"/lock/{side}/weights/mtp_tensors", message, "take a checkpoint that ships them", related=related)
