"""SL201 revision-is-mutable: a revision that can move: a branch, a tag, or a short hash.

With `main` the next run may load other weights under the same approval. A hub id is pinned by its full commit without a prefix, a
local folder by its tree digest with `sha256:` before it (`speclint lock` prints it).

Source: Hugging Face hub revisions; vllm-project/vllm passes `revision` through unresolved.

Fails:

    target: {model: Qwen/Qwen3-8B, revision: main}

Passes:

    target: {model: Qwen/Qwen3-8B, revision: b968826d9c46dd6066d109eabc6255188de91218}

Way out: `git ls-remote https://huggingface.co/ORG/NAME` shows the commit behind a name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from speclint.diagnostic import Finding, pointer
from speclint.methods import draft_model
from speclint.releases import Release
from speclint.spec import Spec, is_local

SEVERITY = "error"
NEEDS = "spec"

COMMIT = re.compile(r"[0-9a-f]{40}")
TREE = re.compile(r"sha256:[0-9a-f]{64}")
SHORT = re.compile(r"[0-9a-fA-F]{6,40}")
REFERENCES = (("pair", "target"), ("pair", "target", "tokenizer"), ("pair", "speculative"))
CODE_REVISIONS = (("pair", "target", "code_revision"), ("pair", "speculative", "code_revision"))


def check(spec: Spec, release: Release | None) -> Iterator[Finding]:
    for keys in REFERENCES:
        model, revision = spec.at(*keys, "model", kind=str), spec.at(*keys, "revision", kind=str)
        if model and revision and not (keys[-1] == "speculative" and draft_model(spec) is None):
            yield from _revision(spec, pointer(*keys, "revision"), model, revision)
    for keys in CODE_REVISIONS:
        revision = spec.at(*keys, kind=str)
        if revision and not COMMIT.fullmatch(revision):
            yield Finding(pointer(*keys), f"`{revision}` is not a full commit", "write the 40 hexadecimal digits")


def _revision(spec: Spec, path: str, model: str, revision: str) -> Iterator[Finding]:
    if is_local(model, revision, spec.folder):
        if not TREE.fullmatch(revision):
            help = _mended(revision) or "`speclint lock` prints the digest to paste"
            yield Finding(path, f"`{model}` is a local folder, pinned by its tree digest, not by `{revision}`", help)
    elif not COMMIT.fullmatch(revision):
        help = _mended(revision) or f"write the 40-digit commit; `git ls-remote https://huggingface.co/{model}` shows it"
        yield Finding(path, f"`{revision}` is {_what(revision)} of `{model}`, not a full commit: it can move", help)


def _mended(revision: str) -> str:
    """The pin that was meant, if only its case or its prefix is wrong."""
    digits = revision.lower().removeprefix("sha256:")
    if COMMIT.fullmatch(digits) and digits != revision:
        return f'write "{digits}", the commit of a hub id'
    return f'write "sha256:{digits}"' if TREE.fullmatch(f"sha256:{digits}") else ""


def _what(revision: str) -> str:
    return "a short or upper-case hash" if SHORT.fullmatch(revision) else "a branch or tag"
