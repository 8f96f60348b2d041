"""SL420 more-steps-than-layers: more draft tokens a step than the head has layers for, so that layers are used again.

vLLM runs the same MTP layer several times and warns that fewer drafts may be accepted. A number that is no multiple is an
error (SL407).

Source: vllm/config/speculative.py, 0.8.5 on; vllm-project/vllm#55323.

Fails:

    speculative: {method: mtp, num_speculative_tokens: 6}
    lock: {target: {config: {n_predict: 3}}}

Passes:

    speculative: {method: mtp, num_speculative_tokens: 3}
    lock: {target: {config: {n_predict: 3}}}

Way out: as many draft tokens as there are layers, or a K sweep that shows the positions beyond them.
"""

from __future__ import annotations

from collections.abc import Iterator

from speclint.diagnostic import Finding
from speclint.releases import Release
from speclint.spec import Spec

SEVERITY = "warning"
NEEDS = "lock"

PATH = "/pair/speculative/num_speculative_tokens"


def check(spec: Spec, release: Release | None) -> Iterator[Finding]:
    side = "draft" if "draft" in spec.lock else "target"
    for name in ("n_predict", "mtp_layers"):
        layers = spec.at("lock", side, "config", name, kind=int)
        if layers and layers > 0 and _is_multi_token(spec, release):
            if spec.k is not None and spec.k > layers and spec.k % layers == 0:
                message = f"{spec.k} draft tokens a step from {layers} trained layer(s): they are run {spec.k // layers} times"
                related = ((f"/lock/{side}/config/{name}", "trained"),)
                yield Finding(PATH, message, f"{layers} uses each layer once; a sweep shows what more is worth", related=related)
            return


def _is_multi_token(spec: Spec, release: Release | None) -> bool:
    method = spec.method or ""
    return (release.method_aliases.get(method, method) if release else method) in ("mtp", "mlp_speculator")
