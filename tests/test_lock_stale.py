"""SL205 against prompts that are not those of the lock, each change by itself."""

from __future__ import annotations

from typing import Any

import pytest
from spec_cases import dumped, good, lint

OTHER = "sha256:" + "0" * 64


def stale(data: dict[str, Any]) -> list[str]:
    return [item.path for item in lint(dumped(data)) if item.code == "SL205"]


@pytest.mark.parametrize("changes", [{"seed": 8}, {"generator": "varied"}], ids=lambda changes: next(iter(changes)))
def test_other_prompts_are_stale(changes: dict[str, Any]) -> None:
    data = good()
    data["protocol"]["workloads"][0]["prompts"].update(changes)
    assert [path.rpartition("/")[0] for path in stale(data)] == ["/lock/workloads/repetitive"]


@pytest.mark.parametrize(
    ("section", "key", "value"), [("load", "requests", 80), ("design", "blocks", 8), ("design", "prompts", "same")]
)
def test_other_counts_are_stale_everywhere(section: str, key: str, value: Any) -> None:
    data = good()
    data["protocol"][section][key] = value
    assert stale(data) == ["/lock/workloads/repetitive/blocks", "/lock/workloads/varied/blocks"]


def test_another_length_is_stale() -> None:
    data = good()
    data["protocol"]["workloads"][1]["output"]["spread"] = 0.4
    assert stale(data) == ["/lock/workloads/varied/blocks"]


def test_first_block_is_drawn_again_and_blocks_are_counted() -> None:
    data = good()
    blocks = data["lock"]["workloads"]["varied"]["blocks"]
    data["lock"]["workloads"]["varied"]["blocks"] = [*blocks[:-1], OTHER]
    assert stale(data) == [], "the last block is left to `speclint lock --check` and the run"
    data["lock"]["workloads"]["varied"]["blocks"] = [OTHER, *blocks[1:]]
    assert stale(data) == ["/lock/workloads/varied/blocks"]
    data["lock"]["workloads"]["varied"]["blocks"] = blocks[:-1]
    assert stale(data) == ["/lock/workloads/varied/blocks"]
