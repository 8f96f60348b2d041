"""SL205 lock-stale: the lock speaks of other revisions or prompts than the spec.

The other rules rest on the lock's facts. If the pins or the workloads changed after it was made, they check the wrong
models and the run would send other prompts than were reviewed. The first block's prompts and the answer length that each asks for
are drawn again here, which any change of the workload changes; `speclint lock --check` and the run draw every block.

Fails:

    lock: {target: {revision: 0000…}}      # pair.target.revision is b968…

Passes:

    lock: {target: {revision: b968…}}

Way out: `speclint lock FILE`; `--check` says what would change.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from speclint import workload as workloads
from speclint.diagnostic import Finding, pointer
from speclint.methods import draft_model
from speclint.releases import Release
from speclint.spec import Spec

SEVERITY = "error"
NEEDS = "lock"

HELP = "`speclint lock FILE` renews it"
BLOCKS = "/protocol/design/blocks"
MOST_PROMPTS = 5_000  # of a block; more are left to the runner: a check must not take long


def check(spec: Spec, release: Release | None) -> Iterator[Finding]:
    yield from _revision(spec, "target", ("pair", "target", "revision"))
    if draft_model(spec):
        yield from _revision(spec, "draft", ("pair", "speculative", "revision"))
    elif "draft" in spec.lock:
        yield Finding("/lock/draft", "the lock has a draft, the spec has none", HELP, on_key=True)
    yield from _workloads(spec)


def _revision(spec: Spec, side: str, keys: tuple[str, ...]) -> Iterator[Finding]:
    pinned, locked = spec.at(*keys, kind=str), spec.at("lock", side, "revision", kind=str)
    if pinned is not None and side not in spec.lock:
        yield Finding("/lock", f"the lock has no {side}", HELP, on_key=True)
    elif pinned and locked and pinned != locked:
        message = f"the lock was made from {side} revision {locked}"
        yield Finding(f"/lock/{side}/revision", message, HELP, related=((pointer(*keys), "the spec pins this"),))


def _workloads(spec: Spec) -> Iterator[Finding]:
    locked = spec.section("lock", "workloads")
    ids = {row["id"] for row in spec.workloads if isinstance(row.get("id"), str)}
    for index, row in spec.rows("protocol", "workloads"):
        if isinstance(row.get("id"), str):
            yield from _prompts(spec, row, locked.get(row["id"]), pointer("protocol", "workloads", index, "id"))
    for name in locked.keys() - ids:
        yield Finding(pointer("lock", "workloads", name), f"the spec has no workload `{name}`", HELP, on_key=True)


def _prompts(spec: Spec, row: dict[str, Any], locked: Any, where: str) -> Iterator[Finding]:
    if not isinstance(locked, dict):
        yield Finding(where, f"the lock has no prompts of workload `{row['id']}`", HELP)
        return
    path = ("lock", "workloads", row["id"])
    try:
        generator = workloads.generator_version(row)
        count, first = _first_block(spec, row)
    except (KeyError, TypeError, ValueError, ArithmeticError, AttributeError, workloads.WorkloadError):
        return  # the protocol is malformed (SL1) or its prompt file is not as it says (SL209)
    blocks = spec.listing(*path, "blocks")
    if locked.get("generator") != generator:
        message = f"locked with prompt generator {locked.get('generator')}, this speclint has {generator}"
        yield Finding(pointer(*path, "generator"), message, "use the speclint that wrote the lock, or renew the lock")
    elif len(blocks) != count:
        message = f"the design has {count} blocks, the lock prompts of workload `{row['id']}` for {len(blocks)}"
        yield Finding(pointer(*path, "blocks"), message, HELP, on_key=True, related=((BLOCKS, "the design"),))
    elif first and blocks[:1] != [first]:
        message = f"the prompts of workload `{row['id']}`, or the answer lengths asked for, are not those that were locked"
        yield Finding(pointer(*path, "blocks"), message, HELP, on_key=True, related=((where, "this workload"),))


def _first_block(spec: Spec, row: dict[str, Any]) -> tuple[int, str | None]:
    """How many blocks the lock must have, and the digest of the first (None: too long to be drawn here)."""
    protocol = spec.section("protocol")
    count: int = protocol["design"]["blocks"]
    if workloads.most_requests(protocol) > MOST_PROMPTS:
        return count, None
    return count, workloads.prompts_digest(workloads.block_prompts(row, protocol, spec.folder, 1))
