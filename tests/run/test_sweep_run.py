"""A K sweep from plan to report, on stand-in servers."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
from stand_in_run import made

from speclint.data import spec_schema
from specrun import blocks, device, entry
from specrun.progress import Progress
from specrun.rejudge import unlike
from specrun.report.text import report

pytestmark = pytest.mark.thorough

SWEEP = ("  criteria:", "  sweep: {num_speculative_tokens: [1, 3]}\n  criteria:")


def test_sweep_runs_as_one_protocol(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "PLACE", tmp_path)
    prepared = made(tmp_path, SWEEP, first=False)
    blocks.measure(prepared, Progress(0, quiet=True))
    found = entry.finish(prepared)
    assert found["established"]["verdict"] == "established", found["established"]["checks"]
    assert list(found["arms"]) == ["target", "pair", "k1"]
    for arm, k in (("pair", 3), ("k1", 1)):
        start = json.loads((prepared.folder / "b02" / arm / "start.json").read_text(encoding="utf-8"))
        assert start["config"]["speculative_config"]["num_speculative_tokens"] == k
    sweep = found["sweep"]
    jsonschema.validate(sweep, spec_schema()["$defs"]["result"]["properties"]["sweep"])
    assert sweep["num_speculative_tokens"] == [1, 3]
    cells = {(table["metric"], table["workload"], table["concurrency"]) for table in sweep["tables"]}
    assert cells == {("request_duration_p50", "varied", 1)} | {("output_throughput", w, 2) for w in ("varied", "repetitive")}
    assert {table["rows"][0]["k"] for table in sweep["tables"]} == {1}
    columns = found["figures"]["columns"]
    rates = {row[columns.index("arm")]: row[columns.index("acceptance_rate")] for row in found["figures"]["rows"]}
    assert rates["target"] is None and rates["k1"] > rates["pair"]  # later positions are accepted less
    again = entry.recompute(prepared.folder)
    assert list(unlike(found["sweep"], again["sweep"])) == []
    whole = entry.unsigned(prepared, {}, "nobody")
    assert "Sweep of K" in report(prepared.data, whole) and "against the other K" in report(prepared.data, whole, "markdown")
