"""SL204 lock-missing: the spec has no lock, so vocabulary, context and weights could not be checked.

With local models the lock can be made here and is required. With hub ids it is made by someone who has the models; until
then this is a note.

Fails:

    target: {model: models/tiny-target, revision: "sha256:…"}      # and no `lock:` in the file

Passes:

    lock: {format: 1, target: …, draft: …, pair: …, workloads: …}

Way out: `speclint lock FILE`.
"""

from __future__ import annotations

from collections.abc import Iterator

from speclint.diagnostic import Finding, Severity
from speclint.methods import draft_model
from speclint.releases import Release
from speclint.spec import Spec, is_local

SEVERITY = "error"
NEEDS = "spec"


def check(spec: Spec, release: Release | None) -> Iterator[Finding]:
    target = spec.at("pair", "target", "model", kind=str)
    if "lock" in spec.data or target is None:
        return
    local = [name for name, keys in _models(spec) if is_local(name, spec.at(*keys, "revision", kind=str), spec.folder)]
    severity: Severity = "error" if local else "info"
    message = "there is no lock: vocabulary, context length and weights are unchecked"
    help = "`speclint lock FILE` writes it" + ("" if local else ", where the models are in the hub cache")
    yield Finding("/pair/target/model", message, help, severity=severity)


def _models(spec: Spec) -> list[tuple[str, tuple[str, str]]]:
    named = [(spec.at("pair", "target", "model", kind=str), ("pair", "target"))]
    named.append((draft_model(spec), ("pair", "speculative")))
    return [(model, keys) for model, keys in named if model]
