"""SL419 arms-differ: with this method and release the two arms differ in more than speculation.

Some methods switch asynchronous scheduling off, some move the pair to the other model runner, some lower its token budget. The
ratio of the arms then holds these changes too, and speculation gets the credit or the blame.

Source: vllm/config/vllm.py, 0.14.0 on; vllm-project/vllm#31998, #58065.

Fails:

    speculative: {method: ngram}      # 0.32.0, cuda
    design: {controls: []}

Passes:

    speculative: {method: ngram}
    design: {controls: [matched]}

Way out: add the control `matched`: the target with the runner, scheduling and budget of the pair.
"""

from __future__ import annotations

from collections.abc import Iterator

from speclint.arms import differences
from speclint.diagnostic import Finding
from speclint.releases import Release
from speclint.spec import Spec

SEVERITY = "warning"
NEEDS = "spec"


def check(spec: Spec, release: Release | None) -> Iterator[Finding]:
    if release is None or "matched" in spec.listing("protocol", "design", "controls"):
        return
    found = differences(spec, release)
    if not found:
        return
    message = f"with `{spec.method}` on vLLM {release.version} the arms also differ in: {'; '.join(found)}"
    help = "add `matched` to protocol.design.controls, to see what of the ratio is speculation"
    related = (("/protocol/design", "controls are asked for here"),)
    yield Finding("/pair/speculative/method", message, help, "vllm/config/vllm.py", related=related)
