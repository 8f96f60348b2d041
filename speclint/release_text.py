"""A release as text: the layout of its file, and what turns between two of them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from speclint.releases import Release

Json = dict[str, Any]

WIDTH = 118


def dump(raw: Json) -> str:
    """A release as stable JSON text: sorted keys, one entry a line wherever it fits."""
    return _layout(raw, 0) + "\n"


def _layout(value: Any, depth: int) -> str:
    flat = json.dumps(value, sort_keys=True, ensure_ascii=False)
    if len(flat) + depth <= WIDTH or not isinstance(value, dict | list):
        return flat
    pad, end = " " * (depth + 1), " " * depth
    if isinstance(value, dict):
        rows = (f"{pad}{json.dumps(k)}: {_layout(v, depth + 1)}" for k, v in sorted(value.items()))
        return "{\n" + ",\n".join(rows) + f"\n{end}}}"
    if all(isinstance(item, str | int | float | None) for item in value):
        return "[\n" + _wrapped([json.dumps(item) for item in value], pad) + f"\n{end}]"
    return "[\n" + ",\n".join(pad + _layout(item, depth + 1) for item in value) + f"\n{end}]"


def _wrapped(items: list[str], pad: str) -> str:
    lines = [pad]
    for index, item in enumerate(items):
        text = item + ("," if index + 1 < len(items) else "")
        if len(lines[-1]) + len(text) > WIDTH and lines[-1] != pad:
            lines.append(pad)
        lines[-1] += text if lines[-1] == pad else f" {text}"
    return "\n".join(lines)


def changes(left: Release, right: Release) -> list[str]:
    """What turns from one release to the other, one line each."""
    sections = ((name, _section(left, name), _section(right, name)) for name in DIFFED)
    return [line for name, before, after in sections for line in _section_diff(name, before, after)]


DIFFED = (
    "settings", "unknown_keys", "methods", "methods_refused", "runner", "engine_args", "server_args", "flags",
    "sampling_params", "sampling_with_speculation", "metrics", "metric_names", "defects",
)  # fmt: skip


def _section(release: Release, name: str) -> Json:
    """A section as a mapping from entry to value (None where only its presence says something)."""
    if name == "unknown_keys":
        return {"": release.unknown_keys}
    if name == "settings":
        schema = release.speculative_config
        return {**release.settings, **{k: {"": schema[k]} for k in ("x-internal", "x-trap") if schema[k]}}
    if name == "defects":
        return {d.id: {"effect": d.effect} for d in release.defects}
    if name == "sampling_with_speculation":
        return {f"{r['parameter']} {r['effect']}": r["methods"] for r in release.sampling_with_speculation}
    value = getattr(release, name) if name != "metric_names" else release.raw["metric_names"]
    return dict(value) if isinstance(value, dict) else dict.fromkeys(sorted(value))


def _section_diff(section: str, left: Json, right: Json) -> Iterator[str]:
    for name in sorted({*left, *right}):
        label = f"{section} {name}".rstrip()
        if name not in right:
            yield f"- {label}"
        elif name not in left:
            yield f"+ {label}{_said(right[name])}"
        elif left[name] != right[name]:
            yield f"~ {label}: {_change(left[name], right[name])}"


def _said(value: Any) -> str:
    return "" if value is None else f" {json.dumps(value, sort_keys=True)}"


def _change(left: Any, right: Any) -> str:
    """The part that differs: for lists members gone and come, for mappings the keys, else both values."""
    if isinstance(left, list) and isinstance(right, list):
        return _members(left, right)
    if isinstance(left, dict) and isinstance(right, dict):
        keys = [k for k in sorted({*left, *right}) if left.get(k) != right.get(k)]
        return "; ".join(_key_change(key, left, right) for key in keys)
    return f"{json.dumps(left, sort_keys=True)} -> {json.dumps(right, sort_keys=True)}"


def _key_change(key: str, left: Json, right: Json) -> str:
    if key not in right:
        return f"{key} no longer given"
    return f"{key} now {json.dumps(right[key], sort_keys=True)}" if key not in left else f"{key} {_change(left[key], right[key])}"


def _members(left: Iterable[Any], right: Iterable[Any]) -> str:
    gone = [f"-{item}" for item in left if item not in list(right)]
    come = [f"+{item}" for item in right if item not in list(left)]
    return " ".join([*gone, *come]) or "order"
