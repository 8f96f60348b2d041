"""What a result speaks of, and what it does not: sentences made from the spec and the machine."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from speclint.workload import most_requests
from specrun import oracle, plan

NOTHING = "Nothing is judged"
COST_MODEL = (
    "A cost model, not a measurement of a pair: weights or acceptance are invented. Step times, break-even length, KV cache and "
    "memory hold for these shapes; durations and throughput for this acceptance only; acceptance and answers for nothing."
)


def sentences(data: dict[str, Any], host: dict[str, Any], blocks: int) -> list[str]:
    """Workloads, lengths, load, sampling and hardware that were evaluated, then the limits of that."""
    protocol = data["protocol"]
    out = [] if oracle.measurement(data) else [COST_MODEL]
    out += [_workload(w, protocol) for w in protocol["workloads"]]
    levels = _list(sorted(protocol["load"]["concurrency"]))
    out.append(f"Evaluated at concurrency {levels}, closed loop, {_sampling(protocol['sampling'])}.")
    if "arrival" in protocol:
        out.append(f"Evaluated in open loop at {protocol['arrival']['rate']:g} requests/s, Poisson arrivals; no other rate was.")
    out.append(f"Evaluated on {_hardware(data, host)}.")
    out.append("Not evaluated: other prompts, longer answers or contexts, other concurrency, sampling, hardware or releases.")
    if plan.servers(data) == "resident":
        out.append("All windows of an arm are of one start: nothing is known of how another start would do.")
    elif blocks:
        # A fault in a share p of starts is missed by n starts with probability (1 - p)^n; 5 % is the usual line.
        share = 1 - 0.05 ** (1 / blocks)
        out.append(f"A fault that hits fewer than {share:.0%} of starts may not have shown in {blocks} blocks.")
    if protocol["design"].get("prompts", "fresh") == "same":
        out.append(f"Every block repeated the same {most_requests(protocol)} prompts: the intervals speak of these prompts only.")
    out.append("A signature says who vouches for these bytes; it does not prove that the run took place.")
    return out


def attempts(known: dict[str, int]) -> str:
    """How often this was tried, as far as is known: the best of many runs says less than the only one."""
    return (
        f"Runs begun so far: at least {known['pair']} of this pair, with any K, and at least {known['spec']} of this spec; "
        "one begun elsewhere is counted only if its result stands in the file."
    )


def interruptions(count: int) -> Iterator[str]:
    """Tries of blocks that were broken off and measured again: who can stop a run can choose the moment."""
    if count:
        tries = "try of a block was" if count == 1 else "tries of blocks were"
        yield f"{count} {tries} broken off and measured again; what was broken off is kept in the run folder and judges nothing."


def early(unfinished: str, tries: int) -> Iterator[str]:
    """Of a run that was ended before its last block, with `tries` of blocks that came to no end."""
    if unfinished:
        yield f"{NOTHING}: {unfinished}. Tries of blocks that came to no end: {tries}; they are kept and count nowhere."


def _requests(protocol: dict[str, Any]) -> str:
    each = plan.each_level(protocol, protocol["load"]["requests"])
    if isinstance(protocol["load"]["requests"], int):
        return f"{each} requests a window"
    return f"requests a window: {each}, at every level the first ones of a block"


def _workload(workload: dict[str, Any], protocol: dict[str, Any]) -> str:
    output, prompts = workload["output"], workload["prompts"]
    source = f"generator {prompts['generator']}" if "generator" in prompts else f"file {prompts['file']}"
    spread = output.get("spread", 0)
    low, high = max(1, round(output["tokens"] * (1 - spread))), round(output["tokens"] * (1 + spread))
    length = f"{low}" if low == high else f"{low} to {high}"
    kind = "forced" if output["stop"] == "length" else "at most, the model may end earlier"
    return (
        f"Evaluated: workload {workload['id']} ({workload['profile']}, {source}), "
        f"{_requests(protocol)}, answers of {length} tokens ({kind})."
    )


def _sampling(sampling: dict[str, Any]) -> str:
    return "greedy" if sampling["temperature"] == 0 else f"temperature {sampling['temperature']:g}"


def _hardware(data: dict[str, Any], host: dict[str, Any]) -> str:
    if data["pair"]["placement"]["device"] == "cuda" and host["gpus"]:
        return f"{len(host['gpus'])} × {host['gpus'][0]['name']}"
    return f"{host['cores']} cores of {host['processor']}"


def _list(items: list[Any]) -> str:
    return ", ".join(map(str, items[:-1])) + f" and {items[-1]}" if len(items) > 1 else str(items[0])
