"""SL427 known-upstream-defect: this release has a known fault that this spec meets.

Faults are kept as data beside each release: condition, effect, upstream report, and whether it was reproduced here.

Fails:

    engine: {name: vllm, version: "0.32.0"}
    speculative: {method: ngram_gpu}
    engine_args: {async_scheduling: true}

Passes:

    engine: {name: vllm, version: "0.32.0"}
    speculative: {method: ngram}

Way out: another release, or a spec without the condition.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from speclint.diagnostic import Finding, Severity
from speclint.releases import Release
from speclint.spec import Spec

SEVERITY = "warning"
NEEDS = "spec"


def check(spec: Spec, release: Release | None) -> Iterator[Finding]:
    for defect in release.defects if release else ():
        if defect.rule is None and release and defect.applies(spec.data):
            message = f"vLLM {release.version} has a known defect ({defect.condition}): {defect.effect}"
            path = str(defect.when[0]["path"])
            origin = defect.upstream or "read in the source"
            source = f"{origin}, {defect.first} to {defect.last or 'now'}, as of {defect.dated}"
            help = "use another release, or avoid the condition"
            yield Finding(path, message, help, source, severity=cast(Severity, defect.severity))
