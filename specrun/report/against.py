"""A comparison of two results for a reader, in the forms that a report has."""

from __future__ import annotations

from typing import Any

from speclint.data import metrics
from speclint.markdown import prose
from specrun.against import METRICS, Comparison, Difference, Finding, Shift, against
from specrun.evidence import Cell
from specrun.report import tables
from specrun.report.figures import figure
from specrun.report.html import Node, document, el
from specrun.report.html_tables import bullets, datum, grid
from specrun.report.json_form import identity
from specrun.report.page import section
from specrun.report.plot import STRIP, Scale, Strip, around, strips, upright, whisker
from specrun.report.style import STYLE
from specrun.report.tables import Result, Shown, Table
from specrun.report.text import bullets as lines
from specrun.report.text import fitted, fold, github, heading, plain

FORMAT = "pair-spec-comparison/v1"
NOT_JUDGED = "Not judged: absolute figures move with the machine too."
FINDINGS: dict[Finding, str] = {
    "better": "better",
    "worse": "WORSE",
    "alone": "not told apart among so many",
    "not_told_apart": "not told apart",
    "not_compared": "not compared",
}


def rule(found: Comparison) -> str:
    """How it was decided, in one sentence."""
    n = len(found.differences)
    level = 1 - (1 - found.confidence) / max(1, n)
    return (
        "Welch's t on the block ratios pair/target of both results (on the values for acceptance), which stand on different "
        f"server starts; intervals at {found.confidence:.0%}. Better or worse is said only where the interval at {level:.2%} "
        f"excludes no change, because {n} comparisons are made."
    )


def summary(found: Comparison) -> str:
    """`of 12 comparisons 1 better, 2 worse, 9 not told apart`."""
    kinds = [row.finding for row in found.differences]
    if not kinds:
        return "Nothing is compared."
    apart = kinds.count("not_told_apart") + kinds.count("alone")
    counts = ((kinds.count("better"), "better"), (kinds.count("worse"), "worse"), (apart, "not told apart"))
    told = [f"{count} {word}" for count, word in (*counts, (kinds.count("not_compared"), "without enough blocks")) if count]
    return f"Of {len(kinds)} comparisons {', '.join(told)}."


def sources(after: Result, before: Result) -> list[str]:
    """Which two results these are."""
    both = (("before", before), ("after", after))
    return [f"{word}: {one.spec['name']}, result {one.entry['id']}, {tables.engine_line(one.entry)}" for word, one in both]


def change_table(found: Comparison) -> Table:
    """What changed in the spec and in what ran."""
    rows = [[row.path, _written(row.before), _written(row.after)] for row in (*found.changes, *found.ran)]
    return Table(["changed", "before", "after"], rows)


def _written(value: Any) -> str:
    return "none" if value is None else str(value)


def difference_table(found: Comparison) -> Table:
    """One row per cell and figure."""
    headers = ["workload at concurrency", "figure", "before", "after", f"change [{found.confidence:.0%} interval]", "finding"]
    return Table(headers, [_difference_row(row) for row in found.differences])


def _difference_row(row: Difference) -> list[Shown]:
    said = FINDINGS[row.finding] + (f": {row.reason}" if row.reason else "")
    return [tables.named(row.cell), _title(row.metric), row.before, row.after, row.change, said]


def _title(metric: str) -> str:
    return metric if metrics()[metric]["kind"] == "level" else f"{metric} pair/target"


def shift_table(found: Comparison) -> Table:
    """Figures of the arms in both results, side by side."""
    arms = list(dict.fromkeys(row.arm for row in found.shifts))
    by_row: dict[tuple[Cell, str], dict[str, str]] = {}
    for row in found.shifts:
        by_row.setdefault((row.cell, row.metric), {})[row.arm] = _moved(row)
    rows = [[tables.named(cell), metric, *(moved.get(arm, "") for arm in arms)] for (cell, metric), moved in by_row.items()]
    return Table(["workload at concurrency", "figure", *(f"{arm}, before → after" for arm in arms)], rows)


def _moved(row: Shift) -> str:
    before, after = ("none" if value is None else f"{value:.4g}" for value in (row.before, row.after))
    change = f" (× {row.after / row.before:.3g})" if row.before and row.after is not None else ""
    return f"{before} → {after}{change}"


def text(after: Result, before: Result) -> str:
    """For a terminal."""
    found = against(after, before)
    parts = [
        heading("Two results", "="),
        "\n".join(sources(after, before)),
        heading("What changed"),
        plain(change_table(found)) if found.changes or found.ran else "Nothing: the same spec on the same engine and machine.",
        lines(found.cautions),
        heading("What differs"),
        summary(found),
        plain(difference_table(found)) if found.differences else "",
        rule(found) if found.differences else "",
        heading("Both arms, median over blocks"),
        NOT_JUDGED,
        plain(shift_table(found)),
    ]
    return "\n\n".join(filter(None, parts)) + "\n"


def markdown(after: Result, before: Result) -> str:
    """For a pull request."""
    found = against(after, before)
    parts = [
        f"## Two results: {summary(found)}",
        lines(map(prose, [*sources(after, before), *found.cautions])),
        github(change_table(found)) if found.changes or found.ran else "The same spec on the same engine and machine.",
        github(difference_table(found)) if found.differences else "",
        prose(rule(found)) if found.differences else "",
        fold("Both arms, median over blocks (not judged)", github(shift_table(found))),
    ]
    return fitted([part for part in parts if part])


def as_data(after: Result, before: Result) -> dict[str, Any]:
    """For programs, in the shape of `schemas/report.schema.json`."""
    found = against(after, before)
    return {
        "format": FORMAT,
        "before": {"spec": identity(*before), "result": before.entry["id"]},
        "after": {"spec": identity(*after), "result": after.entry["id"]},
        "spec_changes": [change._asdict() for change in found.changes],
        "run_changes": [change._asdict() for change in found.ran],
        "cautions": list(found.cautions),
        "confidence": found.confidence,
        "differences": [_difference(row) for row in found.differences],
        "figures": [
            _placed(row.cell) | {key: getattr(row, key) for key in ("arm", "metric", "before", "after")} for row in found.shifts
        ],
    }


def _placed(cell: Cell) -> dict[str, Any]:
    return {"workload": cell[0], "concurrency": cell[1]}


def _difference(row: Difference) -> dict[str, Any]:
    intervals = {key: getattr(row, key)._asdict() for key in ("before", "after", "change")}
    return _placed(row.cell) | {"metric": row.metric} | intervals | {"finding": row.finding, "reason": row.reason or None}


def page(after: Result, before: Result) -> str:
    """One self-contained page."""
    found = against(after, before)
    changes = grid(change_table(found), "Spec, engine and machine", "changes")
    same = el("p", "Nothing: the same spec on the same engine and machine.")
    parts = [
        section("changed", "What changed", changes if found.changes or found.ran else same, bullets(found.cautions)),
        section("differs", "What differs", *_differing(found)),
        section(
            "figures", "Both arms", el("p", NOT_JUDGED), grid(shift_table(found), "Median over blocks, before → after", "shifts")
        ),
    ]
    top = el(
        "header",
        el("p", "Two results", class_="kicker"),
        el("h1", title(after, before)),
        el("p", summary(found), class_="outcome"),
    )
    told = el("ul", [el("li", line) for line in sources(after, before)], class_="facts")
    return document(title(after, before), STYLE, [top, told, el("main", parts)])


def title(after: Result, before: Result) -> str:
    """The names of both specs, or the one name of both."""
    new, old = after.spec["name"], before.spec["name"]
    return str(new) if new == old else f"{new} against {old}"


def _differing(found: Comparison) -> list[Node]:
    drawn = [row for row in found.differences if row.change.value and row.metric in METRICS]
    if not drawn:
        return [el("p", summary(found))]
    ends = [x for row in drawn for x in row.change if x]
    scale = Scale(*around([*ends, 1.0], log=True), 8, STRIP - 8, log=True)
    rows = [_strip(row, scale) for row in drawn]
    heads = ("workload at concurrency, figure", "", "change [interval]")
    picture = strips("Change of the ratio pair/target, after/before", heads, rows, scale)
    how = "1 means no change. The axis is logarithmic. " + rule(found)
    return [figure(how, picture), grid(difference_table(found), "The same in numbers, and acceptance", "differences")]


def _strip(row: Difference, scale: Scale) -> Strip:
    assert row.change.value is not None
    own = whisker(scale, row.change.low, row.change.value, row.change.high, "pair")
    label = f"{tables.named(row.cell)}, {row.metric}"
    return Strip(label, [upright(scale, 1.0, "one"), *own], el("span", datum(row.change), " ", datum(FINDINGS[row.finding])))
