"""Attempts are counted, and a damaged ledger is still one."""

from __future__ import annotations

import json
from pathlib import Path

from stand_in_run import spec_data

from specrun import ledger


def test_attempts_of_pair_and_spec(tmp_path: Path) -> None:
    path, data, other_k = (
        tmp_path / "runs" / "ledger.jsonl",
        spec_data(),
        spec_data(("num_speculative_tokens: 3", "num_speculative_tokens: 4")),
    )
    other_draft = spec_data(("model: draft", "model: another"))
    assert ledger.add(path, "r1", data, "t") == {"pair": 1, "spec": 1}
    assert ledger.add(path, "r2", data, "t") == {"pair": 2, "spec": 2}
    assert ledger.add(path, "r3", other_k, "t") == {"pair": 3, "spec": 1}  # another K is the same pair
    assert ledger.add(path, "r4", other_draft, "t") == {"pair": 1, "spec": 1}
    assert [json.loads(line)["run"] for line in path.read_text().splitlines()] == ["r1", "r2", "r3", "r4"]
    assert "num_speculative_tokens" in data["pair"]["speculative"]


def test_a_torn_line_costs_itself_only(tmp_path: Path) -> None:
    path, data = tmp_path / "ledger.jsonl", spec_data()
    ledger.add(path, "r1", data, "t")
    with path.open("ab") as stream:
        stream.write(b'{"run": "r2", "pa\xff')
    assert ledger.add(path, "r3", data, "t") == {"pair": 2, "spec": 2}
    assert [row["run"] for row in ledger.attempts(path)] == ["r1", "r3"]
    path.write_text('[1]\n"x"\n{}\n' + path.read_text(errors="replace"), encoding="utf-8")
    assert ledger.add(path, "r4", data, "t") == {"pair": 3, "spec": 3}
