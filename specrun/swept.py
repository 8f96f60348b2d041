"""The arms of a K sweep in a run: did each run as meant, and which of its windows count. The criteria never depend on them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from specrun import effective, establish, plan
from specrun.establish import Window
from specrun.evidence import Cell


def void_windows(data: dict[str, Any], of_block: list[Window]) -> Iterator[tuple[Cell, str, int]]:
    """Windows (cell, arm, block) of a sweep's arms that do not count, each held against the target's alone."""
    for arm in plan.swept(data):
        beside = [w for w in of_block if w.info["arm"] in ("target", arm)]
        for cell, block in establish.voids(data, beside):
            yield cell, arm, block


def faults(
    data: dict[str, Any], starts: list[dict[str, Any]], windows: list[Window], rules: Mapping[str, list[str]]
) -> dict[str, str]:
    """Arms of the sweep that did not run as meant, each with its first failed check. `rules`: the release's config_diff."""
    found = {arm: _fault(data, arm, starts, windows, dict(rules)) for arm in plan.swept(data)}
    return {arm: why for arm, why in found.items() if why}


def _fault(
    data: dict[str, Any], arm: str, starts: list[dict[str, Any]], windows: list[Window], rules: dict[str, list[str]]
) -> str | None:
    """The pair's own checks, with this arm in the pair's place."""
    own = [start | {"arm": "pair"} for start in starts if start["arm"] == arm]
    driven = [replace(w, info=w.info | {"arm": "pair"}) for w in windows if w.info["arm"] == arm]
    checks = establish.established(plan.for_arm(data, arm), own, driven)
    failed = [f"{check.check}: {check.detail}" for check in checks if check.outcome == "failed"]
    target = next((start for start in starts if start["arm"] == "target" and start.get("config")), None)
    if target and own and own[0].get("config"):
        differing = effective.differences(target, own[0], rules)
        failed += [f"also differs in {row['path']}" for row in differing if row["kind"] == "voiding"]
    failed += [f"not what its first start ran: {text}" for text in effective.drift(own, rules)]
    return f"not established: {failed[0]}" if failed else None
