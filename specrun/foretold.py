"""A running pair's chunks against the decode steps that target and draft alone foretell (see `oracle`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from specrun.oracle import Propose, Room, agreeing, replay


@dataclass(frozen=True, slots=True)
class Said:
    """What the parts say of one request: its prompt's length, the target's ids, and drafts for the first `known` of them.

    `tie`: whether the draft's choice at a position hangs on rounding.
    """

    prompt: int
    answer: Sequence[int]
    known: int
    propose: Propose
    tie: Callable[[int], bool] = lambda _: False


class Observed(NamedTuple):
    """What the pair did with the same request: its ids, and the number of tokens in each chunk."""

    ids: Sequence[int]
    chunks: Sequence[int]


@dataclass(slots=True)
class Comparison:
    """Chunks of the pair held against the prediction, in the part of each answer in which pair and target agree.

    `predicted`, `made`: decode steps in that part. `predicted_at`, `made_at`: of these, with at least 1, 2, … accepted tokens.
    `merged`: steps that share a chunk with an earlier one, as it must be if all is as foretold. `contradicted`: chunks that no
    foretold steps make up. `foreseen`: context and accepted tokens of every predicted step that the draft can see.
    """

    k: int
    requests: int = 0
    differing: int = 0
    predicted: int = 0
    made: int = 0
    merged: int = 0
    contradicted: int = 0
    predicted_at: list[int] = field(default_factory=list)
    made_at: list[int] = field(default_factory=list)
    foreseen: list[tuple[int, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.predicted_at, self.made_at = [0] * self.k, [0] * self.k

    def add(self, said: Said, observed: Observed, room: Room) -> None:
        """Compare one request."""
        common = agreeing(observed.ids, said.answer)
        sighted = min(common, said.known, room.draft - 2 * self.k - said.prompt + 1)  # beyond, vLLM may have drafted zeros
        self.requests += 1
        self.differing += common < max(len(observed.ids), len(said.answer))
        for step in replay(said.propose, said.prompt, said.answer[:common], sighted, self.k, room):
            self.predicted += 1
            self.foreseen.append((step.context, step.delivered - 1))
            _count(self.predicted_at, step.delivered - 1)
        for at, size in _chunks(observed.chunks, sighted):
            end = sighted if at + size > sighted else len(observed.ids)
            steps = Way(said, end, self.k).to(at, min(at + size, sighted))
            self._chunk(steps, size, shared=at < observed.chunks[0])

    def _chunk(self, steps: list[int] | None, size: int, shared: bool) -> None:
        """Count one chunk's steps; `shared`: all of them came with the first token."""
        self.contradicted += steps is None
        sizes = steps or [size]
        self.made += len(sizes)
        self.merged += len(sizes) - (not shared)
        for one in sizes:
            _count(self.made_at, one - 1)


def _count(by_position: list[int], accepted: int) -> None:
    for position in range(min(accepted, len(by_position))):
        by_position[position] += 1


def _chunks(chunks: Sequence[int], until: int) -> Iterator[tuple[int, int]]:
    """Position in the answer and size of every chunk that begins before `until`, without the first token."""
    at = 1
    for size in [chunks[0] - 1, *chunks[1:]]:
        if size and at < until:
            yield at, size
        at += size


class Way(NamedTuple):
    """The ways through an answer in steps that the draft explains. `end`: where the answer, or its judged part, cuts a step."""

    said: Said
    end: int
    k: int

    def to(self, at: int, until: int) -> list[int] | None:
        """Sizes of steps that lead from one position exactly to another; None if none do.

        Several, where a server that lags, or whose client does, sent the tokens of several steps in one chunk.
        """
        before = {at: at}
        for place in (place for place in range(at, until) if place in before):
            for size in range(1, min(self.k + 1, until - place) + 1):
                if self.allowed(place, size):
                    before.setdefault(place + size, place)
        places = [until]
        while places[-1] != at:
            if places[-1] not in before:
                return None
            places.append(before[places[-1]])
        return [later - earlier for later, earlier in pairwise(places)][::-1]

    def allowed(self, at: int, size: int) -> bool:
        """Whether the draft explains a step that delivered `size` tokens: all accepted ones its own, the next one not.

        A rejection that the end may only feign is none.
        """
        draft, accepted = self.said.propose(at)[: self.k], size - 1
        if accepted > len(draft):
            return False
        same = [drafted == chosen for drafted, chosen in zip(draft, self.said.answer[at : self.end], strict=False)]
        if any(not agrees and not self.said.tie(at + i) for i, agrees in enumerate(same[:accepted])):
            return False
        ended = at + size >= self.end or accepted >= len(same)
        return ended or not same[accepted] or self.said.tie(at + accepted)


def compare(requests: Iterable[tuple[Said, Observed]], k: int, room: Room) -> Comparison:
    """All requests of a workload: what the parts say, and what the pair did."""
    found = Comparison(k)
    for said, observed in requests:
        found.add(said, observed, room)
    return found
