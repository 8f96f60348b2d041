"""Drawing in SVG: scales, axes, and two frames for figures.

`strips`: a table with one drawn row a line, which reads well on any width and needs no second table for those who do not
see it. `panel`: a small chart with two axes; its caller adds the numbers as a table.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from specrun.report.html import Element, Node, el

STRIP, STRIP_HEIGHT = 360.0, 22.0  # view box of one drawn row
WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT = 340.0, 220.0, 46.0, 36.0, 12.0, 14.0  # view box of a panel and its margins
ROUND = (1.0, 1.5, 2.0, 3.0, 5.0, 7.0)
CIRCLE, DIAMOND = "circle", "diamond"


@dataclass(frozen=True, slots=True)
class Scale:
    """From values between `low` and `high` to places between `start` and `end`; values outside stay at the edge."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        low, high, at = (math.log(x) if self.log else x for x in (self.low, self.high, max(value, self.low)))
        return self.start + (self.end - self.start) * min(1.0, max(0.0, (at - low) / ((high - low) or 1.0)))

    def ticks(self, most: int = 6) -> list[float]:
        """Round values in the range, about as many as fit."""
        return log_ticks(self.low, self.high, most) if self.log else linear_ticks(self.low, self.high, most)


def linear_ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Multiples of 1, 2 or 5 times a power of ten."""
    raw = (high - low) / most or 1.0
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(m * power for m in (1.0, 2.0, 5.0, 10.0) if m * power >= raw * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [round(i * step, 10) for i in range(first, math.floor(high / step + 1e-9) + 1)]


def log_ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Of every decade as many round values as fit, or evenly spaced ones where hardly any lie in the range."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for chosen in (ROUND, (1.0, 2.0, 5.0), (1.0,)):
        found = [round(m * 10.0**d, 12) for d in decades for m in chosen if low <= m * 10.0**d <= high]
        if len(found) <= most:
            return found if len(found) > 2 else linear_ticks(low, high, most)
    return found[:: math.ceil(len(found) / most)]


def around(values: Iterable[float], log: bool = False, pad: float = 0.06) -> tuple[float, float]:
    """The range of the values with a margin; of no width, a range about the value."""
    known = [value for value in values if math.isfinite(value) and (value > 0 or not log)]
    low, high = (min(known), max(known)) if known else (1.0, 1.0)
    if log:
        margin = max((high / low) ** pad, 1.05)
        return low / margin, high * margin
    margin = (high - low) * pad or abs(high) * 0.1 or 1.0
    return low - margin, high + margin


def number(value: float) -> str:
    """A value as an axis shows it."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.6g}"


def arm_class(arm: str) -> str:
    """Colour class of an arm; arms beside the four of the protocol share one."""
    return f"arm-{arm}" if arm in ("target", "pair", "aa", "matched", "limit") else "arm-other"


class Strip(NamedTuple):
    """One row: what it is, what is drawn, and the same in figures."""

    label: Node
    marks: Sequence[Element]
    value: Node


def strips(caption: str, heads: tuple[str, str, str], rows: Sequence[Strip], scale: Scale, note: str = "") -> Element:
    """Drawn rows over one axis."""
    body = [_strip(row, scale) for row in rows]
    axis = el("tr", el("th", heads[0], scope="col"), el("td", _axis(scale, note)), el("th", heads[2], scope="col"))
    return el("table", el("caption", caption), el("thead", axis), el("tbody", body), class_="strips")


def _strip(row: Strip, scale: Scale) -> Element:
    grid = [el("line", x1=scale(t), x2=scale(t), y1=0, y2=STRIP_HEIGHT, class_="grid") for t in scale.ticks()]
    drawn = svg(STRIP, STRIP_HEIGHT, [*grid, *row.marks])
    return el("tr", el("th", row.label, scope="row"), el("td", drawn), el("td", row.value, class_="value"))


def _axis(scale: Scale, note: str) -> Element:
    labels = [el("text", number(t), x=scale(t), y=27, class_=_anchor(scale(t), STRIP)) for t in scale.ticks()]
    return svg(STRIP, 32, [el("text", note, x=STRIP / 2, y=11, class_="mid note"), *labels])


def _anchor(x: float, width: float) -> str:
    return "from" if x < 14 else "to" if x > width - 14 else "mid"


def svg(width: float, height: float, marks: Iterable[Element]) -> Element:
    """A drawing that says nothing to a screen reader: what it shows stands beside it in figures."""
    return el("svg", marks, viewBox=f"0 0 {width:g} {height:g}", aria_hidden="true", focusable="false")


def whisker(scale: Scale, low: float | None, value: float, high: float | None, arm: str, shape: str = CIRCLE) -> list[Element]:
    """An interval with its value, in the middle of a strip; ends beyond the axis are drawn as arrows."""
    y, marks = STRIP_HEIGHT / 2, []
    if low is not None and high is not None:
        marks.append(el("line", x1=scale(low), x2=scale(high), y1=y, y2=y, class_=f"line {arm_class(arm)}"))
        marks += [_end(scale(x), y, arm) for x in (low, high)]
    return [*marks, dot(scale(value), y, arm, shape)]


def _end(x: float, y: float, arm: str) -> Element:
    return el("line", x1=x, x2=x, y1=y - 4, y2=y + 4, class_=f"line {arm_class(arm)}")


def dot(x: float, y: float, arm: str, shape: str = CIRCLE, r: float = 4) -> Element:
    """A filled mark."""
    if shape == CIRCLE:
        return el("circle", cx=x, cy=y, r=r, class_=f"mark {arm_class(arm)}")
    points = ((x, y - r - 1), (x + r + 1, y), (x, y + r + 1), (x - r - 1, y))
    return el("path", d="M" + " L".join(f"{a:.1f} {b:.1f}" for a, b in points) + "Z", class_=f"mark {arm_class(arm)}")


def faint(scale: Scale, values: Iterable[float]) -> list[Element]:
    """The single blocks behind an interval."""
    return [el("circle", cx=scale(value), cy=STRIP_HEIGHT - 3, r=1.8, class_="block") for value in values]


def upright(scale: Scale, value: float, kind: str) -> Element:
    """A line through a strip: `one` where the arms are equal, `bound` where a criterion draws the line."""
    return el("line", x1=scale(value), x2=scale(value), y1=0, y2=STRIP_HEIGHT, class_=kind)


class Curve(NamedTuple):
    """Points of one arm in order; `labels` stand beside them. `stepped`: a staircase, as of shares of requests."""

    arm: str
    points: Sequence[tuple[float, float]]
    labels: Sequence[str] = ()
    stepped: bool = False


def panel(
    title: str, x: str, y: str, curves: Sequence[Curve], ranges: tuple[tuple[float, float], tuple[float, float]]
) -> Element:
    """A small chart with a title and two named axes."""
    across = Scale(*ranges[0], LEFT, WIDTH - RIGHT)
    up = Scale(*ranges[1], HEIGHT - BOTTOM, TOP)
    marks = [*_frame(across, up, x, y), *(mark for curve in curves for mark in _curve(curve, across, up))]
    return el("div", el("p", title, class_="title"), svg(WIDTH, HEIGHT, marks), class_="panel")


def _frame(across: Scale, up: Scale, x: str, y: str) -> list[Element]:
    base = HEIGHT - BOTTOM
    marks = [el("line", x1=across(t), x2=across(t), y1=TOP, y2=base, class_="grid") for t in across.ticks(5)]
    marks += [el("line", x1=LEFT, x2=WIDTH - RIGHT, y1=up(t), y2=up(t), class_="grid") for t in up.ticks(5)]
    marks += [el("text", number(t), x=across(t), y=base + 13, class_=_anchor(across(t), WIDTH)) for t in across.ticks(5)]
    marks += [el("text", number(t), x=LEFT - 5, y=up(t) + 4, class_="to") for t in up.ticks(5)]
    middle = (TOP + base) / 2
    marks.append(el("text", x, x=(LEFT + WIDTH - RIGHT) / 2, y=HEIGHT - 4, class_="mid note"))
    return [*marks, el("text", y, x=11, y=middle, transform=f"rotate(-90 11 {middle:g})", class_="mid note")]


def _curve(curve: Curve, across: Scale, up: Scale) -> list[Element]:
    places = [(across(a), up(b)) for a, b in curve.points]
    marks = [el("path", d=_path(places, curve.stepped), class_=f"line curve {arm_class(curve.arm)}")] if len(places) > 1 else []
    if curve.stepped:
        return marks
    shape = DIAMOND if curve.arm == "pair" else CIRCLE
    marks += [dot(a, b, curve.arm, shape, 3) for a, b in places]
    return [*marks, *(_label(curve, a, b, label) for (a, b), label in zip(places, curve.labels, strict=False))]


def _label(curve: Curve, x: float, y: float, label: str) -> Element:
    """Above the target's marks and below those of other arms, so that neighbours do not cover each other."""
    dx, dy, side = (-6, -6, "to") if curve.arm == "target" else (6, 13, "from")
    return el("text", label, x=x + dx, y=y + dy, class_=f"label {side} {arm_class(curve.arm)}")


def _path(places: Sequence[tuple[float, float]], stepped: bool) -> str:
    out = [f"M{places[0][0]:.1f} {places[0][1]:.1f}"]
    for a, b in places[1:]:
        out.append(f"H{a:.1f} V{b:.1f}" if stepped else f"L{a:.1f} {b:.1f}")
    return " ".join(out)
