"""Tables of a report as HTML, with the exact numbers behind what is shown."""

from __future__ import annotations

from collections.abc import Iterable

from specrun.report.html import Element, Node, el
from specrun.report.tables import Interval, Number, Shown, Table

MARKED = {
    "met": "met",
    "NOT MET": "not-met",
    "undecided": "undecided",
    "met, one start": "undecided",
    "failed": "not-met",
    "better": "met",
    "WORSE": "not-met",
}

SHORT = 26
"""Characters of a cell that is not broken into lines."""


def datum(value: Shown) -> Node | list[Node]:
    """A cell's text; numbers as `<data>` with their exact value."""
    if isinstance(value, Number):
        return _data(value.value, value.text)
    if isinstance(value, Interval):
        return list(_interval(value))
    return el("span", value, class_=f"verdict {MARKED[value]}") if value in MARKED else value


def _interval(found: Interval) -> Iterable[Node]:
    if found.value is None:
        return
    yield _data(found.value, f"{found.value:.4g}")
    if found.low is None or found.high is None or found.low == found.high:
        return
    yield from (" [", _data(found.low, f"{found.low:.4g}"), ", ", _data(found.high, f"{found.high:.4g}"), "]")


def _data(value: float, shown: str) -> Element:
    return el("data", shown, value=repr(value))


def grid(table: Table, caption: str, name: str = "") -> Element:
    """A table that scrolls by itself where it is wider than the page. `name`: its id."""
    head = el("tr", [el("th", title, scope="col") for title in table.headers])
    body = [el("tr", [_cell(value, first) for first, value in _firsts(row)]) for row in table.rows]
    made = el("table", el("caption", caption), el("thead", head), el("tbody", body), id=name or None)
    return el("div", made, class_="scroll", tabindex="0", role="region", aria_label=caption)


def _firsts(row: Iterable[Shown]) -> Iterable[tuple[bool, Shown]]:
    return ((index == 0, value) for index, value in enumerate(row))


def _cell(value: Shown, first: bool) -> Element:
    if first:
        return (
            el("th", datum(value), scope="row")
            if value
            else el("td", el("span", "same as above", class_="unseen"), class_="same")
        )
    return el("td", datum(value), class_="short" if len(str(value)) <= SHORT else None)


def bullets(lines: Iterable[str]) -> Element:
    """A list of sentences."""
    return el("ul", [el("li", line) for line in lines])


def folded(title: str, *inside: Node) -> Element:
    """A part that opens on a click or key."""
    return el("details", el("summary", title), inside)
