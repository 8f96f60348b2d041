"""SL419 arms-differ: with this method and release the two arms differ in more than speculation.

Some methods switch asynchronous scheduling off, some move the pair to the other model runner, some lower its token budget. The
ratio of the arms then holds these changes too, and speculation gets the credit or the blame.

Until 0.9.2 a draft model was served by the V0 engine, and the target alone by V1: that is a comparison of two engines, and no
control takes it out.

Source: vllm/config/vllm.py, 0.14.0 on; vllm/engine/arg_utils.py, 0.8.2 to 0.9.2; vllm-project/vllm#31998, #58065.

Fails:

    speculative: {method: ngram}      # 0.32.0, cuda
    design: {controls: []}

Passes:

    speculative: {method: ngram}
    design: {controls: [matched]}

Way out: add the control `matched`: the target with the runner, scheduling and budget of the pair. Where the engines differ, give
both arms the same with `VLLM_USE_V1: "0"` under `pair.env`.
"""

from __future__ import annotations

from collections.abc import Iterator

from speclint.arms import differences, engines_differ
from speclint.diagnostic import Finding
from speclint.releases import Release
from speclint.spec import Spec

SEVERITY = "warning"
NEEDS = "spec"

METHOD = "/pair/speculative/method"


def check(spec: Spec, release: Release | None) -> Iterator[Finding]:
    if release is None:
        return
    if engines_differ(spec, release):
        message = f"vLLM {release.version} serves `{spec.method}` with its V0 engine and the target alone with V1"
        help = 'write `VLLM_USE_V1: "0"` under pair.env, for both arms'
        yield Finding(METHOD, message, help, "vllm/engine/arg_utils.py, 0.8.2-0.9.2")
    if "matched" in spec.listing("protocol", "design", "controls"):
        return
    found = differences(spec, release)
    if not found:
        return
    message = f"with `{spec.method}` on vLLM {release.version} the arms also differ in: {'; '.join(found)}"
    help = "add `matched` to protocol.design.controls, to see what of the ratio is speculation"
    related = (("/protocol/design", "controls are asked for here"),)
    yield Finding(METHOD, message, help, "vllm/config/vllm.py", related=related)
