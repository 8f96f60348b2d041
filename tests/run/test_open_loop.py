"""The open loop: due times, sending by them, figures from them, and a whole run with open cells on the stand-in."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from stand_in import Engine
from stand_in_run import driven, load_of, made, spec_data

from speclint.data import spec_schema
from specrun import blocks, drive, entry, outline, plan, record, scope
from specrun.arrival import OPEN, due_times, place
from specrun.compare import cells_of
from specrun.measure import figures
from specrun.plan import Cell
from specrun.progress import Progress
from specrun.record import Record
from specrun.rejudge import contradictions
from specrun.report.text import report
from specrun.run import Run

pytestmark = pytest.mark.thorough

RATE = 40.0
ARRIVAL = {"process": "poisson", "rate": RATE, "seed": 5}
OPENED = ("confidence: 0.95", f"confidence: 0.95\n  slo: {{ttft: 0.5}}\n  arrival: {{process: poisson, rate: {RATE}, seed: 5}}")
JUDGED = ("metric: request_duration_p50, compare: ratio, workload: varied, concurrency: 1", "metric: goodput, concurrency: open")


def test_gaps_are_exponential_and_decided_by_seed_and_window() -> None:
    times = due_times(ARRIVAL, 4000, 1, "varied")
    gaps = [b - a for a, b in pairwise([0.0, *times])]
    assert statistics.fmean(gaps) == pytest.approx(1 / RATE, rel=0.05)  # the sd of the mean is 1.6 %
    assert statistics.stdev(gaps) == pytest.approx(1 / RATE, rel=0.08)
    assert sum(gap > 1 / RATE for gap in gaps) / 4000 == pytest.approx(math.exp(-1), abs=0.03)
    assert times == due_times(ARRIVAL, 4000, 1, "varied")
    others = [due_times(ARRIVAL, 4000, 2, "varied"), due_times(ARRIVAL | {"seed": 6}, 4000, 1, "varied")]
    assert times not in others
    assert due_times(ARRIVAL, 3, 1, "varied") == times[:3] == [0.044862, 0.074891, 0.088964]  # on every machine


def test_cells_in_open_loop_come_after_the_closed_ones() -> None:
    data = spec_data(OPENED)
    cells = plan.cell_order(data, 1)
    assert [cell.name for cell in cells[-2:]] == ["open-repetitive", "open-varied"] and len(cells) == 6
    assert plan.cell_order(data, 2) == cells[::-1]
    assert plan.requests_in_all(data) == 4 * 2 * 6 * 6
    longer = plan.seconds_estimate(data, 1.0, 100.0) - plan.seconds_estimate(spec_data(), 1.0, 100.0)
    assert longer == pytest.approx(4 * 2 * 2 * (6 + 2) / RATE)
    told = outline.outline(data, Path(), "python")
    assert "Open loop  40 requests/s, Poisson: 6 requests" in told and "open-varied" in told


def test_criteria_mean_the_open_loop_only_where_they_name_it() -> None:
    cells: list[Any] = [("varied", 1), ("varied", OPEN), ("other", OPEN)]
    assert cells_of({"metric": "ttft_p50"}, cells) == [("varied", 1)]
    assert cells_of({"metric": "ttft_p50", "concurrency": OPEN}, cells) == [("varied", OPEN), ("other", OPEN)]
    assert [place(level) for level in (4, OPEN)] == ["at 4", "in open loop"]


def test_requests_leave_when_due_whatever_is_in_flight() -> None:
    due = [0.0, 0.01, 0.011, 0.05, 0.05, 0.09]
    load = replace(load_of(spec_data(), 0, len(due)), due=due)
    records = driven(Engine(speculative={"method": "draft_model", "num_speculative_tokens": 3}), load)
    assert [r["due"] for r in records] == due
    assert all(r["due"] <= r["sent"] for r in records)
    assert not any(r["first_of_slot"] for r in records) and all(r["error"] is None for r in records)
    assert any(later["sent"] < earlier["done"] for earlier, later in pairwise(records))  # none waited for another


@pytest.mark.usefixtures("strict")
def test_a_slow_client_delays_no_due_time_and_says_so() -> None:
    watch = drive.Watch()
    for late in (0.0, 0.01, 0.05):
        watch.count(Record(0, 0, False, 8, due=1.0, sent=1.0 + late))
    assert (watch.sends, watch.late_sends) == (3, 1)
    assert watch.complaint(1.0) == "1 of 3 requests were sent more than 20 ms after they were due"
    assert drive.Watch(sends=40, late_sends=2).complaint(1.0) is None  # 5 % is still allowed


def test_latencies_run_from_the_due_time() -> None:
    def request(index: int, due: float, sent: float, first: float, done: float) -> dict[str, Any]:
        row: dict[str, Any] = {
            "index": index,
            "slot": 0,
            "first_of_slot": False,
            "due": due,
            "sent": sent,
            "first": first,
            "done": done,
        }
        row |= {"max_tokens": 3, "tokens_in": 4, "tokens_out": 3, "finish_reason": "length", "error": None}
        return row | {"chunks": [[first, 1], [done, 2]], "ids": [1, 2, 3]}

    rows = [request(0, 0.0, 0.0, 0.1, 0.3), request(1, 1.0, 1.5, 1.6, 1.8), request(2, 2.0, 2.0, 2.4, 3.0)]
    window = {"concurrency": OPEN, "seconds": 3.0, "counters": {"itl_sum": 1.0, "itl_count": 3}}
    found = figures(window, rows, {"ttft": 0.5})
    assert found["request_duration_mean"] == pytest.approx((0.3 + 0.8 + 1.0) / 3)
    assert found["ttft_mean"] == pytest.approx((0.1 + 0.6 + 0.4) / 3) and found["ttft_requests"] == 3
    assert found["goodput"] == pytest.approx(2 / 3.0)
    assert found["output_throughput"] == pytest.approx(6 / 2.0)  # from the first due time to the last
    assert found["mean_in_flight"] == pytest.approx((0.3 + 0.8) / 2.0)
    assert found["in_flight_growth"] == pytest.approx(0.8 / 0.3)
    assert found["arrival_bunching"] is None
    closed = figures(window | {"concurrency": 1}, rows, {"ttft": 0.5})
    assert closed["ttft_mean"] == pytest.approx((0.1 + 0.1 + 0.4) / 3) and closed["in_flight_growth"] is None


@dataclass(frozen=True, slots=True)
class Whole:
    run: Run
    entry: dict[str, Any]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Whole]:
    changes = (OPENED, JUDGED, ("blocks: 4, servers: restart", "blocks: 4, servers: resident"))
    prepared = made(tmp_path_factory.mktemp("open"), *changes)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(drive, "LATE_S", 60.0)  # a busy machine must not void what is looked at here
        blocks.measure(prepared, Progress(0, quiet=True))
    entry.finish(prepared)
    yield Whole(prepared, entry.unsigned(prepared, {}, "nobody"))


def test_every_arm_of_a_block_has_the_same_due_times(whole: Whole) -> None:
    seen: dict[int, list[list[float]]] = {}
    for block in (1, 2):
        for arm in ("target", "pair"):
            folder = whole.run.block_folder(block) / arm / "open-varied"
            rows = sorted(record.read(folder / "records.jsonl"), key=lambda row: row["index"])
            assert json.loads((folder / "window.json").read_text())["concurrency"] == OPEN
            seen.setdefault(block, []).append([row["due"] for row in rows])
    assert seen[1][0] == seen[1][1] == due_times(ARRIVAL, 6, 1, "varied")
    assert seen[2][0] == seen[2][1] != seen[1][0]


def test_a_run_judges_and_reports_its_open_cells(whole: Whole) -> None:
    verdict = whole.entry["verdicts"][0]
    assert [(cell["workload"], cell["concurrency"]) for cell in verdict["cells"]] == [("repetitive", OPEN), ("varied", OPEN)]
    assert all(cell["value"] > 0 for cell in verdict["cells"])
    assert {cell["concurrency"] for cell in whole.entry["verdicts"][1]["cells"]} == {2}
    columns, rows = whole.entry["figures"]["columns"], whole.entry["figures"]["rows"]
    opened = [dict(zip(columns, row, strict=True)) for row in rows if row[1] == OPEN]
    assert len(opened) == 4 and all(row["requests"] == 6 and row["goodput"] > 0 for row in opened)
    assert "in open loop at 40 requests/s" in "\n".join(scope.sentences(whole.run.data, whole.run.plan["host"], 4))
    assert "varied in open loop" in report(whole.run.data, whole.entry)
    assert contradictions(whole.entry, whole.run.data["protocol"]) == []
    verdicts = {"type": "array", "items": {"$ref": "#/$defs/verdict"}, "$defs": spec_schema()["$defs"]}
    jsonschema.validate(whole.entry["verdicts"], verdicts)


def test_warm_up_in_open_loop_is_the_same_in_all_arms_and_unmeasured(whole: Whole) -> None:
    session = blocks._Session(whole.run, Path(), Progress(0, quiet=True))
    load = session.load(Cell(OPEN, "varied"), "block 1", 0)
    assert load.due == due_times(ARRIVAL, 2, "block 1", "varied") and not load.stagger
    assert load.prompts != session.load(Cell(OPEN, "varied"), "", 1).prompts[:2]
    assert len(load.prompts) == 2


def test_a_run_says_how_much_time_it_took_beside_its_servers_and_requests() -> None:
    assert blocks.beside(400.0, 388.0) == "400 s, of which 12 s (3.0%) beside starts and stops of servers, warm-up and requests"
