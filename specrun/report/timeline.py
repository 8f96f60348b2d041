"""The run in time: server starts and measured windows of every block, with the marked ones named."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from specrun.report.figures import figure, legend
from specrun.report.html import Element, el
from specrun.report.html_tables import bullets, folded, grid
from specrun.report.plot import STRIP, STRIP_HEIGHT, Scale, Strip, arm_class, strips
from specrun.report.records import Recorded, Span
from specrun.report.tables import Shown, Table, number


def time_line(recorded: Recorded) -> Element | None:
    """One row per block; nothing without spans."""
    spans = sorted(recorded.spans, key=lambda span: span.begin)
    if not spans:
        return None
    rows = {name: [span for span in spans if span.row == name] for name in dict.fromkeys(span.row for span in spans)}
    scale = Scale(0.0, max(span.end for span in spans) / 60 * 1.01, 4, STRIP - 4)
    drawn = [Strip(name, [_bar(span, scale) for span in own], _order(own)) for name, own in rows.items()]
    how = (
        "Pale: a server starts. Solid: measured windows. Outlined: a window that does not count or was marked. Between them "
        "lie warm-up and idle time. Times are those of the records, to the second."
    )
    arms = list(dict.fromkeys(span.arm for span in spans))
    table = strips("Blocks in time", ("block", "", "order of the arms"), drawn, scale, "minutes since the run began")
    told = bullets(marks) if (marks := marked(spans)) else el("p", "No window is marked.")
    return figure(how, legend(arms), table, told, folded("In numbers", grid(_table(spans), "Server starts and windows")))


def _table(spans: Sequence[Span]) -> Table:
    """Every span with its time."""
    headers = ["block", "arm", "what", "begins after, s", "takes, s", "mark"]
    return Table(headers, [_span_row(span) for span in spans])


def _span_row(span: Span) -> list[Shown]:
    return [span.row, span.arm, span.what, number(span.begin, 1, 0), number(span.end - span.begin, 1, 1), span.note]


def marked(spans: Sequence[Span]) -> list[str]:
    """Windows with a mark, in words."""
    return [f"{span.row}, {span.arm}, {span.what}: {span.note}" for span in spans if span.note]


def _bar(span: Span, scale: Scale) -> Element:
    begin, end = scale(span.begin / 60), scale(span.end / 60)
    kind = "starting" if span.kind == "start" else "mark voided" if span.note else "mark"
    height = STRIP_HEIGHT - 6
    title = el("title", f"{span.arm}: {span.what}{', ' + span.note if span.note else ''}")
    return el("rect", title, x=begin, y=3, width=max(1.2, end - begin), height=height, class_=f"{kind} {arm_class(span.arm)}")


def _order(spans: Sequence[Span]) -> str:
    windows = [span.arm for span in spans if span.kind == "window"]
    return ", ".join(arm for arm, _ in groupby(windows)) or "unmeasured"
