"""SL429 lossy-verification: the setting keeps drafts that exact verification rejects, so answers are no longer the target's.

Speed and acceptance then belong to another model than the one under test. Agreement with the target's answers is lost at any
temperature.

Source: vllm/config/speculative.py: `fly` 0.33.0 on, `typical_acceptance_sampler` 0.8.2 to 0.9.2; vllm-project/vllm#53987.

Fails:

    engine: {name: vllm, version: "0.33.0"}
    speculative: {rejection_sample_method: fly}

Passes:

    engine: {name: vllm, version: "0.33.0"}
    speculative: {rejection_sample_method: standard}

Way out: exact verification, which is the default; or a suppression that says who has judged the answers.
"""

from __future__ import annotations

from collections.abc import Iterator

from speclint.diagnostic import Finding, pointer
from speclint.releases import Release
from speclint.spec import Spec

SEVERITY = "error"
NEEDS = "spec"

LOSSY = (("rejection_sample_method", "fly"), ("acceptance_method", "typical_acceptance_sampler"))


def check(spec: Spec, release: Release | None) -> Iterator[Finding]:
    for name, value in LOSSY:
        if spec.speculative.get(name) == value:
            message = f"`{value}` keeps drafts that the target would not have written: the answers are another model's"
            yield Finding(pointer("pair", "speculative", name), message, "remove it, to verify exactly")
