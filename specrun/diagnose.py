"""Why: what the figures say about where time goes, in sentences with numbers.

Nothing here is a verdict. Step times come from the server, ratios are per block, and a statement is made only where the
interval over blocks excludes the opposite. A low acceptance rate points at the match of draft, target and task.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from statistics import fmean

from specrun.acceptance import acceptance, across_load
from specrun.agreement import Answers, differing
from specrun.arrival import OPEN, place
from specrun.compare import MIN_BLOCKS, Interval, interval_of
from specrun.conditions import conditions
from specrun.evidence import Cell, Evidence, counting_rows, mean_of
from specrun.findings import OF_ACCEPTANCE, Finding, Setting, Told
from specrun.invariants import Invariant, invariants
from specrun.steps import Split, request_ratio, split
from specrun.sweep import step_cost


def diagnose(evidence: Evidence, setting: Setting, answers: Sequence[Answers] = ()) -> tuple[list[Finding], list[Invariant]]:
    """Findings in order of cell, then across cells, and every invariant that was checked."""
    findings: list[Finding] = []
    checked: list[Invariant] = []
    for cell in evidence.cells:
        rows = invariants(evidence, cell, setting)
        checked += rows
        findings += _withheld(evidence, cell, rows) or _cell_findings(evidence, cell, setting)
        findings += [_finding(code, cell, text) for code, text in conditions(evidence, cell, setting)]
    across = [*_across_workloads(evidence), *_across_concurrency(evidence), *across_load(evidence), *differing(answers)]
    findings += [{"code": code, "text": text} for code, text in across]
    return [one for one in findings if not (setting.invented and one["code"] in OF_ACCEPTANCE)], checked


def _finding(code: str, cell: Cell, text: str) -> Finding:
    return {"code": code, "text": f"{cell[0]} {place(cell[1], 'concurrency ')}: {text}"}


def _withheld(evidence: Evidence, cell: Cell, rows: Sequence[Invariant]) -> list[Finding]:
    broken = [row for row in rows if not row.holds]
    if broken:
        told = "; ".join(
            f"block {r.block}, {r.arm}: {r.name} is {r.value:.4g}, allowed {r.low:.4g} to {r.high:.4g}" for r in broken[:3]
        )
        more = f"; and {len(broken) - 3} more" if len(broken) > 3 else ""
        return [_finding("DX01", cell, f"diagnosis withheld: {told}{more}")]
    known = len(_splits(evidence, cell))
    if known < MIN_BLOCKS:
        return [_finding("DX01", cell, f"diagnosis withheld: {known} blocks have step times, {MIN_BLOCKS} are needed")]
    return []


def _splits(evidence: Evidence, cell: Cell) -> list[Split]:
    arms = evidence.arms(cell)
    parts = (split(arms["target"][b], arms["pair"][b]) for b in evidence.counting(cell))
    return [part for part in parts if part is not None]


def _cell_findings(evidence: Evidence, cell: Cell, setting: Setting) -> list[Finding]:
    splits, level = _splits(evidence, cell), evidence.confidence
    ratio = interval_of([s.decode for s in splits], True, level)
    break_even = interval_of([s.break_even for s in splits], True, level)
    at_best = interval_of([s.at_best(setting.k) for s in splits], True, level)
    by_counters = mean_of(counting_rows(evidence, cell, "pair"), "mean_accepted_length")
    cost = [
        *_break_even(break_even, splits, setting.k, by_counters),
        *_perfect(break_even, at_best, setting.k),
        *step_cost(evidence, cell, setting.sweep),
    ]
    told = [
        *_decode(ratio, break_even, splits, level),
        *([] if cell[1] == OPEN else cost),  # there the arms' batches differ, so steps do not compare
        *_shares(splits),
        *acceptance(evidence, cell, setting, ratio, break_even),
    ]
    return [_finding(code, cell, text) for code, text in told]


def _decode(ratio: Interval, break_even: Interval, splits: Sequence[Split], level: float) -> Told:
    code, word = ("DX02", "faster") if ratio[2] < 1 else ("DX03", "slower") if ratio[1] > 1 else ("DX04", "undecided")
    text = (
        f"decode is {word}: {ratio[0]:.3g} times the target's time per token ({_range(ratio)} at {level:.3g}); "
        f"a step takes {break_even[0]:.3g} times as long and yields {_per_step(splits):.3g} tokens"
    )
    yield code, text


def _break_even(break_even: Interval, splits: Sequence[Split], k: int, by_counters: float | None) -> Told:
    own, pair = (1000 * fmean(t) for t in zip(*((s.target_step_s, s.pair_step_s) for s in splits), strict=True))
    counted = "" if by_counters is None else f" (mean accepted length by the counters {by_counters:.3g})"
    beyond = "" if break_even[1] > k + 1 else "; a gain with perfect drafts is not excluded"
    text = (
        f"break-even length {break_even[0]:.3g} tokens ({_range(break_even)}), reached {_per_step(splits):.3g}{counted}, "
        f"at most {k + 1} with K = {k}; a step takes {pair:.3g} ms, {pair - own:.3g} ms more than the target's {own:.3g} ms, "
        f"draft and verification together{beyond}"
    )
    yield "DX05", text


def _perfect(break_even: Interval, at_best: Interval, k: int) -> Told:
    if break_even[1] > k + 1:
        text = f"break-even is at least {break_even[1]:.3g} tokens a step, and a step cannot yield more than {k + 1}"
        yield "DX06", f"even perfect drafts would lose the decode: {text}"
    if at_best[1] > 1:
        text = f"with every draft token accepted it would still take at least {at_best[1]:.3g} times as long"
        yield "DX07", f"even perfect drafts would lose the request: {text}"


def _shares(splits: Sequence[Split]) -> Told:
    share, longer = fmean(s.first_share for s in splits), fmean(s.first for s in splits)
    text = (
        f"request duration is {fmean(s.request for s in splits):.3g} times the target's: "
        f"{fmean(s.of_first for s in splits):+.3f} of first token, {fmean(s.of_decode for s in splits):+.3f} of decode "
        f"(first token is {share:.1%} of the target's duration, and {longer:.3g} times as long in the pair)"
    )
    yield "DX08", text


def _per_step(splits: Sequence[Split]) -> float:
    return fmean(s.per_step for s in splits)


def _across_workloads(evidence: Evidence) -> Told:
    """Workloads that gain beside workloads that lose, at one concurrency."""
    for level in dict.fromkeys(concurrency for _, concurrency in evidence.cells):
        changes = {cell[0]: ratio for cell in evidence.cells if cell[1] == level and (ratio := _change(evidence, cell))}
        verbs = {workload: _verb(ratio) for workload, ratio in changes.items() if _verb(ratio)}
        if len(set(verbs.values())) > 1:
            told = ", ".join(f"{workload} {verb} ({_ratio_text(changes[workload])})" for workload, verb in verbs.items())
            yield "DX09", f"{place(level, 'concurrency ')} the workloads part: {told}"


def _across_concurrency(evidence: Evidence) -> Told:
    """Levels next to each other, undecided ones left out, between which a workload turns from gain to loss or back."""
    for workload in dict.fromkeys(workload for workload, _ in evidence.cells):
        cells = evidence.closed(workload)
        changes = [(cell[1], ratio) for cell in cells if (ratio := _change(evidence, cell)) and _verb(ratio)]
        for before, after in pairwise(changes):
            if _verb(before[1]) != _verb(after[1]):
                told = " and ".join(f"{_verb(ratio)} at concurrency {c} ({_ratio_text(ratio)})" for c, ratio in (before, after))
                yield "DX10", f"{workload} {told}: the sign turns between them"


def _change(evidence: Evidence, cell: Cell) -> Interval | None:
    """Request duration ratio over blocks, by the client's clock; None with too few blocks."""
    arms = evidence.arms(cell)
    ratios = [request_ratio(arms["target"][b], arms["pair"][b]) for b in evidence.counting(cell)]
    known = [ratio for ratio in ratios if ratio]
    return interval_of(known, True, evidence.confidence) if len(known) >= MIN_BLOCKS else None


def _range(interval: Interval) -> str:
    return f"{interval[1]:.3g} to {interval[2]:.3g}"


def _ratio_text(interval: Interval) -> str:
    return f"{interval[0]:.3g} times the duration, {_range(interval)}"


def _verb(interval: Interval) -> str:
    return "gains" if interval[2] < 1 else "loses" if interval[1] > 1 else ""
