"""SL402 retired-flag: the name of a launch flag of 2024 used as a key.

The separate flags (`--speculative-model`, `--num-speculative-tokens`, …) went with 0.8.3; what they said is now one mapping,
`speculative`. Some have no successor, and some names stand in documentation pages but never were in a release.

Source: vllm/engine/arg_utils.py of 0.8.2 (create_speculative_config), the last release with both forms;
vllm-project/vllm#15466, #15348.

Fails:

    engine_args: {speculative_model: Qwen/Qwen3-0.6B, num_speculative_tokens: 5}

Passes:

    speculative: {method: draft_model, model: Qwen/Qwen3-0.6B, num_speculative_tokens: 5}

Way out: move the value to the key of `pair.speculative` that the help names.
"""

from __future__ import annotations

from collections.abc import Iterator

from speclint.diagnostic import Finding, pointer
from speclint.releases import Release
from speclint.retired import FLAGS, NEVER_RELEASED, Retired
from speclint.spec import Spec

SEVERITY = "error"
NEEDS = "spec"


def check(spec: Spec, release: Release | None) -> Iterator[Finding]:
    if release is None or release.in_range(None, "0.8.2"):
        return
    for section in ("engine_args", "speculative"):
        settings = release.settings if section == "speculative" else release.engine_args
        for key, value in spec.section("pair", section).items():
            name = key.lstrip("-").replace("-", "_")
            path = pointer("pair", section, key)
            if name in FLAGS and name not in settings:
                yield _retired(path, key, FLAGS[name], value, release)
            elif name in NEVER_RELEASED and name not in settings:
                message = f"`{key}` is in no vLLM release: it stands in {NEVER_RELEASED[name]}"
                yield Finding(path, message, "remove it", on_key=True)


def _retired(path: str, key: str, flag: Retired, value: object, release: Release) -> Finding:
    message = f"`{key}` is a launch flag that went with vLLM {flag.gone}"
    if flag.key is None:
        help = f"remove it; {flag.note}"
    elif flag.key in release.settings:
        help = f"write `{flag.key}: {value}` under pair.speculative" + (f"; {flag.note}" if flag.note else "")
    else:
        help = f"remove it: its key `{flag.key}` ended with {flag.key_last}" + (f"; {flag.note}" if flag.note else "")
    return Finding(path, message, help, "vllm/engine/arg_utils.py, 0.8.2", on_key=True)
