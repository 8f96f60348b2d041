"""A K sweep as a figure: every K against the target, metric by metric and cell by cell."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from specrun.report import tables
from specrun.report.figures import figure
from specrun.report.html import Element, el
from specrun.report.html_tables import bullets, datum, grid
from specrun.report.plot import STRIP, Scale, Strip, around, faint, strips, upright, whisker
from specrun.report.sweep import sweep_lines, sweep_table
from specrun.report.tables import Entry


def sweep_figure(spec: Mapping[str, Any], entry: Entry) -> Element:
    """Interval of every K, with the table and the conclusion. The entry must have a sweep."""
    found = entry["sweep"]["tables"]
    ends = [x for table in found for row in table["rows"] for x in (row["value"], row["low"], row["high"]) if x]
    scale = Scale(*around([1.0, *ends], log=True), 8, STRIP - 8, log=True)
    own = spec["pair"]["speculative"]["num_speculative_tokens"]
    how = "A ratio of 1 means as the target alone; the spec's own K in the pair's colour. The axis is logarithmic."
    drawn = [_drawn(table, own, scale) for table in found]
    return figure(how, *drawn, grid(sweep_table(entry), "Every K in numbers"), bullets(sweep_lines(entry)))


def _drawn(table: Mapping[str, Any], own: int, scale: Scale) -> Element:
    title = f"{table['metric']}, {tables.cell_name(table)}, K / target ({tables.unit(table['metric'])})"
    rows = [_row(row, own, scale) for row in table["rows"]]
    return strips(title, ("K", "", "ratio [interval]"), rows, scale)


def _row(row: Mapping[str, Any], own: int, scale: Scale) -> Strip:
    label = f"K = {row['k']}"
    if row["value"] is None:
        return Strip(label, [upright(scale, 1.0, "one")], row.get("reason", "no value"))
    arm = "pair" if row["k"] == own else "other"
    interval = whisker(scale, row["low"], row["value"], row["high"], arm)
    marks = [upright(scale, 1.0, "one"), *faint(scale, [x for x in row["blocks"] if x]), *interval]
    return Strip(label, marks, el("span", datum(tables.interval(row))))
