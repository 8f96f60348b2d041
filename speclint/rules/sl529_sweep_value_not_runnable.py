"""SL529 sweep-value-not-runnable: a number of draft tokens in the sweep that the pair could not be started with.

Every other K of `protocol.sweep` is an arm of its own: what SL407, SL411 and SL423 say of the pair's K holds for it. Arms are
compared by the ratio criteria, so there must be one; a token tree fixes its own K.

Fails:

    sweep: {num_speculative_tokens: [1, 3, 256]}

Passes:

    sweep: {num_speculative_tokens: [1, 3, 5]}

Way out: take the number out of the sweep, or mend what the message names.
"""

from __future__ import annotations

from collections.abc import Iterator

from speclint.diagnostic import Finding, pointer
from speclint.releases import Release
from speclint.rules import sl407_speculative_token_count, sl411_token_budget, sl423_graph_ceiling
from speclint.spec import Spec

SEVERITY = "error"
NEEDS = "spec"

OF_K = (sl407_speculative_token_count, sl411_token_budget, sl423_graph_ceiling)
SWEEP = ("protocol", "sweep", "num_speculative_tokens")


def check(spec: Spec, release: Release | None) -> Iterator[Finding]:
    wanted = spec.at(*SWEEP, kind=list) or []
    if not wanted:
        return
    if "speculative_token_tree" in spec.speculative:
        help = "remove the sweep or the tree"
        yield Finding(pointer(*SWEEP[:2]), "a token tree fixes the number of draft tokens", help, on_key=True)
    if not any(row.get("compare") == "ratio" for _, row in spec.criteria):
        help = "add a criterion with `compare: ratio`"
        yield Finding(pointer(*SWEEP[:2]), "arms of a sweep are compared by the ratio criteria; there is none", help, on_key=True)
    if all(k == spec.k for k in wanted):
        help = "add another number, or remove the sweep"
        yield Finding(pointer(*SWEEP), f"the sweep adds no arm: {spec.k} is the pair's own number", help, severity="warning")
    said = {found.message for found in _of(spec, release)}
    for index, k in enumerate(wanted):
        if isinstance(k, int) and k != spec.k:
            yield from (_about(index, k, found) for found in _of(_with(spec, k), release) if found.message not in said)


def _of(spec: Spec, release: Release | None) -> Iterator[Finding]:
    for rule in OF_K:
        yield from (found._replace(severity=found.severity or rule.SEVERITY) for found in rule.check(spec, release))


def _with(spec: Spec, k: int) -> Spec:
    speculative = spec.speculative | {"num_speculative_tokens": k}
    return Spec(spec.data | {"pair": spec.data["pair"] | {"speculative": speculative}}, spec.folder, spec.base)


def _about(index: int, k: int, found: Finding) -> Finding:
    return Finding(pointer(*SWEEP, index), f"K = {k}: {found.message}", found.help, found.source, severity=found.severity)
