"""What a pair must do, from its parts alone: the target's greedy answers and what the draft says of each of their tokens.

A greedy draft token is accepted if it is the token that the target itself chose, so the draft's first choice at every position
of an answer, or for lookup the answer's own text, decides every decode step for every K. `replay` walks through an answer as vLLM
does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

Propose = Callable[[int], Sequence[int]]
"""From a position in the answer (counted from 0) to the tokens drafted for that position and those after it."""

INVENTED = "a cost model's acceptance is set, not found"
UNKNOWN = -1  # no token's id
LOOKUP_DEFAULT = 5  # vLLM's prompt_lookup_min and _max where a spec names neither
CHANGES_DRAFTS = ("num_speculative_tokens_per_batch_size", "parallel_drafting", "speculative_token_tree")


class Room(NamedTuple):
    """Longest context of target and draft, in tokens."""

    target: int
    draft: int


class Step(NamedTuple):
    """One decode step: context before it, tokens drafted, accepted by the target, and delivered within the answer's limit."""

    context: int
    drafted: int
    accepted: int
    delivered: int


class Lookup(NamedTuple):
    """Shortest and longest n-gram that prompt lookup matches."""

    shortest: int
    longest: int


def measurement(data: Mapping[str, Any]) -> bool:
    """Whether the spec measures a pair; a cost model's acceptance and answers are invented, and prove nothing."""
    return bool(data["protocol"].get("kind", "measurement") == "measurement")


def unpredicted(data: Mapping[str, Any]) -> str | None:
    """Why the drafts of a spec cannot be foretold from target and draft alone; None if they can."""
    speculative, method = data["pair"]["speculative"], data["pair"]["speculative"]["method"]
    if not measurement(data):
        return INVENTED
    if method not in ("draft_model", "ngram"):
        return f"{method} has no draft that can be served alone"
    if data["pair"]["vocabulary"]["mode"] == "heterogeneous" or speculative.get("use_heterogeneous_vocab"):
        return "the draft has another vocabulary, and its mapped choices show only in the pair"
    if data["protocol"]["sampling"]["temperature"] != 0:
        return "only greedy answers decide which drafts are accepted"
    setting = next((name for name in CHANGES_DRAFTS if speculative.get(name)), None)
    return f"{setting} changes how drafts are made" if setting else None


def drafted(firsts: Sequence[int], k: int, at: int) -> Sequence[int]:
    """A draft model's draft: its first choices at the position and after it.

    While they are accepted, each was made after the answer's own tokens; what follows a rejected one is thrown away. Where the
    draft's choice is not known, at the end of its context, it counts as rejected.
    """
    known = firsts[at : at + k]
    return [*known, *[UNKNOWN] * (k - len(known))]


def lookup_of(speculative: Mapping[str, Any]) -> Lookup:
    """The n-gram lengths of a spec, with vLLM's defaults: one bound alone stands for both."""
    low, high = speculative.get("prompt_lookup_min"), speculative.get("prompt_lookup_max")
    return Lookup(low or high or LOOKUP_DEFAULT, high or low or LOOKUP_DEFAULT)


def lookup(tokens: Sequence[int], prompt: int, k: int, lengths: Lookup) -> Propose:
    """vLLM's prompt lookup over a prompt of that many tokens and the answer behind it.

    Drafted is what followed the longest n-gram that ends the context, at its earliest place, up to k tokens.
    """
    earliest: dict[tuple[int, ...], int] = {}
    for n in range(lengths.shortest, lengths.longest + 1):
        for end in range(n, len(tokens)):
            earliest.setdefault(tuple(tokens[end - n : end]), end)

    def propose(at: int) -> Sequence[int]:
        context = prompt + at
        for n in range(min(lengths.longest, context - 1), lengths.shortest - 1, -1):
            end = earliest.get(tuple(tokens[context - n : context]), context)
            if end < context:
                return tokens[end : min(end + k, context)]
        return []

    return propose


def replay(propose: Propose, prompt: int, answer: Sequence[int], limit: int, k: int, room: Room) -> Iterator[Step]:
    """The decode steps of one request served alone.

    `prompt`: its length in tokens. `answer`: the target's tokens, as far as they are known; vLLM counts what it accepts past
    `limit`, so k tokens more make the counts exact. Where k tokens more than a step has seen do not fit the draft, vLLM's next
    draft is zeros. The answer's first token comes with the prompt, without a draft.
    """
    at, blind = 1, prompt + k > room.draft
    while at < limit:
        context = prompt + at
        fits = max(0, min(k, room.target - context - 1))
        draft = [0] * fits if blind else propose(at)[:fits]
        accepted = agreeing(draft, answer[at:])
        yield Step(context, len(draft), accepted, min(accepted + 1, limit - at))
        blind = context + len(draft) + k > room.draft
        at += accepted + 1


def agreeing(draft: Sequence[int], answer: Sequence[int]) -> int:
    """How many tokens of a draft the answer begins with."""
    same = 0
    for drafted, chosen in zip(draft, answer, strict=False):
        if drafted != chosen:
            break
        same += 1
    return same


@dataclass(frozen=True, slots=True)
class Prediction:
    """The steps of several requests with K = `k`, each request's steps in order."""

    k: int
    requests: Sequence[Sequence[Step]]

    @property
    def steps(self) -> int:
        """Decode steps."""
        return sum(map(len, self.requests))

    @property
    def drafts(self) -> int:
        """Steps with a draft, as vLLM counts them."""
        return sum(step.drafted > 0 for step in self._all())

    @property
    def draft_tokens(self) -> int:
        return sum(step.drafted for step in self._all())

    def accepted_at(self, position: int) -> int:
        """Drafts accepted up to this draft position, from 1, past answers' ends too: vLLM's counter."""
        return sum(step.accepted >= position for step in self._all())

    @property
    def accepted(self) -> list[int]:
        """`accepted_at` of every draft position."""
        return [self.accepted_at(position) for position in range(1, self.k + 1)]

    @property
    def acceptance_rate(self) -> float | None:
        """Accepted over drafted tokens."""
        return sum(self.accepted) / self.draft_tokens if self.draft_tokens else None

    @property
    def mean_accepted_length(self) -> float | None:
        """1 + accepted tokens per draft."""
        return 1 + sum(self.accepted) / self.drafts if self.drafts else None

    @property
    def tokens_per_step(self) -> float | None:
        """Tokens delivered by a decode step: what a step may cost, in steps of the target alone, before it costs time."""
        return sum(step.delivered for step in self._all()) / self.steps if self.steps else None

    def _all(self) -> Iterator[Step]:
        return (step for request in self.requests for step in request)
