from __future__ import annotations

import math
import random
from typing import Any

import pytest
from synthetic_run import window

from speclint.data import metrics
from specrun.evidence import START_METRICS
from specrun.measure import figures, percentile, quantile_of, sample_size, unsupported
from specrun.tally import failure

numpy = pytest.importorskip("numpy")


def request(index: int, slot: int, sent: float, chunks: list[tuple[float, int]], **other: Any) -> dict[str, Any]:
    tokens = sum(n for _, n in chunks)
    row = {"index": index, "slot": slot, "first_of_slot": index < 2, "due": sent, "sent": sent, "max_tokens": tokens}
    row |= {"first": chunks[0][0], "done": chunks[-1][0], "chunks": [list(c) for c in chunks], "ids": list(range(tokens))}
    return row | {"tokens_in": 10, "tokens_out": tokens, "finish_reason": "length", "error": None} | other


# K = 2, two slots. Request 0: after its first token 5 are left, so its first step counts (2 offered, 2 accepted); then 2
# are left, fewer than K + 1, so the others do not. Request 1: steps with 4 and 3 left count (0 and 1 accepted of 2 each).
RECORDS = [
    request(0, 0, 0.0, [(0.1, 1), (0.2, 3), (0.3, 1), (0.4, 1)]),
    request(1, 1, 0.05, [(0.15, 1), (0.25, 1), (0.35, 2), (0.45, 1)]),
    request(2, 0, 0.41, [(0.46, 1), (0.6, 1)]),
]
WINDOW: dict[str, Any] = {
    "concurrency": 2,
    "seconds": 0.65,
    "counters": {
        "itl_sum": 0.77,
        "itl_count": 7,
        "drafts": 7,
        "draft_tokens": 14,
        "accepted_tokens": 5,
        "accepted_per_position": [4, 1],
        "preemptions": 0,
        "queue_sum": 0.06,
        "queue_count": 3,
    },
    "server_cpu_s": {"api": 0.13, "engine": 0.6},
    "client_cpu_s": 0.006,
}
BY_HAND = {
    "requests": 3,
    "ttft_requests": 1,
    "tpot_requests": 3,
    "failed_requests": 0,
    "failed_share": 0.0,
    "request_duration_mean": (0.4 + 0.4 + 0.19) / 3,
    "request_duration_p50": None,  # 3 requests: 1.5 beyond the median
    "ttft_mean": 0.05,  # the first request of each slot is left out
    "tpot_mean": (0.3 / 5 + 0.3 / 4 + 0.14) / 3,
    "inter_chunk_gap_mean": (6 * 0.1 + 0.14) / 7,
    "decode_time_per_token": 0.74 / 10,
    "output_tokens": 13,
    "output_tokens_mean": 13 / 3,
    "output_tokens_sd": ((5 / 3) ** 2 / 2 + (2 / 3) ** 2 / 2 + (7 / 3) ** 2 / 2) ** 0.5,
    "input_tokens": 30,
    "chunk_tokens": 13,
    "chunk_steps": 7,
    "ttft_sum": 0.25,
    "duration_sum": 0.99,
    "decode_sum": 0.74,
    "output_throughput": 9 / 0.3,  # tokens after 0.15, slot 1's first, up to 0.45, when slot 1 stays empty
    "mean_in_flight": (0.25 + 0.3 + 0.04) / 0.3,
    "output_throughput_window": 13 / 0.65,
    "request_throughput": 3 / 0.65,
    "goodput": 2 / 0.65,
    "goodput_share": 2 / 3,
    "acceptance_rate": 3 / 6,
    "acceptance_rate_1": 2 / 3,
    "acceptance_rate_2": 1 / 3,
    "acceptance_rate_counters": 5 / 14,
    "acceptance_rate_counters_1": 4 / 7,
    "acceptance_rate_counters_2": 1 / 7,
    "mean_accepted_length": 1 + 5 / 7,
    "tokens_per_step": 10 / 7,
    "step_time": 0.11,
    "decode_steps": 7,
    "drafts": 7,
    "preemptions": 0,
    "queue_time": 0.02,
    "arrival_bunching": 2 / 3,  # 0 and 0.05 lie within a step of 0.11 of each other
    "arrival_bunching_by_chance": 1 - math.exp(-2 * 0.11 * 2 / 0.41),
    "front_end_load": 0.2,
    "client_cpu_per_request": 0.002,
}


@pytest.mark.parametrize("name", BY_HAND)
def test_figure_by_hand(name: str) -> None:
    found = figures(WINDOW, iter(RECORDS), {"tpot": 0.08}, k=2)[name]
    expected = BY_HAND[name]
    assert found is None if expected is None else found == pytest.approx(expected, rel=1e-12)


def test_every_metric_of_a_window_is_a_figure() -> None:
    found = figures(WINDOW, RECORDS, k=2)
    assert set(metrics()) - set(START_METRICS) - found.keys() == set()
    assert found["goodput"] is None and found["goodput_share"] is None  # no service level stated


def test_metrics_state_the_percentile_rule_that_is_applied() -> None:
    for name, metric in metrics().items():
        needed = metric["requests"]
        assert (needed is None) == (quantile_of(name) is None), name
        if needed:
            assert unsupported(name, needed) is None and unsupported(name, needed - 1), name
        assert metric["vllm"].endswith("."), name


@pytest.mark.parametrize(
    ("slo", "good"),
    [
        ({"ttft": 0.1}, 3),
        ({"ttft": 0.0999}, 1),
        ({"request_duration": 0.3}, 1),
        ({"tpot": 0.08, "request_duration": 0.3}, 0),
        ({"tpot": 0.08, "ttft": 0.1, "request_duration": 0.4}, 2),
    ],
)
def test_goodput_counts_requests_that_meet_every_limit(slo: dict[str, float], good: int) -> None:
    """TTFT 0.1, 0.1, 0.05; duration 0.4, 0.4, 0.19; TPOT 0.06, 0.075, 0.14 s. One more request fails and meets none."""
    records = [*RECORDS, RECORDS[0] | {"error": "HTTP 500"}]
    found = figures(WINDOW, records, {limit: value + 1e-9 for limit, value in slo.items()})
    assert (found["goodput"], found["goodput_share"]) == (pytest.approx(good / 0.65), good / 4)


def test_acceptance_of_a_method_that_does_not_draft_at_every_step() -> None:
    found = figures(WINDOW, RECORDS, k=2, drafts_every_step=False)
    assert found["acceptance_rate"] == pytest.approx(3 / 14)  # (13 - 3) tokens beyond each first in 7 steps, over 14 draft tokens
    assert "acceptance_rate_1" not in found
    draftless = {**WINDOW, "counters": WINDOW["counters"] | {"drafts": 0, "draft_tokens": 0, "accepted_tokens": 0}}
    assert figures(draftless, RECORDS, k=2, drafts_every_step=False)["acceptance_rate"] is None
    assert figures(draftless, RECORDS, k=2)["mean_accepted_length"] is None


def test_target_has_no_acceptance_and_absent_series_are_none() -> None:
    found = figures({**WINDOW, "counters": {"itl_sum": None, "itl_count": None}}, RECORDS)
    for name in ("acceptance_rate", "drafts", "mean_accepted_length", "step_time", "tokens_per_step", "arrival_bunching"):
        assert found[name] is None


def test_where_chunks_hold_several_steps_the_counters_stand_in() -> None:
    merged = {**WINDOW, "counters": WINDOW["counters"] | {"itl_count": 8}}
    found = figures(merged, RECORDS, k=2)
    assert found["acceptance_rate"] == 5 / 14
    assert (found["acceptance_rate_1"], found["acceptance_rate_2"]) == (4 / 7, 1 / 7)
    lookup = figures(merged, RECORDS, k=2, drafts_every_step=False)
    assert lookup["acceptance_rate"] == (13 - 3 - 8) / 14  # tokens beyond each first, less the decode steps


def test_last_step_of_an_answer_that_stopped_is_not_counted() -> None:
    stopped = [RECORDS[0] | {"finish_reason": "stop", "max_tokens": 50}]
    found = figures(WINDOW | {"counters": {}}, stopped, k=2, natural=True)
    assert found["acceptance_rate"] == 2 / 4  # steps of 3 and 1 tokens; the last one may have been cut


@pytest.mark.parametrize(
    ("change", "natural", "reason"),
    [
        ({}, False, None),
        ({"error": "HTTP 500"}, False, "HTTP 500"),
        ({"first": None, "done": None}, False, "no tokens or no usage"),
        ({"tokens_out": None}, False, "no tokens or no usage"),
        ({"max_tokens": 9}, False, "6 tokens instead of 9"),
        ({"max_tokens": 9, "finish_reason": "stop"}, False, "6 tokens instead of 9"),
        ({"max_tokens": 9, "finish_reason": "stop"}, True, None),
        ({"max_tokens": 9, "finish_reason": "length"}, True, "6 tokens instead of 9"),
    ],
)
def test_what_counts_as_failed(change: dict[str, Any], natural: bool, reason: str | None) -> None:
    record = RECORDS[0] | change
    assert failure(record, natural) == reason
    found = figures(WINDOW, [record, *RECORDS[1:]], natural=natural)
    assert found["failed_requests"] == (reason is not None)
    assert found["requests"] == 2 + (reason is None)


def test_nothing_but_failures_has_no_figures_and_no_error() -> None:
    found = figures(WINDOW, [record | {"error": "gone"} for record in RECORDS], k=2)
    assert found["failed_share"] == 1
    assert found["request_duration_mean"] is None and found["output_throughput"] is None


@pytest.mark.parametrize(
    ("metric", "enough"), [("ttft_p50", 20), ("tpot_p90", 100), ("request_duration_p95", 200), ("inter_chunk_gap_p99", 1000)]
)
def test_percentiles_need_ten_requests_beyond_them(metric: str, enough: int) -> None:
    assert unsupported(metric, enough) is None
    assert unsupported(metric, enough - 1) == f"{metric} needs {enough} requests in a window, there are {enough - 1}"
    assert unsupported(metric, enough // 2, 5) is None


def test_support_of_other_metrics() -> None:
    assert quantile_of("ttft_mean") is None and unsupported("ttft_mean", 1) is None
    found = figures(WINDOW, RECORDS)
    assert (sample_size("ttft_p50", found), sample_size("request_duration_p95", found)) == (1, 3)


def test_percentile_is_shown_from_five_beyond() -> None:
    made, records = window(3, concurrency=1, requests=10)
    assert figures(made, records)["request_duration_p50"] is not None
    assert figures(made, records[:9])["request_duration_p50"] is None


def test_percentile_as_numpy() -> None:
    values = sorted(random.Random(5).random() for _ in range(37))
    for q in (0.0, 0.5, 0.9, 0.95, 0.99, 1.0):
        assert percentile(values, q) == pytest.approx(numpy.percentile(values, 100 * q), rel=1e-12)


@pytest.mark.parametrize("k", [1, 3])
def test_acceptance_is_that_of_the_draft(k: int) -> None:
    """Delivered acceptance is unbiased by the end of the answers: 0.6 by position, given the ones before."""
    made, records = window(11, concurrency=4, requests=600, k=k, accept=0.6, tokens=16)
    found = figures(made, records, k=k)
    assert found["acceptance_rate"] == pytest.approx(sum(0.6**i for i in range(1, k + 1)) / k, abs=0.02)
    assert found[f"acceptance_rate_{k}"] == pytest.approx(0.6**k, abs=0.02)


def test_lock_step_shows_beyond_what_load_explains() -> None:
    together = [request(i, i % 4, 0.5 * (i // 4), [(0.5 * (i // 4) + 0.1, 1), (0.5 * (i // 4) + 0.49, 9)]) for i in range(32)]
    spread, records = window(1, concurrency=4, requests=32)
    lock_step = figures({**WINDOW, "counters": {"itl_sum": 0.1, "itl_count": 10}}, together)
    free = figures(spread, records)
    assert lock_step["arrival_bunching"] == 1.0
    assert lock_step["arrival_bunching"] - lock_step["arrival_bunching_by_chance"] > 0.5  # type: ignore[operator]
    assert free["arrival_bunching"] - free["arrival_bunching_by_chance"] < 0.2  # type: ignore[operator]
