"""SL524 seed-promises-nothing: above temperature 0 the same seed gives other answers in the pair.

Verification draws random numbers that the target alone does not. Answers cannot be compared one by one; the runner scores a
sample of both arms' answers under the target instead. At temperature 0 they can.

Source: vllm-project/vllm#9441, #40149.

Fails:

    sampling: {temperature: 0.8, top_p: 1.0, top_k: 0, seed: 7}

Passes:

    sampling: {temperature: 0.0, top_p: 1.0, top_k: 0, seed: 7}

Way out: nothing to do; know that equality is checked by likelihood here.
"""

from __future__ import annotations

from collections.abc import Iterator

from speclint.diagnostic import Finding
from speclint.releases import Release
from speclint.spec import Spec

SEVERITY = "info"
NEEDS = "spec"


def check(spec: Spec, release: Release | None) -> Iterator[Finding]:
    if spec.temperature and "seed" in spec.sampling:
        message = "above temperature 0 the seed does not make the arms' answers equal; they are compared by likelihood"
        related = (("/protocol/sampling/temperature", "above 0 here"),)
        yield Finding("/protocol/sampling/seed", message, "use temperature 0.0 to compare answers one by one", related=related)
