"""What the server says of itself: metrics page, effective configuration, capacity."""

from __future__ import annotations

from collections import defaultdict
from itertools import zip_longest
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from speclint.releases import Release

Page = dict[str, dict[tuple[tuple[str, str], ...], float]]


def parse(text: str) -> Page:
    """A Prometheus page as name -> labels -> value, with names as exposed (`…_total`, `…_sum`, `…_count`)."""
    page: Page = defaultdict(dict)
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            page[sample.name][tuple(sorted(sample.labels.items()))] = sample.value
    return dict(page)


def total(page: Page, name: str | None) -> float | None:
    """Sum of a series over all engines and labels; None if the page has no such series."""
    if name is None or name not in page:
        return None
    return sum(page[name].values())


def by_position(page: Page, name: str | None) -> list[float] | None:
    """A series with label `position`, summed over engines, in order of position; None if absent."""
    if name is None or name not in page:
        return None
    sums: dict[int, float] = defaultdict(float)
    for labels, value in page[name].items():
        sums[int(dict(labels)["position"])] += value
    return [sums[i] for i in range(max(sums, default=-1) + 1)]


def counters(page: Page, release: Release) -> dict[str, Any]:
    """The counters a window is judged by, by role. Absent series are None, which is not zero."""
    names = release.metrics
    latency = names.get("inter_token_latency")
    found: dict[str, Any] = {
        role: total(page, names.get(role))
        for role in (
            "drafts",
            "draft_tokens",
            "accepted_tokens",
            "generation_tokens",
            "prompt_tokens",
            "preemptions",
        )
    }
    found["prefix_hits"] = total(page, names.get("prefix_cache_hits"))
    found["prefix_queries"] = total(page, names.get("prefix_cache_queries"))
    found["accepted_per_position"] = by_position(page, names.get("accepted_per_position"))
    found["itl_sum"] = total(page, latency + "_sum") if latency else None
    found["itl_count"] = total(page, latency + "_count") if latency else None
    found["queue_sum"] = total(page, "vllm:request_queue_time_seconds_sum")
    found["queue_count"] = total(page, "vllm:request_queue_time_seconds_count")
    return found


def difference(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """Counters of a window: after minus before. A series that appears within the window counts from zero.

    A negative difference means that the engine began anew inside the window; that is for the reader to judge.
    """
    out: dict[str, Any] = {}
    for name, last in after.items():
        first = before.get(name)
        if last is None:
            out[name] = None
        elif isinstance(last, list):
            out[name] = [b - a for a, b in zip_longest(first or [], last, fillvalue=0.0)]
        else:
            out[name] = last - (first or 0.0)
    return out


def running(page: Page) -> float:
    """Requests that the engine has running or waiting."""
    return (total(page, "vllm:num_requests_running") or 0) + (total(page, "vllm:num_requests_waiting") or 0)


def capacity(page: Page) -> dict[str, int | None]:
    """KV capacity in tokens, in sequences of the longest length, and in bytes, over all engines of the page.

    Each engine's row has the size of one engine, but `num_gpu_blocks` there is the sum over engines already.
    """
    engines = [dict(labels) for labels in page.get("vllm:cache_config_info", {})]
    tokens, sequences, size = (
        _over_engines(engines, name) for name in ("kv_cache_size_tokens", "kv_cache_max_concurrency", "kv_cache_memory_bytes")
    )
    return {
        "kv_capacity_tokens": _in_blocks(engines) if tokens is None else int(tokens),
        "kv_capacity_sequences": None if sequences is None else int(sequences),
        "kv_cache_bytes": None if size is None else int(size),
    }


def _over_engines(engines: list[dict[str, str]], name: str) -> float | None:
    """Sum of a number over the engines; None if one of them does not have it."""
    values = [_number(info.get(name)) for info in engines]
    known = [value for value in values if value is not None]
    return sum(known) if known and len(known) == len(values) else None


def _in_blocks(engines: list[dict[str, str]]) -> int | None:
    sizes = [(_number(info.get("num_gpu_blocks")), _number(info.get("block_size"))) for info in engines]
    return max((int(blocks * size) for blocks, size in sizes if blocks and size), default=None)


def _number(text: str | None) -> float | None:
    try:
        return float(text or "")
    except ValueError:
        return None


def leaves(value: Any, path: str = "") -> dict[str, Any]:
    """Leaves of a nested document by JSON Pointer."""
    if isinstance(value, dict) and value:
        return {k: v for key, inner in value.items() for k, v in leaves(inner, f"{path}/{key}").items()}
    if isinstance(value, list) and value:
        return {k: v for i, inner in enumerate(value) for k, v in leaves(inner, f"{path}/{i}").items()}
    return {path: value}
