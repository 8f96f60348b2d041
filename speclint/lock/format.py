"""The numbered layouts of a lock. A lock keeps its layout, and so its digest and approvals, until `--upgrade`."""

from __future__ import annotations

from typing import Any

FORMAT = 2
"""The layout that a new lock is written in."""
CONFIG = ("attention", "proposes", "proposed_tokens", "base_model", "target_layers", "mask_token", "heads", "from_anchor")
ADDED = {
    2: (
        *((role, "config", name) for role in ("target", "draft") for name in CONFIG),
        *((role, "files", "tekken.json") for role in ("target", "draft")),
        ("pair", "texts"),
    )
}
"""Facts by the layout that they came with."""


def stated_format(spec_data: dict[str, Any]) -> int:
    """Layout of the spec's own lock; the newest, if it has no lock or one that states none."""
    lock = spec_data.get("lock")
    stated = lock.get("format") if isinstance(lock, dict) else None
    return stated if type(stated) is int else FORMAT


def in_format(lock: dict[str, Any], number: int) -> dict[str, Any]:
    """A lock of the newest layout in the layout `number`: without the facts that came later."""
    later = [path for since, paths in ADDED.items() if since > number for path in paths]
    return _without(lock, later) | {"format": min(number, FORMAT)}


def _without(value: dict[str, Any], paths: list[tuple[str, ...]]) -> dict[str, Any]:
    gone = {path[0] for path in paths if len(path) == 1}
    inner = {key: [path[1:] for path in paths if path[0] == key and len(path) > 1] for key in value}
    return {
        key: _without(child, inner[key]) if inner[key] and isinstance(child, dict) else child
        for key, child in value.items()
        if key not in gone
    }
