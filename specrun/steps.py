"""Where the time of a pair goes: the cost of a decode step, what it yields, and the first token beside it.

From the server's inter-token histogram, one observation per request and decode step in both arms: T = seconds / steps,
g = (tokens - requests) / steps.
"""

from __future__ import annotations

from dataclasses import dataclass

from specrun.evidence import Row


@dataclass(frozen=True, slots=True)
class Split:
    """One block's pair against its target: what a step costs, what it yields, and what that makes of a request.

    `target_step_s` and `pair_step_s` are T, `per_step` g tokens, B = T_pair / T_target, q = B / g; `first_share` phi of the
    target's duration is first-token time, which becomes `first` r times as long.
    """

    target_step_s: float
    pair_step_s: float
    per_step: float
    first_share: float
    first: float

    @property
    def break_even(self) -> float:
        """B: tokens a step must yield to pay for itself."""
        return self.pair_step_s / self.target_step_s

    @property
    def decode(self) -> float:
        """q: decode time per token over the target's."""
        return self.break_even / self.per_step

    @property
    def extra_step_s(self) -> float:
        """What a step takes longer, draft and verification together."""
        return self.pair_step_s - self.target_step_s

    @property
    def request(self) -> float:
        """R = phi r + (1 - phi) q, for equal tokens."""
        return self.first_share * self.first + (1 - self.first_share) * self.decode

    @property
    def of_first(self) -> float:
        """The part of R - 1 that is first-token time."""
        return self.first_share * (self.first - 1)

    @property
    def of_decode(self) -> float:
        """The part of R - 1 that is decode time."""
        return (1 - self.first_share) * (self.decode - 1)

    def at_best(self, k: int) -> float:
        """R if every draft token were accepted, at the measured cost of a step."""
        return self.first_share * self.first + (1 - self.first_share) * self.break_even / (k + 1)


def split(target: Row, pair: Row) -> Split | None:
    """The parts of one block; None if the server's step times or the clients' sums are missing."""
    own, per_step, step = target.get("step_time"), pair.get("tokens_per_step"), pair.get("step_time")
    duration, first, pair_first = target.get("duration_sum"), target.get("ttft_sum"), pair.get("ttft_sum")
    if not own or not per_step or not step or not duration or not first or not pair_first:
        return None
    return Split(
        target_step_s=own,
        pair_step_s=step,
        per_step=per_step,
        first_share=first / duration,
        first=pair_first / first,
    )


def request_ratio(before: Row, after: Row) -> float | None:
    """Request duration ratio of two arms by the client's clock, at the token numbers of the first. None without figures."""
    first, later_first, duration = before.get("ttft_sum"), after.get("ttft_sum"), before.get("duration_sum")
    decode, later_decode = before.get("decode_time_per_token"), after.get("decode_time_per_token")
    if not first or not later_first or not duration or not decode or not later_decode:
        return None
    share = first / duration
    return share * later_first / first + (1 - share) * later_decode / decode
