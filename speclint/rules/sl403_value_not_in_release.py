"""SL403 value-not-in-release: a value that this release does not take for one of its speculative settings or engine arguments.

Names of acceptance and sampling methods moved: `strict` and `probabilistic` verification ended with 0.20.2, `gumbel` became
`probabilistic` in 0.22.0, `synthetic` came with 0.19.0, `block` with 0.25.0, `fly` with 0.33.0.

Of engine arguments the closed lists, numbers and switches are checked. `8k` is a number to the command line for lengths in tokens
and sizes in bytes alone (`max_model_len`, `max_num_batched_tokens`, `kv_cache_memory_bytes` …), `auto` for `max_model_len`.

Source: vllm/config/speculative.py and vllm/engine/arg_utils.py of each release.

Fails:

    engine: {name: vllm, version: "0.32.0"}
    speculative: {rejection_sample_method: strict}

Passes:

    engine: {name: vllm, version: "0.32.0"}
    speculative: {rejection_sample_method: standard}

Way out: one of the values that the message names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from speclint.diagnostic import Finding, pointer
from speclint.fast_shape import is_kind
from speclint.release_values import is_choice
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


AS_WORDS = {
    "integer": re.compile(r"[+-]?[0-9]+"),
    "number": re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?"),
}
"""Text that the command line reads as a number."""
WITH_UNIT = re.compile(r"[+-]?[0-9]+|[0-9]+[kKmMgGtT]|[0-9]+\.[0-9]+[kmgt]")
WITH_UNIT_OR_AUTO = re.compile(rf"{WITH_UNIT.pattern}|(?i:auto)")
OF_ARGUMENT = {
    "max_model_len": WITH_UNIT_OR_AUTO,
    "max_num_batched_tokens": WITH_UNIT,
    "max_num_scheduled_tokens": WITH_UNIT,
    "max_num_queued_tokens": WITH_UNIT,
    "kv_cache_memory_bytes": WITH_UNIT,
    "safetensors_prefetch_block_size": WITH_UNIT,
}
"""The whole numbers for which vLLM's `human_readable_int` and `human_readable_int_or_auto` read more."""


def check(spec: Spec, release: Release | None) -> Iterator[Finding]:
    if release is None:
        return
    for key, value in spec.speculative.items():
        schema = release.settings.get(key)
        message = _wrong(value, schema) if schema is not None and key not in ELSEWHERE else ""
        if schema is not None and message:
            yield _finding(pointer("pair", "speculative", key), key, value, message, schema, release)
    known = release.server_args | release.engine_args
    for key, value in spec.engine_args.items():
        schema = known.get(key)
        if schema is not None and (message := _wrong_argument(key, value, schema)):
            yield _finding(pointer("pair", "engine_args", key), key, value, message, schema, release)


def _finding(path: str, key: str, value: Any, message: str, schema: dict[str, Any], release: Release) -> Finding:
    help = did_you_mean(str(value), map(str, schema.get("enum", ()))) or "take a value of this release"
    related = (("/pair/engine/version", f"vLLM {release.version}"),)
    return Finding(path, f"{key}: {message}", help, related=related)


def _wrong_argument(key: str, value: Any, schema: dict[str, Any]) -> str:
    """What is wrong with an engine argument's value: it reaches vLLM as a word of the command line."""
    if value is None or isinstance(value, (dict, list)):
        return ""
    if not is_choice(value, schema):
        return f"`{value}` is none of {one_of([v for v in schema['enum'] if v is not None])}"
    types = schema.get("type", [])
    kinds = {types} if isinstance(types, str) else set(types)
    kind = next(iter(kinds - {"null"}), "") if len(kinds - {"null"}) == 1 else ""
    as_words = OF_ARGUMENT.get(key, AS_WORDS["integer"]) if kind == "integer" else AS_WORDS.get(kind)
    if as_words is None and kind != "boolean":
        return ""
    fits = is_kind(value, kind) or (isinstance(value, str) and as_words is not None and as_words.fullmatch(value))
    return "" if fits else f"`{value}` is not {WORDS[kind]}"


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
