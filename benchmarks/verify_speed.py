"""How long `specrun verify --records` takes over the raw records, and in how much memory.

    python benchmarks/verify_speed.py

Run folders of examples/tiny-draft.spec.yaml with synthetic records: 8 windows a block, answers of 32 or 48 tokens ± 50 %, one
chunk a decode step. A process of its own compares every file with the manifest and computes every figure again; seconds are
its CPU time, megabytes its peak. What it holds is one window's numbers, so more blocks need no more memory.
"""

from __future__ import annotations

import os
import random
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from speclint import document
from speclint.canonical import section_digests, spec_digest
from speclint.workload import lengths, requests_at
from specrun import manifest, plan, record
from specrun.record import Record, ids_digest
from specrun.run import Run

ROOT = Path(__file__).resolve().parent.parent
EXAMPLE = ROOT / "examples" / "tiny-draft.spec.yaml"
SIZES = ((25_000, 4), (100_000, 16), (100_000, 4))  # requests, blocks
ACCEPTED, STEP_S, FIRST_S = 0.6, 0.004, 0.015


def main() -> None:
    print(f"{'requests':>9}{'blocks':>8}{'chunks':>11}{'MB':>7}{'CPU s':>8}{'peak MB':>9}")
    for size, blocks in SIZES:
        with tempfile.TemporaryDirectory() as scratch:
            made = run_folder(Path(scratch) / "run", size, blocks)
            chunks = windows(made)
            manifest.write(made.folder)
            weight = sum(path.stat().st_size for path in made.folder.rglob("records.jsonl")) / 1e6
            seconds, peak = measured(made.folder)
        print(f"{plan.requests_in_all(made.data):>9,}{blocks:>8}{chunks:>11,}{weight:>7.0f}{seconds:>8.1f}{peak:>9.0f}")


def run_folder(folder: Path, size: int, blocks: int) -> Run:
    """A run of the example whose windows hold `size` requests together."""
    data: dict[str, Any] = dict(document.read(EXAMPLE).data)
    data["protocol"]["design"]["blocks"] = blocks
    load = data["protocol"]["load"]
    in_all, wanted = plan.requests_in_all(data), load["requests"]
    load["requests"] = [size * n // in_all for n in wanted] if isinstance(wanted, list) else size * wanted // in_all
    host = {"processor": "none", "cores": 1, "memory_bytes": 0, "gpus": []}
    frozen = {"id": folder.name, "spec": data, "spec_folder": str(ROOT), "digest": spec_digest(data), "host": host}
    frozen["attempts"] = {"pair": 1, "spec": 1}
    record.write_json(folder / "plan.json", frozen | {"sections": section_digests(data)})
    return Run(folder, frozen)


def windows(made: Run) -> int:
    """Every start and window of every block. Returns the number of chunks."""
    chunks = 0
    for block in range(1, made.data["protocol"]["design"]["blocks"] + 1):
        for arm in plan.arms(made.data):
            folder = made.block_folder(block) / arm
            record.write_json(folder / "start.json", start(arm))
            (folder / "server.log").write_text("", encoding="utf-8")
            for cell in plan.cell_order(made.data, block):
                chunks += window(made, block, arm, cell, folder / cell.name)
        record.write_json(made.block_folder(block) / "block.json", {"block": block, "try": 1})
    return chunks


def start(arm: str) -> dict[str, Any]:
    """The least that a start leaves; the configuration is not told, as by a release without that endpoint."""
    minimal = {"path": "/v1/completions", "request": {}, "response": {}}
    capacity = {"kv_capacity_tokens": 1024, "kv_capacity_sequences": 1, "kv_cache_bytes": None}
    facts: dict[str, Any] = {"arm": arm, "argv": ["python"], "config": None, "from_log": {}, "capacity": capacity}
    return facts | {"ready_after_s": 1.0, "memory_bytes": 1, "minimal": minimal}


def window(made: Run, block: int, arm: str, cell: plan.Cell, folder: Path) -> int:
    """One window of requests that are answered at once by every slot. Returns its chunks."""
    folder.mkdir(parents=True)
    counters: dict[str, Any] = {"itl_count": 0, "itl_sum": 0.0, "drafts": None, "draft_tokens": None, "accepted_tokens": None}
    with (folder / "records.jsonl").open("w", encoding="utf-8") as out:
        for one in requests(made, block, arm, cell):
            out.write(one.line())
            counters["itl_count"] += len(one.chunks) - 1
            counters["itl_sum"] += STEP_S * (len(one.chunks) - 1)
            seconds = one.done
    if arm == "pair":
        drafts, k = counters["itl_count"], made.data["pair"]["speculative"]["num_speculative_tokens"]
        counters |= {"drafts": drafts, "draft_tokens": k * drafts, "accepted_tokens": drafts}
    head = {"block": block, "arm": arm, "workload": cell.workload, "concurrency": cell.concurrency, "void": None}
    count = requests_at(made.data["protocol"], cell.concurrency)
    record.write_json(folder / "window.json", head | {"requests": count, "seconds": seconds, "counters": counters})
    return int(counters["itl_count"]) + count


def requests(made: Run, block: int, arm: str, cell: plan.Cell) -> Iterator[Record]:
    """Records of one window, in the order in which they are sent."""
    k, slots = made.data["pair"]["speculative"]["num_speculative_tokens"] if arm == "pair" else 0, int(cell.concurrency)
    chance, free = random.Random(f"{block} {cell.name}"), [0.0] * slots
    output, count = made.workload(cell.workload)["output"], requests_at(made.data["protocol"], cell.concurrency)
    for index, limit in enumerate(lengths(output, count, cell.workload, block)):
        slot = index % slots
        one = Record(index, slot, index < slots, limit, free[slot], free[slot])
        answer(one, chance, k)
        free[slot] = (one.done or 0.0) + 0.0001
        yield one


def answer(one: Record, chance: random.Random, k: int) -> None:
    """Fill a record with a whole answer, chunk by chunk."""
    now = one.first = one.sent + FIRST_S
    one.chunks.append((now, 1))
    left = one.max_tokens - 1
    while left:
        now += STEP_S * chance.uniform(0.8, 1.2)
        took = min(left, 1 + next((i for i in range(k) if chance.random() > ACCEPTED), k))
        one.chunks.append((now, took))
        left -= took
    one.ids = [chance.randrange(32_000) for _ in range(one.max_tokens)]
    one.done, one.finish_reason, one.digest = now, "length", ids_digest(one.ids)
    one.tokens_in, one.tokens_out, one.prompt_digest = 60, one.max_tokens, ids_digest([one.index])


def measured(folder: Path) -> tuple[float, float]:
    """CPU seconds and peak megabytes of a process that verifies the folder's records, its start included."""
    code = (
        "import sys; from pathlib import Path; from specrun import entry, manifest; folder = Path(sys.argv[1]); "
        "assert not manifest.differences(folder, manifest.read(folder)); assert entry.recompute(folder)['figures']['rows']"
    )
    child = os.posix_spawn(sys.executable, [sys.executable, "-c", code, str(folder)], os.environ)
    _, status, usage = os.wait4(child, 0)
    if status:
        raise SystemExit(f"verifying failed: status {os.waitstatus_to_exitcode(status)}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1e3


if __name__ == "__main__":
    main()
