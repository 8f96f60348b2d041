"""One pass over the request records of a window, reduced to the numbers that the figures are made of."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any


def failure(record: Mapping[str, Any], natural: bool = False) -> str | None:
    """Why a request counts as failed: an error, no usage, or shorter than its limit; None if it is a whole answer."""
    if record["error"]:
        return str(record["error"])
    if record["first"] is None or record["done"] is None or not record["tokens_out"]:
        return "no tokens or no usage"
    ended_early = not natural or record["finish_reason"] == "length"
    if ended_early and record["tokens_out"] < record["max_tokens"]:
        return f"{record['tokens_out']} tokens instead of {record['max_tokens']}"
    return None


def _floats() -> array[float]:
    return array("d")


def _ints() -> array[int]:
    return array("q")


@dataclass(slots=True)
class Tally:
    """What one pass over the whole requests leaves. In open loop a request's times run from when it was due."""

    k: int | None
    slo: Mapping[str, float]
    open_loop: bool = False
    failed: int = 0
    good: int = 0
    durations: array[float] = field(default_factory=_floats)
    ttfts: array[float] = field(default_factory=_floats)
    tpots: array[float] = field(default_factory=_floats)
    gaps: array[float] = field(default_factory=_floats)
    sent: array[float] = field(default_factory=_floats)
    done: array[float] = field(default_factory=_floats)
    chunk_times: array[float] = field(default_factory=_floats)
    chunk_tokens: array[int] = field(default_factory=_ints)
    lengths: array[int] = field(default_factory=_ints)
    tokens_in: int = 0
    ttft_sum: float = 0.0
    slot_first: dict[int, float] = field(default_factory=dict)
    slot_last: dict[int, float] = field(default_factory=dict)
    step_sizes: Counter[int] = field(default_factory=Counter)

    def add(self, record: Mapping[str, Any]) -> None:
        """Count one whole request."""
        sent = record["due" if self.open_loop else "sent"]
        first, done, tokens = record["first"], record["done"], record["tokens_out"]
        ttft, tpot = first - sent, (done - first) / (tokens - 1) if tokens > 1 else None
        self.sent.append(sent)
        self.done.append(done)
        self.durations.append(done - sent)
        self.lengths.append(tokens)
        self.tokens_in += record["tokens_in"] or 0
        self.ttft_sum += ttft
        if not record["first_of_slot"]:
            self.ttfts.append(ttft)
        if tpot is not None:
            self.tpots.append(tpot)
        self.good += _within(self.slo, ttft, tpot or 0.0, done - sent)
        self._slot(record)
        self._chunks(record)

    def _slot(self, record: Mapping[str, Any]) -> None:
        slot = record["slot"]
        if record["first_of_slot"]:
            self.slot_first[slot] = record["first"]
        self.slot_last[slot] = max(record["done"], self.slot_last.get(slot, 0.0))

    def _chunks(self, record: Mapping[str, Any]) -> None:
        times = [t for t, n in record["chunks"] if n]
        tokens = [n for _, n in record["chunks"] if n]
        self.chunk_times.extend(times)
        self.chunk_tokens.extend(tokens)
        self.gaps.extend([b - a for a, b in pairwise(times)])
        if self.k:
            self._drafts(self.k, tokens, record)

    def _drafts(self, k: int, tokens: Sequence[int], record: Mapping[str, Any]) -> None:
        """Count, by tokens delivered, the steps that the end of the answer could not cut short.

        A step of n tokens delivers n - 1 accepted draft tokens. With fewer than k + 1 tokens left to the limit it may
        have accepted more than it delivers, and so may the last step of an answer that stopped by itself: these are
        not counted.
        """
        steps = tokens[1:-1] if record["finish_reason"] == "stop" else tokens[1:]
        left = record["max_tokens"] - sum(tokens[:1])
        for n in steps:
            if left <= k:
                break
            self.step_sizes[n] += 1
            left -= n

    def accepted_at(self, position: int) -> int:
        """Steps that accepted the draft token at this position, from 1, and all before it."""
        return sum(steps for n, steps in self.step_sizes.items() if n > position)


def _within(slo: Mapping[str, float], ttft: float, tpot: float, duration: float) -> bool:
    observed = {"ttft": ttft, "tpot": tpot, "request_duration": duration}
    return all(observed[name] <= limit for name, limit in slo.items())
