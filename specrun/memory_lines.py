"""The memory section of `specrun plan`."""

from __future__ import annotations

from typing import Any

from specrun import host
from specrun.memory import Cache, Estimate, Unknown, estimate

UNITS = ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"))


def memory_lines(data: dict[str, Any], gpu_bytes: int | None) -> list[str]:
    """Weights, cache per token, what fits, and what the draft costs; or why that is not known. Per device."""
    try:
        found = estimate(data, gpu_bytes)
    except Unknown as error:
        return [f"  not estimated: {error}"]
    draft = f", draft {size(found.draft_weights)}" if found.draft_weights else ""
    more = f", {_per_token(found.draft_cache)} more for the draft" if found.draft_cache.full or found.draft_cache.sliding else ""
    return [
        f"  weights   target {size(found.target_weights)}{draft}",
        f"  KV cache  {_per_token(found.target_cache)} for the target{more}",
        *_capacity(found),
        *_criteria(data, found),
    ]


def smallest_gpu() -> int | None:
    """Memory of this machine's smallest GPU, bytes; None without one."""
    return min((gpu["memory_bytes"] for gpu in host.gpus()), default=None)


def size(count: int) -> str:
    """Bytes in the largest unit that leaves a number of at least one."""
    unit, name = next(((unit, name) for unit, name in UNITS if count >= unit), (1, "B"))
    return f"{count / unit:.3g} {name}" if unit > 1 else f"{count} B"


def _per_token(cache: Cache) -> str:
    sliding = f", and {size(cache.sliding)} for each of a request's last {cache.window}" if cache.sliding else ""
    return f"{size(cache.full)} a token{sliding}"


def _capacity(found: Estimate) -> list[str]:
    if found.room is None or found.target_tokens is None or found.pair_tokens is None:
        return [f"  fits      not known: {found.unknown}; {_share(found)}"]
    lost = found.target_tokens - found.pair_tokens
    share = lost / found.target_tokens if found.target_tokens else 0.0
    cost = f"{found.pair_tokens:,} with the draft, which costs {lost:,} ({share:.1%})" if lost else "and no less with speculation"
    fits = f"{found.target_tokens:,} tokens alone, {cost}"
    bound = ["            at most: activations and CUDA graphs come off too"] if found.room.at_most else []
    return [f"  fits      in {size(found.room.target)} ({found.room.source}): {fits}", *bound]


def _share(found: Estimate) -> str:
    ours, theirs = found.target_cache.full, found.draft_cache.full
    if not ours or found.target_cache.sliding or found.draft_cache.sliding:
        return f"the draft's weights take {size(found.draft_weights)}"
    weights = found.draft_weights // ours
    return f"the draft leaves {ours / (ours + theirs):.1%} of the tokens, and its weights take the room of {weights:,} more"


def _criteria(data: dict[str, Any], found: Estimate) -> list[str]:
    """What the estimate says of criteria on capacity, which no number of blocks would change."""
    if not found.target_tokens or found.pair_tokens is None:
        return []
    ratio = found.pair_tokens / found.target_tokens
    asked = [row for row in data["protocol"]["criteria"] if row["metric"] == "kv_capacity_tokens" and "at_least" in row]
    ratios = [row for row in asked if row.get("compare") == "ratio"]
    return [f"  {row['id']}: asks pair/target at least {row['at_least']:g}, expect {ratio:.3g}" for row in ratios]
