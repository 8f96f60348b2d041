"""Windows as a server of known speed would leave them, for tests whose true answer is known."""

from __future__ import annotations

import heapq
import random
from typing import Any

Window = tuple[dict[str, Any], list[dict[str, Any]]]


def window(
    seed: int,
    *,
    concurrency: int = 2,
    requests: int = 32,
    k: int = 0,
    accept: float = 0.6,
    step_s: float = 0.01,
    first_s: float = 0.05,
    tokens: int = 32,
    jitter: float = 0.05,
    think_s: float = 0.0005,
) -> Window:
    """One closed-loop window. Each draft token is accepted with probability `accept` if all before it were."""
    chance, counters, records = random.Random(seed), _counters(k), []
    lengths = [random.Random(i).randint(tokens // 2, tokens * 3 // 2) for i in range(requests)]
    free = [(slot * first_s * 1.3, slot) for slot in range(concurrency)]
    for index, length in enumerate(lengths):
        sent, slot = heapq.heappop(free)
        record = _request(index, slot, sent, length, all(earlier["slot"] != slot for earlier in records))
        times = _answer(record, counters, chance, k, accept, first_s, step_s, jitter)
        records.append(record)
        heapq.heappush(free, (times + think_s, slot))
    seconds = max(record["done"] for record in records)
    counters["generation_tokens"] = sum(lengths)
    return {
        "concurrency": concurrency,
        "requests": requests,
        "seconds": seconds,
        "void": None,
        "counters": counters,
        "server_cpu_s": {"api": 0.1 * seconds, "engine": seconds},
        "client_cpu_s": 0.001 * requests,
    }, records


def _counters(k: int) -> dict[str, Any]:
    drafting: dict[str, Any] = dict.fromkeys(("drafts", "draft_tokens", "accepted_tokens"), 0 if k else None)
    drafting["accepted_per_position"] = [0] * k if k else None
    return drafting | {"itl_sum": 0.0, "itl_count": 0, "preemptions": 0}


def _request(index: int, slot: int, sent: float, length: int, first_of_slot: bool) -> dict[str, Any]:
    return {
        "index": index,
        "slot": slot,
        "first_of_slot": first_of_slot,
        "due": sent,
        "sent": sent,
        "max_tokens": length,
        "tokens_in": 20,
        "tokens_out": length,
        "finish_reason": "length",
        "error": None,
        "ids": list(range(length)),
        "chunks": [],
    }


def _answer(
    record: dict[str, Any],
    counters: dict[str, Any],
    chance: random.Random,
    k: int,
    accept: float,
    first_s: float,
    step_s: float,
    jitter: float,
) -> float:
    now = record["sent"] + first_s * chance.uniform(1 - jitter, 1 + jitter)
    record["first"], delivered = now, 1
    record["chunks"].append([now, 1])
    while delivered < record["max_tokens"]:
        took = step_s * chance.uniform(1 - jitter, 1 + jitter)
        now += took
        counters["itl_sum"] += took
        counters["itl_count"] += 1
        n = min(1 + _accepted(counters, chance, k, accept), record["max_tokens"] - delivered)
        record["chunks"].append([now, n])
        delivered += n
    record["done"] = now
    return now


def _accepted(counters: dict[str, Any], chance: random.Random, k: int, accept: float) -> int:
    if not k:
        return 0
    accepted = next((i for i in range(k) if chance.random() >= accept), k)
    counters["drafts"] += 1
    counters["draft_tokens"] += k
    counters["accepted_tokens"] += accepted
    for position in range(accepted):
        counters["accepted_per_position"][position] += 1
    return accepted
