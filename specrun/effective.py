"""The configuration that the engine really runs: a summary for the reader, and where the arms differ.

Every difference is *ignored* (differs between two starts of the same command), *derived* (follows from another field),
*expected* (the method changes it in this release) or *voiding*; the release's data says which, by path prefix.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from specrun.scrape import leaves

CLASSES = ("ignored", "derived", "expected")
GRAPH_MODE = "/vllm_config/compilation_config/cudagraph_mode"
ADDRESS = re.compile(r" at 0x[0-9a-f]+\b")  # of a function that the engine prints as it stands
SUMMARY = {
    "model_config": ("dtype", "quantization", "max_model_len", "enforce_eager", "seed"),
    "cache_config": ("block_size", "cache_dtype", "enable_prefix_caching", "gpu_memory_utilization", "num_gpu_blocks"),
    "scheduler_config": (
        "max_num_batched_tokens",
        "max_num_scheduled_tokens",
        "max_num_seqs",
        "async_scheduling",
        "enable_chunked_prefill",
    ),
    "parallel_config": ("tensor_parallel_size", "pipeline_parallel_size", "distributed_executor_backend"),
    "compilation_config": ("mode", "cudagraph_mode", "max_cudagraph_capture_size"),
    "speculative_config": (
        "method",
        "num_speculative_tokens",
        "use_heterogeneous_vocab",
        "draft_tensor_parallel_size",
        "max_model_len",
        "prompt_lookup_min",
        "prompt_lookup_max",
    ),
}


def summary(config: dict[str, Any] | None, from_log: dict[str, Any]) -> dict[str, Any]:
    """The fields a reader looks for, plus what only the log holds; fields that the release lacks are left out."""
    found: dict[str, Any] = {}
    for section, names in SUMMARY.items():
        part = (config or {}).get(section)
        if isinstance(part, dict):
            found[section] = {name: part[name] for name in names if name in part and not isinstance(part[name], dict | list)}
    logged = {name: from_log[name] for name in ("runner", "attention_backend") if name in from_log}
    if "cudagraph_mode" in from_log:
        found["compilation_config"] = found.get("compilation_config", {}) | {"cudagraph_mode": from_log["cudagraph_mode"]}
    return found | logged


def differences(target: dict[str, Any], pair: dict[str, Any], rules: dict[str, list[str]]) -> list[dict[str, Any]]:
    """Rows {path, target, pair, kind} of every field that differs between two starts and is not ignored."""
    left, right = _fields(target), _fields(pair)
    kinds = {path: kind_of(path, rules) for path in _differing(left, right)}
    rows = [
        {"path": path, "target": left.get(path), "pair": right.get(path), "kind": kind}
        for path, kind in kinds.items()
        if kind != "ignored"
    ]
    return _without_inner(rows)


def drift(starts: Iterable[dict[str, Any]], rules: dict[str, list[str]]) -> list[str]:
    """Where a later start of an arm runs another configuration than its first one, in words; `aa` is the target once more.

    Only what differs between two starts of one command anyway is let pass: the ignored fields, and the derived ones, which
    hold sizes that the engine found by profiling. What the method changes, it must change in every start.
    """
    first: dict[str, dict[str, Any]] = {}
    found: list[str] = []
    for start in starts:
        if not start.get("config"):
            continue
        arm = "target" if start["arm"] == "aa" else start["arm"]
        if arm not in first:
            first[arm] = _fields(start)
            continue
        wrong = [path for path in _differing(first[arm], _fields(start)) if kind_of(path, rules) in ("expected", "voiding")]
        found += [f"{', '.join(wrong[:3])} in the start of {start['arm']}, block {start['block']}"] if wrong else []
    return found


def _fields(start: dict[str, Any]) -> dict[str, Any]:
    """Leaves of configuration and log facts under one root; a list of plain values is one leaf, in words."""
    runs = {name: start.get("from_log", {}).get(name) for name in ("runner", "attention_backend")}
    found = leaves(_lists_in_words({"vllm_config": dict(start.get("config") or {}), "log": runs}))
    narrowed = start.get("from_log", {}).get("cudagraph_mode")
    found |= {GRAPH_MODE: narrowed} if narrowed else {}
    return {path: ADDRESS.sub("", value) if isinstance(value, str) else value for path, value in found.items()}


def _lists_in_words(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _lists_in_words(inner) for key, inner in value.items()}
    if isinstance(value, list):
        nested = any(isinstance(inner, dict | list) for inner in value)
        return [_lists_in_words(inner) for inner in value] if nested else f"{len(value)}: {' '.join(map(str, value))}"
    return value


def _differing(left: dict[str, Any], right: dict[str, Any]) -> list[str]:
    return [path for path in sorted(left.keys() | right.keys()) if left.get(path) != right.get(path)]


def _without_inner(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Leaves of the speculative section are the method itself; one row stands for all of them."""
    inner = "/vllm_config/speculative_config"
    kept = [row for row in rows if not row["path"].startswith(inner)]
    if len(kept) == len(rows):
        return kept
    return [*kept, {"path": inner, "target": "null", "pair": "the spec's method", "kind": "expected"}]


def kind_of(path: str, rules: dict[str, list[str]]) -> str:
    """What kind of difference a path is, by the longest rule that is a prefix of it."""
    matching = [
        (len(prefix), kind)
        for kind in CLASSES
        for prefix in rules.get(kind, [])
        if path == prefix or path.startswith(prefix + "/")
    ]
    return max(matching)[1] if matching else "voiding"
