"""SL403 value-not-in-release: a value that this release does not take for one of its speculative settings.

Names of acceptance and sampling methods moved: `strict` and `probabilistic` verification ended with 0.20.2, `gumbel` became
`probabilistic` in 0.22.0, `synthetic` came with 0.19.0, `block` with 0.25.0, `fly` with 0.33.0.

Source: vllm/config/speculative.py of each release.

Fails:

    engine: {name: vllm, version: "0.32.0"}
    speculative: {rejection_sample_method: strict}

Passes:

    engine: {name: vllm, version: "0.32.0"}
    speculative: {rejection_sample_method: standard}

Way out: one of the values that the message names.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from speclint.diagnostic import Finding, pointer
from speclint.releases import Release
from speclint.shape import WORDS, did_you_mean, one_of
from speclint.spec import Spec

SEVERITY = "error"
NEEDS = "spec"

ELSEWHERE = frozenset(("method", "num_speculative_tokens", "model", "revision"))
KINDS: dict[str, type | tuple[type, ...]] = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "array": list,
    "object": dict,
    "null": type(None),
}


def check(spec: Spec, release: Release | None) -> Iterator[Finding]:
    if release is None:
        return
    for key, value in spec.speculative.items():
        schema = release.settings.get(key)
        if schema is None or key in ELSEWHERE:
            continue
        message = _wrong(value, schema)
        if message:
            help = did_you_mean(str(value), map(str, schema.get("enum", ()))) or "take a value of this release"
            related = (("/pair/engine/version", f"vLLM {release.version}"),)
            yield Finding(pointer("pair", "speculative", key), f"{key}: {message}", help, related=related)


def _wrong(value: Any, schema: dict[str, Any]) -> str:
    """What is wrong with a value, or nothing. Only what the release's file states plainly is judged."""
    if "enum" in schema and not _listed(value, schema):
        return f"`{value}` is none of {one_of([v for v in schema['enum'] if v is not None])}"
    types = schema.get("type", [])
    types = types if isinstance(types, list) else [types]
    if types and not any(_is(value, kind) for kind in types) and "string" not in types:
        return f"`{value}` is not {' or '.join(WORDS.get(str(kind), str(kind)) for kind in types)}"
    return _range(value, schema) or _range(value, schema.get("x-checked", {}))


def _listed(value: Any, schema: dict[str, Any]) -> bool:
    if value in schema["enum"]:
        return True
    return bool(schema.get("x-any-case")) and str(value).lower() in [str(word).lower() for word in schema["enum"]]


def _is(value: Any, kind: str) -> bool:
    if isinstance(value, bool) and kind != "boolean":
        return False
    return isinstance(value, KINDS.get(kind, object))


def _range(value: Any, schema: dict[str, Any]) -> str:
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return ""
    if value < schema.get("minimum", value):
        return f"{value} is below {schema['minimum']}"
    if value > schema.get("maximum", value):
        return f"{value} is above {schema['maximum']}"
    return f"{value} is not above {schema['exclusiveMinimum']}" if value <= schema.get("exclusiveMinimum", value - 1) else ""
