"""SL515 structured-output-with-speculation: a grammar cuts drafts before they are verified.

Draft tokens that break the grammar are removed, so acceptance and steps are those of the grammar as much as of the pair. With
LM Format Enforcer the engine refuses speculation.

Source: vllm/v1/core/sched/scheduler.py, 0.9.2 on; vllm/v1/structured_output/backend_lm_format_enforcer.py, 0.10.2 on.

Fails:

    request: {endpoint: chat, extra_body: {response_format: {type: json_object}}}

Passes:

    request: {endpoint: chat, extra_body: {}}

Way out: keep it only if the service sends it too; then read acceptance as that of structured answers.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from speclint.diagnostic import Finding, pointer
from speclint.releases import Release
from speclint.spec import Spec

SEVERITY = "warning"
NEEDS = "spec"

FIELDS = ("response_format", "structured_outputs", "guided_json", "guided_regex", "guided_choice", "guided_grammar")


def check(spec: Spec, release: Release | None) -> Iterator[Finding]:
    body = spec.section("protocol", "request", "extra_body")
    asked = [key for key in FIELDS if _constrains(body.get(key))]
    enforcer = _enforcer(spec)
    for key in asked:
        path = pointer("protocol", "request", "extra_body", key)
        if enforcer and release is not None and release.in_range("0.10.2", None):
            message = f"vLLM {release.version} refuses speculation with LM Format Enforcer"
            related = ((enforcer, "chosen here"),)
            yield Finding(path, message, "use another backend", on_key=True, severity="error", related=related)
        else:
            message = "drafts that break the grammar are cut before verification, so acceptance is the grammar's too"
            yield Finding(path, message, "keep it only if the service sends it", on_key=True)


def _constrains(value: Any) -> bool:
    return bool(value) and value != {"type": "text"}


def _enforcer(spec: Spec) -> str | None:
    named = (("guided_decoding_backend",), ("structured_outputs_config", "backend"))
    for keys in named:
        if spec.at("pair", "engine_args", *keys, kind=str) == "lm-format-enforcer":
            return pointer("pair", "engine_args", *keys)
    return None
