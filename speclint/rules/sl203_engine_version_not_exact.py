"""SL203 engine-version-not-exact: the engine version is a range, a nightly, or a release that is not known.

Settings, methods, launch flags and metric names are those of one release. From a range nothing can be checked, and the
run would refuse another release anyway.

Fails:

    engine: {name: vllm, version: ">=0.25"}

Passes:

    engine: {name: vllm, version: "0.32.0"}

Way out: `speclint releases` lists what is known; `speclint releases --import WHEEL` adds one.
"""

from __future__ import annotations

from collections.abc import Iterator

from speclint.diagnostic import Finding
from speclint.releases import Release, known, nearest, parse
from speclint.spec import Spec

SEVERITY = "error"
NEEDS = "spec"

PATH = "/pair/engine/version"


def check(spec: Spec, release: Release | None) -> Iterator[Finding]:
    version = spec.version
    if version is None or release is not None:
        return
    near = nearest(version)
    help = f"nearest known: {', '.join(near)}" if near else "`speclint releases` lists the releases known"
    if parse(version) is None:
        yield Finding(PATH, f"`{version}` is not one exact release", help)
    elif known():
        message = f"vLLM {version} is not known here (known: {known()[0]} to {known()[-1]}), so its settings are unchecked"
        yield Finding(PATH, message, f"{help}; `speclint releases --import WHEEL` adds one")
