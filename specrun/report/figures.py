"""Figures of a report from the entry alone: ratios, the operating curve, break-even, memory. Each says how it is read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from speclint.data import metrics
from specrun.arrival import OPEN
from specrun.evidence import Cell
from specrun.plan import servers
from specrun.report import tables
from specrun.report.html import Element, Node, el
from specrun.report.html_tables import datum
from specrun.report.plot import (
    CIRCLE,
    DIAMOND,
    STRIP,
    STRIP_HEIGHT,
    Curve,
    Scale,
    Strip,
    arm_class,
    around,
    faint,
    panel,
    strips,
    upright,
    whisker,
)
from specrun.report.tables import Entry, Interval, Number

RATIOS = {
    "request_duration_p50": "Request duration, median",
    "ttft_p50": "Time to first token, median",
    "tpot_p50": "Time per output token, median",
    "output_throughput": "Output throughput",
}
Spec = Mapping[str, Any]


def figure(how: str, *inside: Node) -> Element:
    """A figure under the sentence that says how to read it."""
    return el("figure", el("figcaption", how), inside)


def legend(arms: Mapping[str, str] | Sequence[str]) -> Element:
    """Which colour is which arm; with a mapping, what each arm's colour stands for."""
    named = arms if isinstance(arms, Mapping) else {arm: arm for arm in arms}
    return el("p", [el("span", name, class_=f"key {arm_class(arm)}") for arm, name in named.items()], class_="legend")


def forest(spec: Spec, entry: Entry) -> Element:
    """Ratios of the arms with their intervals, per figure, workload and concurrency."""
    judged = [c["metric"] for c in spec["protocol"]["criteria"] if metrics()[c["metric"]]["kind"] == "ratio"]
    shown = list(dict.fromkeys([*RATIOS, *judged]))
    rows = [row for row in entry["ratios"] if row["metric"] in shown and row["value"] is not None]
    if not rows:
        return el("p", "No ratio has a value.")
    scale = Scale(*around([x for row in rows for x in _ends(row)] + [1.0], log=True), 8, STRIP - 8, log=True)
    starts = "one start of each server" if servers(dict(spec)) == "resident" else "fresh server starts"
    how = (
        f"A ratio of 1 means that nothing changed. The line is the {spec['protocol']['confidence']:.0%} interval over blocks of "
        f"{starts}, the small dots are the blocks, the dashed line is the threshold of a criterion. The axis is logarithmic."
    )
    return figure(how, *(_forest_of(spec, metric, own, scale) for metric in shown if (own := _of(rows, metric))))


def _of(rows: Sequence[Mapping[str, Any]], metric: str) -> list[Mapping[str, Any]]:
    return [row for row in rows if row["metric"] == metric]


def _ends(row: Mapping[str, Any]) -> list[float]:
    return [row[name] for name in ("value", "low", "high") if row[name]] + [x for x in row["blocks"] if x]


def _forest_of(spec: Spec, metric: str, rows: Sequence[Mapping[str, Any]], scale: Scale) -> Element:
    better = metrics()[metric]["better"]
    note = "← better" if better == "lower" else "better →"
    title = f"{RATIOS.get(metric, metric)}, ratio of the arms ({better} is better)"
    drawn = [_forest_row(spec, row, scale) for row in rows]
    return strips(title, ("workload at concurrency", "", "ratio [interval]"), drawn, scale, note)


def _forest_row(spec: Spec, row: Mapping[str, Any], scale: Scale) -> Strip:
    over = "" if row["arms"] == "pair/target" else f", {row['arms']}"
    bounds = [upright(scale, bound, "bound") for bound in thresholds(spec, row)] if not over else []
    own = whisker(scale, row["low"], row["value"], row["high"], row["arms"].partition("/")[0])
    marks = [upright(scale, 1.0, "one"), *bounds, *faint(scale, [x for x in row["blocks"] if x]), *own]
    return Strip(tables.cell_name(row) + over, marks, el("span", datum(tables.interval(row))))


def thresholds(spec: Spec, row: Mapping[str, Any]) -> list[float]:
    """Bounds of the criteria that judge this ratio in this cell."""
    found = []
    for criterion in spec["protocol"]["criteria"]:
        meant = criterion["metric"] == row["metric"] and criterion.get("compare") == "ratio"
        here = "weights" not in criterion and criterion.get("workload", "all") in ("all", row["workload"])
        if meant and here and criterion.get("concurrency", "all") in ("all", row["concurrency"]):
            found.append(float(criterion.get("at_most", criterion.get("at_least"))))
    return found


def operating_curve(entry: Entry) -> Element:
    """Throughput against latency over concurrency, one chart per workload."""
    workloads = list(dict.fromkeys(workload for workload, _ in tables.cells(entry)))
    panels = [chart for workload in workloads if (chart := _operating(entry, workload))]
    if not panels:
        return el("p", "No cell has both throughput and request duration.")
    how = (
        "Each mark is a concurrency level, joined in ascending order. Further up and further left is better: more tokens a "
        "second at a shorter wait. Where the arms' lines cross, the better arm changes with load."
    )
    return figure(
        how,
        legend(tables.drawn_arms(entry)),
        el("div", panels, class_="panels"),
        el("p", "The same in numbers stands under “Both arms”."),
    )


def _operating(entry: Entry, workload: str) -> Element | None:
    curves = [curve for arm in tables.drawn_arms(entry) if (curve := _operating_of(entry, workload, arm)).points]
    places = [point for curve in curves for point in curve.points]
    if not places:
        return None
    ranges = around([0.0, *(x for x, _ in places)], pad=0.12), around([0.0, *(y for _, y in places)], pad=0.12)
    return panel(workload, "request duration p50, ms", "tokens/s", curves, ((0.0, ranges[0][1]), (0.0, ranges[1][1])))


def _operating_of(entry: Entry, workload: str, arm: str) -> Curve:
    rows = [row for key, row in tables.figures(entry).items() if key[0] == workload and key[1] != OPEN and key[2] == arm]
    known = [row for row in rows if row.get("output_throughput") is not None and row.get("request_duration_p50") is not None]
    known.sort(key=lambda row: row["concurrency"])
    points = [(1000 * row["request_duration_p50"], row["output_throughput"]) for row in known]
    return Curve(arm, points, [str(row["concurrency"]) for row in known])


def break_even(spec: Spec, entry: Entry) -> Element:
    """Tokens that a step must yield to pay for itself, against those that it yields and could yield."""
    k = spec["pair"]["speculative"].get("num_speculative_tokens")
    rows = [row for cell in tables.cells(entry) if (row := _break_even(entry, cell))]
    if not rows or not k:
        return el("p", "The server's step times are missing, so there is no break-even length.")
    ends = [x for _, needed, reached in rows for x in (*needed, reached) if x is not None]
    scale = Scale(*around([1.0, k + 1.0, *ends]), 8, STRIP - 8)
    how = (
        "How many steps of the target a step of the pair takes as long as: so many tokens it must yield to pay for itself "
        "(circle, with interval). The diamond is what it yields; right of the circle, decode is faster. The dashed line is the "
        f"most that K = {k} allows."
    )
    drawn = [_break_even_row(cell, needed, reached, k, scale) for cell, needed, reached in rows]
    heads = ("workload at concurrency", "", "needed; reached")
    return figure(how, strips("Break-even length against tokens per step", heads, drawn, scale, "tokens per step"))


def _break_even(entry: Entry, cell: Cell) -> tuple[Cell, Interval, float] | None:
    found, ratio = tables.figures(entry), tables.ratio_rows(entry).get((*cell, "step_time"))
    own, pair = found.get((*cell, "target"), {}), found.get((*cell, "pair"), {})
    if not own.get("step_time") or not pair.get("step_time") or not pair.get("tokens_per_step"):
        return None
    known = tables.interval(ratio) if ratio and ratio["value"] else Interval(pair["step_time"] / own["step_time"], None, None)
    return cell, known, pair["tokens_per_step"]


def _break_even_row(cell: Cell, needed: Interval, reached: float, k: int, scale: Scale) -> Strip:
    assert needed.value is not None
    marks = [
        upright(scale, k + 1.0, "bound"),
        *whisker(scale, needed.low, needed.value, needed.high, "limit", CIRCLE),
        *whisker(scale, None, reached, None, "pair", DIAMOND),
    ]
    value = el("span", datum(needed), "; ", datum(tables.number(reached)))
    return Strip(tables.named(cell), marks, value)


def memory(entry: Entry) -> Element:
    """What each arm holds and what its KV cache takes, in bars."""
    parts = [(name, arm, size) for arm, facts in entry["arms"].items() for name, size in _parts(facts)]
    if not parts:
        return el("p", "No memory was recorded.")
    order = list(dict.fromkeys(name for name, _, _ in parts))
    scale = Scale(0.0, max(size for _, _, size in parts) / 2**30 * 1.05, 8, STRIP - 8)
    rows = [_bar(name, arm, size, scale) for each in order for name, arm, size in parts if name == each]
    how = (
        "What each server held once it was ready, and the parts that the engine names. On a CPU this is the resident memory of "
        "its processes, on a GPU the device memory in use."
    )
    tokens = [f"{arm}: {_tokens(facts['capacity'])}" for arm, facts in entry["arms"].items()]
    heads = ("part, arm", "", "GiB")
    table = strips("Memory", heads, rows, scale, "GiB")
    return figure(how, legend(list(entry["arms"])), table, el("p", f"KV cache capacity: {'; '.join(tokens)}."))


def _parts(facts: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    sizes = {"held_bytes": facts["memory"].get("held_bytes"), "kv_cache_bytes": facts["capacity"].get("kv_cache_bytes")}
    for name, size in (sizes | facts["memory"]).items():
        if size:
            yield {"kv_cache": "KV cache"}.get(short := name.removesuffix("_bytes"), short.replace("_", " ")), float(size)


def _tokens(capacity: Mapping[str, Any]) -> str:
    tokens, several = capacity.get("kv_capacity_tokens"), capacity.get("kv_capacity_sequences")
    if not tokens:
        return "unknown"
    return f"{tokens:,} tokens" + (f", {several:,} sequences of full length" if several else "")


def _bar(name: str, arm: str, size: float, scale: Scale) -> Strip:
    gib = size / 2**30
    bar = el(
        "rect", x=scale(0), y=5, width=max(1.0, scale(gib) - scale(0)), height=STRIP_HEIGHT - 10, class_=f"mark {arm_class(arm)}"
    )
    return Strip(f"{name}, {arm}", [bar], el("span", datum(Number(size, f"{gib:.2f}"))))
