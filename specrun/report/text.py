"""A result for a reader: verdicts first, then both arms side by side, then why, and what it does not show.

As text for a terminal, and as Markdown for a pull request, where the long part is folded and everything fits a comment.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from tabulate import tabulate

from speclint.markdown import LIMIT, prose
from specrun.oracle import measurement
from specrun.report import tables
from specrun.report.sweep import sweep_lines, sweep_table
from specrun.report.tables import Entry, Table
from specrun.scope import COST_MODEL

Format = Literal["text", "markdown"]
MARKS = {"met": "✅", "not_met": "❌", "undecided": "❔", "not_established": "⛔"}
ANSWERS = {
    "met": "every criterion is met",
    "not_met": "a criterion is not met",
    "undecided": "not decided",
    "not_established": "the pair was not established",
}


def report(spec: Mapping[str, Any], entry: Entry, form: Format = "text") -> str:
    """The report of one result entry; `spec` is the data of its file or plan (name, protocol)."""
    return markdown(spec, entry) if form == "markdown" else text(spec, entry)


def text(spec: Mapping[str, Any], entry: Entry) -> str:
    """For a terminal."""
    parts = [
        heading(f"{spec['name']}: result {entry['id']}", "="),
        "\n".join(tables.facts(spec, entry)),
        heading("Was the pair established?"),
        tables.established(entry),
        plain(tables.check_table(entry)),
        heading("Verdicts"),
        plain(tables.verdict_table(spec, entry)) if entry["verdicts"] else "None: the pair was not established.",
        bullets(tables.verdict_notes(entry)),
        heading("Both arms, medians over blocks; a ratio is the mean of the blocks' own"),
        plain(tables.arm_table(spec, entry)),
        *([heading("Sweep of K"), plain(sweep_table(entry)), bullets(sweep_lines(entry))] if entry.get("sweep") else []),
        heading("Why"),
        bullets(tables.finding_lines(entry)) or "No finding.",
        heading("What it does and does not show"),
        bullets(entry["scope"]),
    ]
    return "\n\n".join(filter(None, parts)) + "\n"


def markdown(spec: Mapping[str, Any], entry: Entry) -> str:
    """For a pull request: outcome, verdicts and the caveat in sight, the rest folded."""
    outcome = tables.outcome(entry)
    counts = f": {tables.tallied(entry)}" if entry["verdicts"] else ""
    failed = [row for row in entry["established"]["checks"] if row["outcome"] == "failed"]
    in_sight = [
        f"## {prose(spec['name'])}: {MARKS[outcome]} {ANSWERS[outcome]}{counts}",
        *([] if measurement(spec) else [f"**{COST_MODEL}**"]),
        f"{prose(tables.engine_line(entry))}. Result {prose(entry['id'])}, {_vouched(entry)}.",
        bullets(prose(f"{row['check']}: {row['detail']}") for row in failed),
        github(tables.verdict_table(spec, entry)) if entry["verdicts"] else "No criterion is judged.",
        prose(entry["scope"][-1]) if entry["scope"] else "",
    ]
    folded = [
        fold("Both arms, medians over blocks; a ratio is the mean of the blocks' own", github(tables.arm_table(spec, entry))),
        *([fold("Sweep of K", f"{github(sweep_table(entry))}\n\n{bullets(sweep_lines(entry))}")] if entry.get("sweep") else []),
        fold("Why", bullets(map(prose, tables.finding_lines(entry))) or "No finding."),
        fold("What it does and does not show", bullets(map(prose, entry["scope"]))),
        fold(f"Was the pair established? {prose(tables.established(entry))}", github(tables.check_table(entry))),
        fold(
            "What the blocks decide, and what ran",
            bullets(map(prose, [*tables.verdict_notes(entry), *tables.facts(spec, entry)])),
        ),
    ]
    return fitted([part for part in (*in_sight, *folded) if part])


def _vouched(entry: Entry) -> str:
    signed = f"signed by {prose(entry['signer'])}" if entry.get("signature") else "not signed"
    return signed if entry["approvals"] else f"{signed}, **unapproved**"


def fitted(parts: Iterable[str], limit: int = LIMIT) -> str:
    """The parts as long as a comment holds them; one that does not fit is left out whole, and the last line says so."""
    kept, left_out = [], 0
    for part in parts:
        limit -= len(part) + 2
        if limit < 0:
            limit += len(part) + 2
            left_out += 1
        else:
            kept.append(part)
    note = [f"{left_out} more parts do not fit in a comment; `specrun report --format html` has them."] if left_out else []
    return "\n\n".join([*kept, *note]) + "\n"


def heading(title: str, line: str = "-") -> str:
    """A title with a line under it."""
    return title + "\n" + line * len(title)


def fold(title: str, body: str) -> str:
    """A part that GitHub shows on a click."""
    return f"<details><summary>{title}</summary>\n\n{body}\n\n</details>"


def plain(table: Table) -> str:
    """A table for a terminal."""
    return tabulate([[str(cell) for cell in row] for row in table.rows], headers=table.headers, disable_numparse=True)


def github(table: Table) -> str:
    """A table for a pull request; nothing in its cells is markup."""
    rows = [[prose(str(cell)) for cell in row] for row in table.rows]
    return tabulate(rows, headers=table.headers, tablefmt="github", disable_numparse=True)


def bullets(lines: Iterable[str]) -> str:
    """A list, one line each."""
    return "\n".join(f"- {line}" for line in lines)
