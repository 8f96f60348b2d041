"""Figures of one window: a pure function of its request records and the server's counters.

The schema's metric list says in one sentence what each figure is; this module says it in code. Where `vllm bench serve`
means something else by the same word:

* Request duration runs from sending to the last token, as its E2EL does; waiting for a free slot is in neither. In open loop
  it and TTFT run from the due time, so that a late client cannot hide a queue; there from the sending.
* TTFT ends at the first chunk that holds tokens; there also at an empty or role-only chunk. The first request of each
  slot, sent into a server that is not yet loaded, is left out here.
* TPOT is the same, per request from the server's usage. Requests of one token have none; for goodput they count as 0.
* The inter-chunk gap is what it calls ITL: under speculation one verification step, not one token.
* `output_throughput` is steady here; `output_throughput_window` is its definition, ramp and tail included.
* Percentiles interpolate linearly in both; here there is none that the number of requests cannot support.
* Acceptance is a share of 1 of delivered tokens; its percentage comes from the counters, which also count draft tokens
  accepted past a request's limit. That figure is `acceptance_rate_counters` here.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from statistics import fmean, stdev
from typing import Any

from specrun.arrival import OPEN, Level
from specrun.tally import Tally, failure

Figures = dict[str, float | int | None]

JUDGED_BEYOND, SHOWN_BEYOND = 10, 5  # requests that must lie beyond a percentile
MERGED_CHUNKS = 0.005  # chunks may differ from the server's decode steps by this share
SAMPLES = {
    "request_duration": "requests",
    "ttft": "ttft_requests",
    "tpot": "tpot_requests",
    "inter_chunk_gap": "requests",
}


def figures(
    window: Mapping[str, Any],
    records: Iterable[Mapping[str, Any]],
    slo: Mapping[str, float] | None = None,
    *,
    k: int | None = None,
    drafts_every_step: bool = True,
    natural: bool = False,
) -> Figures:
    """Every figure of a window, in seconds, tokens and requests; None where there is no value.

    One pass over the records, of which about 60 bytes per request and 24 per chunk are kept. `k`: the arm's
    num_speculative_tokens, None without speculation. `drafts_every_step`: the method drafts at every decode step (not
    ngram, not suffix). `natural`: answers may end by themselves; otherwise one shorter than its limit has failed.
    """
    tally = Tally(k, slo or {}, window["concurrency"] == OPEN)
    for record in records:
        if failure(record, natural):
            tally.failed += 1
        else:
            tally.add(record)
    counted = _counted(window["counters"], tally)
    return (
        _latencies(tally)
        | _work(tally, window)
        | counted
        | _acceptance(tally, window["counters"], counted, drafts_every_step)
        | _arrivals(tally, None if tally.open_loop else counted["step_time"])
        | _queue(tally)
        | _processor(window, len(tally.durations))
    )


def unsupported(metric: str, n: int, beyond: int = JUDGED_BEYOND) -> str | None:
    """Why `n` requests do not support a percentile metric; None if they do or it is none. n >= beyond / (1 - q)."""
    quantile = quantile_of(metric)
    if quantile is None:
        return None
    needed = math.ceil(round(beyond / (1 - quantile), 6))
    return None if n >= needed else f"{metric} needs {needed} requests in a window, there are {n}"


def quantile_of(metric: str) -> float | None:
    """0.95 for `ttft_p95`; None for a metric that is no percentile."""
    found = re.fullmatch(r"\w+_p(\d\d)", metric)
    return int(found[1]) / 100 if found else None


def sample_size(metric: str, row: Mapping[str, float | int | None]) -> int:
    """How many requests a latency metric of these figures rests on."""
    return int(row.get(SAMPLES[metric.rpartition("_")[0]]) or 0)


def _latencies(tally: Tally) -> Figures:
    samples = {
        "request_duration": tally.durations,
        "ttft": tally.ttfts,
        "tpot": tally.tpots,
        "inter_chunk_gap": tally.gaps,
    }
    out: Figures = {
        "requests": len(tally.durations),
        "ttft_requests": len(tally.ttfts),
        "tpot_requests": len(tally.tpots),
    }
    for name, values in samples.items():
        ordered = sorted(values)
        out[f"{name}_mean"] = fmean(ordered) if ordered else None
        for percent in (50, 90, 95, 99):
            metric = f"{name}_p{percent}"
            shown = ordered and not unsupported(metric, int(out[SAMPLES[name]] or 0), SHOWN_BEYOND)
            out[metric] = percentile(ordered, percent / 100) if shown else None
    return out


def percentile(ordered: Sequence[float], q: float) -> float:
    """Percentile of ascending values by linear interpolation, numpy's default."""
    place = (len(ordered) - 1) * q
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def _work(tally: Tally, window: Mapping[str, Any]) -> Figures:
    """Totals, lengths and rates. The sums are over all whole requests, the first of each slot included."""
    requests, tokens, seconds = len(tally.durations), sum(tally.lengths), window["seconds"]
    duration_sum = math.fsum(tally.durations)
    decode_sum = duration_sum - tally.ttft_sum
    return {
        "failed_requests": tally.failed,
        "failed_share": _ratio(tally.failed, requests + tally.failed),
        "output_tokens": tokens,
        "input_tokens": tally.tokens_in,
        "chunk_tokens": sum(tally.chunk_tokens),
        "output_tokens_mean": _ratio(tokens, requests),
        "output_tokens_sd": stdev(tally.lengths) if requests > 1 else None,
        "duration_sum": duration_sum,
        "ttft_sum": tally.ttft_sum,
        "decode_sum": decode_sum,
        "decode_time_per_token": _ratio(decode_sum, tokens - requests),
        "output_throughput_window": _ratio(tokens, seconds),
        "request_throughput": _ratio(requests, seconds),
        "goodput": _ratio(tally.good, seconds) if tally.slo else None,
        "goodput_share": _ratio(tally.good, requests + tally.failed) if tally.slo else None,
    } | _steady(tally, window["concurrency"])


def _steady(tally: Tally, concurrency: Level) -> Figures:
    """Output throughput and mean number of requests in flight while the load is whole; by the second Little's law is checked."""
    start, end = _whole_load(tally, concurrency)
    if end <= start:
        return {"output_throughput": None, "mean_in_flight": None}
    inside = sum(n for t, n in zip(tally.chunk_times, tally.chunk_tokens, strict=True) if start < t <= end)
    return {"output_throughput": inside / (end - start), "mean_in_flight": _in_flight(tally, start, end)}


def _whole_load(tally: Tally, concurrency: Level) -> tuple[float, float]:
    """From when every slot has its first token until one stays empty; in open loop from the first due time to the last."""
    if concurrency == OPEN:
        return min(tally.sent, default=0.0), max(tally.sent, default=0.0)
    if len(tally.slot_first) < concurrency:
        return 0.0, 0.0
    return max(tally.slot_first.values()), min(tally.slot_last.values())


def _in_flight(tally: Tally, start: float, end: float) -> float:
    return sum(max(0.0, min(b, end) - max(a, start)) for a, b in zip(tally.sent, tally.done, strict=True)) / (end - start)


def _queue(tally: Tally) -> Figures:
    """Open loop: requests in flight in the second half of the arrivals over the first. A queue that only grows gives 3."""
    start, end = _whole_load(tally, OPEN)
    if not tally.open_loop or end <= start:
        return {"in_flight_growth": None}
    middle = (start + end) / 2
    return {"in_flight_growth": _ratio(_in_flight(tally, middle, end), _in_flight(tally, start, middle))}


def _counted(counters: Mapping[str, Any], tally: Tally) -> Figures:
    """The server's own counts over the window, and what follows from them.

    The inter-token histogram has one observation per request and decode step, so `step_time` is the mean time of a step
    and `tokens_per_step` (W - N) / S: output tokens less each request's first, over decode steps.
    """
    steps, seconds = counters.get("itl_count"), counters.get("itl_sum")
    drafts, accepted = counters.get("drafts"), counters.get("accepted_tokens")
    return {
        "decode_steps": steps,
        "step_sum": seconds,
        "step_time": _ratio(seconds, steps),
        "tokens_per_step": _ratio(sum(tally.lengths) - len(tally.lengths), steps),
        "drafts": drafts,
        "draft_tokens": counters.get("draft_tokens"),
        "accepted_tokens": accepted,
        "mean_accepted_length": None if not drafts or accepted is None else 1 + accepted / drafts,
        "acceptance_rate_counters": _ratio(accepted, counters.get("draft_tokens")),
        "preemptions": counters.get("preemptions"),
        "queue_time": _ratio(counters.get("queue_sum"), counters.get("queue_count")),
        "chunk_steps": len(tally.gaps),
    } | {f"acceptance_rate_counters_{i}": _ratio(n, drafts) for i, n in enumerate(counters.get("accepted_per_position") or [], 1)}


def _acceptance(tally: Tally, counters: Mapping[str, Any], counted: Figures, drafts_every_step: bool) -> Figures:
    """Acceptance on delivered tokens: `acceptance_rate`, and `acceptance_rate_1` to `_k` by draft position.

    A method that drafts at every step is judged from its chunks (see `Tally._drafts`). Where the server merged steps into
    one chunk, because client or API server lagged, chunks no longer show the steps: the counters' own rate stands in. It
    takes in the drafts past a request's limit, above and below the line alike. For ngram and suffix the chunks do not
    show which steps had a draft: delivered accepted tokens, (W - N) - S, over the draft tokens of the counters.
    """
    if not tally.k:
        return {"acceptance_rate": None}
    steps = counted["decode_steps"]
    if not drafts_every_step:
        taken = len(tally.gaps) if steps is None else steps
        delivered = sum(tally.lengths) - len(tally.lengths) - taken
        return {"acceptance_rate": _ratio(delivered, counters.get("draft_tokens"))}
    if steps is not None and abs(len(tally.gaps) - steps) > MERGED_CHUNKS * steps:
        by_counters = {f"acceptance_rate_{i}": counted.get(f"acceptance_rate_counters_{i}") for i in range(1, tally.k + 1)}
        return {"acceptance_rate": counted["acceptance_rate_counters"]} | by_counters
    drafts = tally.step_sizes.total()
    accepted = [tally.accepted_at(i) for i in range(1, tally.k + 1)]
    by_position: Figures = {f"acceptance_rate_{i}": _ratio(n, drafts) for i, n in enumerate(accepted, 1)}
    return {"acceptance_rate": _ratio(sum(accepted), tally.k * drafts)} | by_position


def _arrivals(tally: Tally, step_time: float | None) -> Figures:
    """Share of sends within one step time of another, and the share that as many sends at random times would have.

    Lock-step (equal lengths ending in the same step) lifts the first above the second; mere load lifts both.
    """
    sends = sorted(tally.sent)
    if step_time is None or len(sends) < 2 or sends[-1] <= sends[0]:
        return {"arrival_bunching": None, "arrival_bunching_by_chance": None}
    close = [b - a <= step_time for a, b in pairwise(sends)]
    bunched = sum(before or after for before, after in zip([False, *close], [*close, False], strict=True))
    rate = (len(sends) - 1) / (sends[-1] - sends[0])
    by_chance = 1 - math.exp(-2 * step_time * rate)
    return {"arrival_bunching": bunched / len(sends), "arrival_bunching_by_chance": by_chance}


def _processor(window: Mapping[str, Any], requests: int) -> Figures:
    """CPU of the API server as a share of one core, and of the client per request."""
    server = window.get("server_cpu_s") or {}
    return {
        "front_end_load": _ratio(server.get("api"), window["seconds"]),
        "client_cpu_per_request": _ratio(window.get("client_cpu_s"), requests),
    }


def _ratio(top: float | None, bottom: float | None) -> float | None:
    return None if top is None or not bottom else top / bottom
