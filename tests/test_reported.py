"""Failures that people reported with speculative decoding, told by the spec and its lock alone, and their controls."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from spec_cases import dumped, lint, overlaid

CASES: list[dict[str, Any]] = json.loads((Path(__file__).parent / "data" / "reported.json").read_text(encoding="utf-8"))["cases"]


@pytest.mark.parametrize("row", CASES, ids=lambda row: f"{row['case']}-{row['input']}")
def test_reported_failure_gets_its_verdict(row: dict[str, Any]) -> None:
    found = {(item.code, item.severity) for item in lint(dumped(overlaid(copy.deepcopy(row["overlay"]))))}
    if "code" in row:
        assert (row["code"], row["severity"]) in found
    else:
        assert {item for item in found if item[1] != "info"} == set()
