"""What a report takes from the records: only those that were signed, only windows that count, every step once."""

from __future__ import annotations

import copy
import json
import shutil
from collections import Counter
from pathlib import Path
from statistics import median

import pytest
from report_sample import BLOCKS, CELLS, Sample
from synthetic_run import window

from specrun.errors import Refused
from specrun.report import records as report_records
from specrun.report.records import Span, Steps, binned, counts, found, named, recorded, uncut_steps
from specrun.tally import Tally


def test_steps_are_those_of_the_acceptance_rate() -> None:
    for finish in ("length", "stop"):
        _, records = window(3, k=3, accept=0.7)
        tally, steps = Tally(3, {}), Counter[int]()
        for request in records:
            request["finish_reason"] = finish
            tally.add(request)
            steps.update(accepted + 1 for _, accepted in uncut_steps(request, 3))
        assert steps == tally.step_sizes and steps.total() > 100


def test_steps_by_hand() -> None:
    request = {
        "chunks": [[0.1, 1], [0.2, 3], [0.25, 0], [0.3, 2], [0.4, 4], [0.5, 1]],
        "max_tokens": 11,
        "finish_reason": "length",
    }
    # Before the steps 1, 4 and 6 tokens are there; at 10 of 11 fewer than K + 1 = 4 are left.
    assert list(uncut_steps(request, 3)) == [(1, 2), (4, 1), (6, 3)]
    assert list(uncut_steps(request | {"finish_reason": "stop", "max_tokens": 99}, 3)) == [(1, 2), (4, 1), (6, 3)]
    assert list(uncut_steps({"chunks": [], "max_tokens": 5, "finish_reason": "stop"}, 3)) == []


@pytest.mark.parametrize(("tokens", "low"), [(0, 0), (7, 0), (8, 8), (15, 8), (16, 16), (63, 32), (64, 64), (1000, 512)])
def test_bins(tokens: int, low: int) -> None:
    assert binned(tokens) == low


def test_everything_is_counted_once(reported: Sample) -> None:
    seen = recorded(reported.entry, reported.folder)
    assert {key: len(values) for key, values in seen.durations.items()} == {
        (cell, arm): 32 * BLOCKS for cell in CELLS for arm in ("target", "pair")
    }
    assert {len(values) for (cell, _), values in seen.ttfts.items() if cell[1] == 4} == {28 * BLOCKS}
    assert all(values == sorted(values) for values in seen.durations.values())
    drafted = sum(field.steps for workload in seen.maps.values() for field in workload.values())
    tallies = [tally_of(path) for path in reported.folder.glob("b*/pair/*/records.jsonl")]
    assert drafted == sum(tally.step_sizes.total() for tally in tallies) and seen.merged == 0
    rates = [
        tally.accepted_at(1) / tally.step_sizes.total() for tally in map(tally_of, reported.folder.glob("b*/pair/c1-varied/*l"))
    ]
    assert seen.positions[("varied", 1)][0] == pytest.approx(median(rates)) and len(seen.positions[("varied", 1)]) == 3


def tally_of(path: Path) -> Tally:
    tally = Tally(3, {})
    for line in path.read_text(encoding="utf-8").splitlines():
        tally.add(json.loads(line))
    return tally


def test_void_blocks_count_for_nothing(reported: Sample) -> None:
    entry = copy.deepcopy(reported.entry)
    row = next(
        r for r in entry["ratios"] if (r["workload"], r["concurrency"], r["metric"]) == ("varied", 1, "request_duration_mean")
    )
    row["blocks"][2] = None
    assert [counts(entry, ("varied", 1), index) for index in range(BLOCKS)] == [True, True, False, True]
    seen = recorded(entry, reported.folder)
    assert len(seen.durations[(("varied", 1), "pair")]) == 96 and len(seen.durations[(("varied", 4), "pair")]) == 128


def test_only_the_signed_records_are_drawn(reported: Sample, tmp_path: Path) -> None:
    folder = tmp_path / "runs" / "r1"
    shutil.copytree(reported.folder, folder)
    assert found(reported.entry, tmp_path) == folder == named(reported.entry, folder) == named(reported.entry, tmp_path / "runs")
    records = folder / "b01" / "pair" / "c1-varied" / "records.jsonl"
    records.write_text(records.read_text(encoding="utf-8").replace('"slot": 0', '"slot": 1', 1), encoding="utf-8")
    assert found(reported.entry, tmp_path) is None
    with pytest.raises(Refused, match=r"b01/pair/c1-varied/records\.jsonl differs"):
        named(reported.entry, folder)
    other = copy.deepcopy(reported.entry)
    other["records"]["manifest"] = "sha256:" + "0" * 64
    with pytest.raises(Refused, match="not those of this result"):
        named(other, reported.folder)
    with pytest.raises(Refused, match="no readable manifest"):
        named(reported.entry, tmp_path)


def test_merged_chunks_are_left_out_of_the_map(reported: Sample, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(reported.folder, folder)
    path = folder / "b01" / "pair" / "c1-varied" / "window.json"
    info = json.loads(path.read_text(encoding="utf-8"))
    info["counters"]["itl_count"] = round(info["counters"]["itl_count"] * 1.02)
    path.write_text(json.dumps(info), encoding="utf-8")
    whole, part = recorded(reported.entry, reported.folder), recorded(reported.entry, folder)
    assert part.merged == 1 and total(part.maps["varied"]) < total(whole.maps["varied"])
    assert part.maps["repetitive"] == whole.maps["repetitive"]


def total(fields: report_records.Map) -> int:
    return sum(field.steps for field in fields.values())


def test_time_line_has_starts_windows_and_marks(reported: Sample, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(reported.folder, folder)
    shutil.copytree(folder / "b02", folder / "b02.void1")
    path = folder / "b01" / "pair" / "c4-varied" / "window.json"
    path.write_text(path.read_text(encoding="utf-8").replace('"void": null', '"void": "the client was late"'), encoding="utf-8")
    spans = recorded(reported.entry, folder).spans
    first = next(span for span in spans if span.kind == "start" and span.row == "block 1" and span.arm == "target")
    assert first == Span("block 1", "target", "start", 85.0, 90.0, "server start", "")
    windows = [span for span in spans if span.kind == "window"]
    assert len(windows) == 8 * (BLOCKS + 1) and min(span.begin for span in windows) == 100.0
    notes = Counter(span.note for span in windows if span.note)
    assert notes == {"block repeated or interrupted: this try does not count": 8, "the client was late": 1}


def test_steps_add_up() -> None:
    assert Steps(2, 3).plus(Steps(1, 0)) == Steps(3, 3)
