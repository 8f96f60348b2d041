"""SL421 engine-arg-not-in-release: this release has no such engine argument; the server would not start.

Source: vllm/engine/arg_utils.py and vllm/entrypoints of each release.

Fails:

    engine_args: {max_model_length: 1024}

Passes:

    engine_args: {max_model_len: 1024}

Way out: take the suggested name; `speclint releases --diff A B` shows what came and went.
"""

from __future__ import annotations

from collections.abc import Iterator

from speclint.diagnostic import Finding, pointer
from speclint.releases import Release
from speclint.retired import FLAGS, NEVER_RELEASED
from speclint.rules.sl416_set_twice import HOMES
from speclint.rules.sl424_tool_owned_argument import OWNED
from speclint.shape import did_you_mean
from speclint.spec import Spec

SEVERITY = "error"
NEEDS = "spec"


def check(spec: Spec, release: Release | None) -> Iterator[Finding]:
    if release is None or not release.engine_args:
        return
    known = release.engine_args.keys() | release.server_args.keys()
    others = HOMES.keys() | OWNED.keys() | FLAGS.keys() | NEVER_RELEASED.keys()
    for key in spec.engine_args:
        name = key.lstrip("-").replace("-", "_")
        path = pointer("pair", "engine_args", key)
        if name in known and name != key and name not in others:
            yield Finding(path, f"`{key}` is written with underscores here", f"write `{name}`", on_key=True)
        elif name not in known and name not in others:
            message = f"vLLM {release.version} has no engine argument `{key}`"
            help = did_you_mean(name, known) or "remove it"
            related = (("/pair/engine/version", "this release"),)
            yield Finding(path, message, help, on_key=True, related=related)
