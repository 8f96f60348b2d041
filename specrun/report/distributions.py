"""How long requests took, arm by arm: whole distributions from the records, or what the entry keeps of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from specrun.evidence import Cell
from specrun.measure import SHOWN_BEYOND, percentile, unsupported
from specrun.report import tables
from specrun.report.figures import figure, legend
from specrun.report.html import Element, Node, el
from specrun.report.html_tables import datum, folded, grid
from specrun.report.plot import STRIP, Curve, Scale, Strip, around, panel, strips, whisker
from specrun.report.records import Recorded
from specrun.report.tables import Entry, Number, Table

PERCENTS = (10, 25, 50, 75, 90, 95)
POINTS = 120  # of a drawn distribution
Samples = Mapping[tuple[Cell, str], Sequence[float]]


def distributions(entry: Entry, recorded: Recorded | None) -> Element:
    """Request duration and TTFT of every arm."""
    return _from_entry(entry) if recorded is None else _from_records(entry, recorded)


def _from_records(entry: Entry, recorded: Recorded) -> Element:
    both = (("request duration", recorded.durations), ("TTFT", recorded.ttfts))
    cells = [cell for cell in tables.cells(entry) if any(recorded.durations.get((cell, arm)) for arm in tables.drawn_arms(entry))]
    if not cells:
        return el("p", "No window of this run counts, so there is no distribution.")
    panels = [_shares(entry, cell, name, values) for cell in cells for name, values in both]
    rows = [row for cell in cells for name, values in both for row in _percentiles(entry, cell, name, values)]
    table = Table(["workload at concurrency", "ms", "arm", "requests", *(f"p{p}" for p in PERCENTS)], rows)
    how = (
        "From the records: the share of requests that took no longer than the time on the axis, all blocks that count together. "
        "The curve further left is the quicker arm. The slowest 1 % is not drawn, and TTFT leaves out the first request of each "
        "slot."
    )
    numbers = folded("These distributions in numbers", grid(table, "Percentiles of request duration and TTFT"))
    return figure(how, legend(tables.drawn_arms(entry)), el("div", panels, class_="panels"), numbers)


def _shares(entry: Entry, cell: Cell, name: str, values: Samples) -> Element:
    known = {arm: sample for arm in tables.drawn_arms(entry) if (sample := values.get((cell, arm)))}
    curves = [Curve(arm, _staircase([1000 * x for x in sample]), stepped=True) for arm, sample in known.items()]
    edge = [1000 * percentile(sample, q) for sample in known.values() for q in (0.0, 0.99)]
    return panel(f"{tables.named(cell)}: {name}", "ms", "share of requests", curves, (around(edge), (0.0, 1.0)))


def _staircase(ordered: Sequence[float]) -> list[tuple[float, float]]:
    """Value and share of values up to it, for at most 120 of them."""
    n = len(ordered)
    kept = sorted({round(i * (n - 1) / min(POINTS, n)) for i in range(min(POINTS, n) + 1)})
    drawn = [i for i in kept if ordered[i] <= percentile(ordered, 0.99)]
    return [(ordered[drawn[0]], 0.0), *((ordered[i], (i + 1) / n) for i in drawn)]


def _percentiles(entry: Entry, cell: Cell, name: str, values: Samples) -> Iterator[list[tables.Shown]]:
    for arm in tables.drawn_arms(entry):
        sample = values.get((cell, arm), [])
        enough = [p for p in PERCENTS if sample and not unsupported(f"x_p{p}", len(sample), SHOWN_BEYOND)]
        cells = [tables.number(percentile(sample, p / 100) if p in enough else None, 1000, 1) for p in PERCENTS]
        yield [tables.named(cell), name, arm, Number(len(sample), str(len(sample))), *cells]


def _from_entry(entry: Entry) -> Element:
    how = (
        "From the entry, because the records of this run are not at hand: the median of each arm, with a line to the 95th "
        "percentile where the number of requests supports one (median over blocks). With the run folder (--records) the whole "
        "distributions are drawn."
    )
    shown = (("request_duration", "Request duration"), ("ttft", "Time to first token"))
    return figure(how, legend(tables.drawn_arms(entry)), *filter(None, (_quantiles(entry, name, title) for name, title in shown)))


def _quantiles(entry: Entry, name: str, title: str) -> Element | None:
    known = {key: row for key, row in tables.figures(entry).items() if _shown(entry, key[2], row, name)}
    values = [1000 * x for row in known.values() for q in (50, 95) if (x := row.get(f"{name}_p{q}")) is not None]
    if not values:
        return None
    scale = Scale(*around([0.0, *values]), 8, STRIP - 8)
    rows = [_quantile_row(tables.named(key[:2]), key[2], row, name, scale) for key, row in known.items()]
    return strips(f"{title}, median and 95th percentile", ("workload at concurrency, arm", "", "ms"), rows, scale, "ms")


def _shown(entry: Entry, arm: str, row: Mapping[str, Any], name: str) -> bool:
    return arm in tables.drawn_arms(entry) and row.get(f"{name}_p50") is not None


def _quantile_row(where: str, arm: str, row: Mapping[str, Any], name: str, scale: Scale) -> Strip:
    middle, high = 1000 * row[f"{name}_p50"], row.get(f"{name}_p95")
    tail: list[Node] = [" to ", el("span", datum(tables.number(high, 1000, 1)))] if high is not None else []
    marks = whisker(scale, middle, middle, None if high is None else 1000 * high, arm)
    return Strip(f"{where}, {arm}", marks, el("span", datum(tables.number(row[f"{name}_p50"], 1000, 1)), tail))
