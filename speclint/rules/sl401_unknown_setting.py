"""SL401 unknown-setting: a key of `speculative` that this release does not have.

0.9.1 to 0.15.1 drop it without a word, so the run measures something else than is written; before and after, the engine does
not start. Names differ by release: the message says where the key exists.

Source: vllm/config.py and vllm/config/speculative.py of each release; vllm/config/utils.py from 0.16.0.

Fails:

    engine: {name: vllm, version: "0.32.0"}
    speculative: {method: ngram, num_speculative_tokens: 3, disable_by_batch_size: 16}

Passes:

    engine: {name: vllm, version: "0.32.0"}
    speculative: {method: ngram, num_speculative_tokens: 3}

Way out: take the suggested name, or remove the key.
"""

from __future__ import annotations

from collections.abc import Iterator

from speclint.diagnostic import Finding, pointer
from speclint.releases import Release, spans
from speclint.retired import KEYS, NEVER_RELEASED
from speclint.shape import did_you_mean
from speclint.spec import Spec

SEVERITY = "error"
NEEDS = "spec"

ELSEWHERE = KEYS | NEVER_RELEASED.keys() | {"use_heterogeneous_vocab"}  # SL402, SL307
EFFECTS = {
    "dropped": "drops it without a word",
    "refused": "refuses to start",
    "type_error": "fails with a TypeError",
}


def check(spec: Spec, release: Release | None) -> Iterator[Finding]:
    if release is None:
        return
    config = release.speculative_config
    for key in spec.speculative:
        name = key.replace("-", "_") if config.get("x-hyphens") else key
        if name in config.get("x-trap", ()):
            yield _internal(key, f"vLLM {release.version} refuses `{key}` here", "use draft_tensor_parallel_size")
        elif name in config.get("x-internal", ()):
            yield _internal(key, f"`{key}` is filled in by the engine itself", "remove it")
        elif name not in release.settings and name not in ELSEWHERE:
            yield _unknown(key, release)


def _internal(key: str, message: str, help: str) -> Finding:
    return Finding(pointer("pair", "speculative", key), message, help, on_key=True)


def _unknown(key: str, release: Release) -> Finding:
    message = f"vLLM {release.version} has no setting `{key}` and {EFFECTS[release.unknown_keys]}"
    where = _where(key)
    help = did_you_mean(key, release.settings) or "remove it"
    related = (("/pair/engine/version", "this release"),)
    return Finding(pointer("pair", "speculative", key), message + where, help, on_key=True, related=related)


def _where(key: str) -> str:
    having = spans(lambda release: key in release.settings)
    return f"; it exists in {having}" if having else ""
