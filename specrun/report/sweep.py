"""A K sweep for a reader: a table of every K, and what may be said of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from specrun.arrival import place
from specrun.report.tables import Entry, Interval, Shown, Table

HEADERS = ("metric and cell", "K", "K / target [interval]", "tokens per step", "against the other K")


def sweep_table(entry: Entry) -> Table:
    """One row per metric, cell and K; no row without a sweep."""
    return Table(HEADERS, [row for table in _tables(entry) for row in _rows(entry, table)])


def sweep_lines(entry: Entry) -> list[str]:
    """The conclusion, then the rule it rests on."""
    sweep = entry.get("sweep")
    if not sweep:
        return []
    winner = sweep["winner"]
    told = (
        f"K = {winner} is better than every other in every table."
        if winner
        else "Not separated: no K is better than every other."
    )
    own = "Criteria judge the spec's own K only; another K needs a spec of its own."
    return [told, own, sweep["rule"]]


def _tables(entry: Entry) -> list[Mapping[str, Any]]:
    found: list[Mapping[str, Any]] = (entry.get("sweep") or {}).get("tables", [])
    return found


def _rows(entry: Entry, table: Mapping[str, Any]) -> Iterator[list[Shown]]:
    for number, row in enumerate(table["rows"]):
        where = "" if number else f"{table['metric']}, {table['workload']} {place(table['concurrency'])}"
        interval = Interval(row["value"], row["low"], row["high"])
        yield [where, str(row["k"]), interval, _per_step(entry, table, row["k"]), _standing(table, row)]


def _standing(table: Mapping[str, Any], row: Mapping[str, Any]) -> str:
    if "reason" in row:
        return str(row["reason"])
    if row["k"] == table["winner"]:
        return "better than every other"
    return "none is better" if row["k"] in table["best"] else "worse"


def _per_step(entry: Entry, table: Mapping[str, Any], k: int) -> str:
    """Tokens per decode step of the arm with this K; the pair's arm is the one that no other name claims."""
    columns, others = entry["figures"]["columns"], {f"k{row['k']}" for row in table["rows"]}
    for values in entry["figures"]["rows"]:
        row = dict(zip(columns, values, strict=True))
        here = (row["workload"], row["concurrency"]) == (table["workload"], table["concurrency"])
        if here and row["arm"] == _arm(entry, k, others) and row.get("tokens_per_step") is not None:
            return f"{row['tokens_per_step']:.2f}"
    return ""


def _arm(entry: Entry, k: int, others: set[str]) -> str:
    measured = {values[entry["figures"]["columns"].index("arm")] for values in entry["figures"]["rows"]}
    return f"k{k}" if f"k{k}" in measured & others else "pair"
