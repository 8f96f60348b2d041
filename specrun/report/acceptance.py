"""What was accepted: by draft position, and along the answer and its context."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from specrun.evidence import Cell
from specrun.report import tables
from specrun.report.figures import figure, legend
from specrun.report.html import Element, el
from specrun.report.html_tables import folded, grid
from specrun.report.plot import Curve, panel
from specrun.report.records import Map, Recorded, Steps
from specrun.report.tables import Entry, Table

FEW = 20
"""Decode steps below which a field of the map is not coloured: its mean says little."""
SHADES = 9


def by_draft_position(entry: Entry, recorded: Recorded) -> Element | None:
    """The share of steps that accepted the draft token at each position, and all before it."""
    known = {cell: rates for cell in tables.cells(entry) if (rates := recorded.positions.get(cell))}
    if not known:
        return None
    how = (
        "From the records: the share of decode steps that accepted the draft token at a position and all before it, median over "
        "blocks. One line per concurrency; they lie on each other where load changes nothing, as it should be."
    )
    panels = [_positions(known, workload) for workload in dict.fromkeys(workload for workload, _ in known)]
    headers = ["workload at concurrency", *_numbered(max(map(len, known.values())))]
    table = Table(headers, [[tables.named(cell), *map(_share, rates)] for cell, rates in known.items()])
    return figure(how, el("div", panels, class_="panels"), folded("In numbers", grid(table, "Acceptance by draft position")))


def _positions(known: Mapping[Cell, Sequence[float]], workload: str) -> Element:
    curves = [Curve("pair", list(enumerate(rates, 1))) for cell, rates in known.items() if cell[0] == workload]
    return _panel(workload, curves)


def _panel(title: str, curves: Sequence[Curve]) -> Element:
    longest = max(len(curve.points) for curve in curves)
    return panel(title, "draft position", "share of steps", curves, ((0.5, longest + 0.5), (0.0, 1.0)))


def _numbered(count: int) -> list[str]:
    return [f"position {i}" for i in range(1, count + 1)]


def _share(rate: float) -> tables.Shown:
    return tables.number(rate, 1, 3)


def foretold(entry: Entry) -> Element | None:
    """Acceptance by draft position as the oracle predicts it, beside what the pair did in the same decode steps."""
    rows = [row for row in entry["established"].get("oracle", []) if row["predicted"] and row["made"]]
    if not rows:
        return None
    how = (
        "From the entry: what the draft, asked alone about the target's own answers, says must be accepted, beside what the pair "
        "accepted in the same decode steps. The two lie on each other where the pair does what it should."
    )
    panels = [
        _panel(row["workload"], [Curve("limit", _told(row, "predicted")), Curve("pair", _told(row, "made"))]) for row in rows
    ]
    shown: list[list[tables.Shown]] = [
        [row["workload"], name, f"{row[side]:,}", *(_share(rate) for _, rate in _told(row, side))]
        for row in rows
        for name, side in (("predicted", "predicted"), ("measured", "made"))
    ]
    headers = ["workload", "", "decode steps", *_numbered(max(len(row["made_at"]) for row in rows))]
    table = grid(Table(headers, shown), "Acceptance by draft position, predicted and measured")
    key = legend({"limit": "predicted", "pair": "measured"})
    return figure(how, key, el("div", panels, class_="panels"), folded("In numbers", table))


def _told(row: Mapping[str, Any], side: str) -> list[tuple[float, float]]:
    return [(i, count / row[side]) for i, count in enumerate(row[f"{side}_at"], 1)]


def along_the_answer(spec: Mapping[str, Any], recorded: Recorded) -> Element | None:
    """Accepted draft tokens per decode step, by answer position and context length, one map per workload."""
    k = spec["pair"]["speculative"].get("num_speculative_tokens") or 1
    maps = [_map(workload, found, k) for workload, found in recorded.maps.items() if found]
    if not maps:
        return None
    how = (
        f"Accepted draft tokens per decode step, at most {k}: the darker, the more. Down the rows the context grows (prompt "
        "and answer so far), along a row the answer. Number of steps in small print; fields of fewer than "
        f"{FEW} steps are not coloured. From the token counts of the pair's chunks, all concurrency levels together."
    )
    left_out = (
        f" {recorded.merged} windows in which the server merged steps into one chunk are left out." if recorded.merged else ""
    )
    return figure(how + left_out, *maps)


def _map(workload: str, found: Map, k: int) -> Element:
    contexts, positions = (sorted({key[i] for key in found}) for i in (0, 1))
    head = ["context, tokens", *(f"answer {_bin(p)}" for p in positions), "all"]
    body = [_map_row(_bin(c), [found.get((c, p)) for p in positions], k) for c in contexts]
    below = _map_row("all", [_sum(found[key] for key in found if key[1] == p) for p in positions], k)
    caption = f"{workload}: accepted draft tokens per decode step"
    top = el("tr", [el("th", title, scope="col") for title in head])
    made = el("table", el("caption", caption), el("thead", top), el("tbody", body, below), class_="map")
    return el("div", made, class_="scroll", tabindex="0", role="region", aria_label=caption)


def _map_row(label: str, fields: Sequence[Steps | None], k: int) -> Element:
    every = [*fields, _sum(field for field in fields if field)]
    return el("tr", el("th", label, scope="row"), [_field(field, k) for field in every])


def _sum(fields: Iterator[Steps]) -> Steps:
    several = list(fields)
    return Steps(sum(field.steps for field in several), sum(field.accepted for field in several))


def _field(field: Steps | None, k: int) -> Element:
    if not field or not field.steps:
        return el("td", el("span", "no steps", class_="unseen"))
    mean = field.accepted / field.steps
    shade = f"shade-{min(SHADES, int(mean / k * (SHADES + 1)))}" if field.steps >= FEW else "few"
    return el("td", el("data", f"{mean:.2f}", value=repr(mean)), " ", el("small", f"{field.steps:,}"), class_=shade)


def _bin(low: int) -> str:
    return f"{low}–{7 if low == 0 else 2 * low - 1}"
