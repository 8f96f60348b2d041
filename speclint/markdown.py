"""Diagnostics as Markdown, for a comment on a pull request."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import click

from speclint.diagnostic import Diagnostic
from speclint.lint import Report
from speclint.render import excerpt, printable, summary_line

MARKS = {"error": "❌", "warning": "⚠️", "info": "ℹ️"}
LIMIT = 60_000
"""Characters; GitHub refuses comments above 65,536."""
SPECIAL = re.compile(r"[\\`*_\[\]|~@#&<>]")
"""What Markdown of a pull request, or a table in it, could take for its own; written as a character reference."""


def markdown(reports: Sequence[Report]) -> str:
    """A table of all findings, and each with its excerpt in a folded part; what does not fit in a comment is counted."""
    found = [(report, diagnostic) for report in reports for diagnostic in report.diagnostics]
    head = f"### speclint\n\n{_text(summary_line(reports))}\n"
    if not found:
        return head
    rows = [_row(diagnostic) for _, diagnostic in found]
    folded = [_folded(report, diagnostic) for report, diagnostic in found]
    table = "\n| | rule | where | what |\n|---|---|---|---|\n"
    return head + table + "".join(_fitting(rows, LIMIT // 2)) + "\n" + "".join(_fitting(folded, LIMIT // 2))


def _fitting(parts: list[str], limit: int) -> Iterator[str]:
    for index, part in enumerate(parts):
        limit -= len(part)
        if limit < 0:
            yield f"\n{len(parts) - index} more do not fit here; `speclint check` prints all.\n"
            return
        yield part


def _row(diagnostic: Diagnostic) -> str:
    place = f"{diagnostic.file}:{diagnostic.line}:{diagnostic.column}"
    said = prose(diagnostic.message) + (f"<br>{prose(diagnostic.help)}" if diagnostic.help else "")
    mark = f"{MARKS[diagnostic.severity]} {diagnostic.severity}"
    return f"| {mark} | {diagnostic.code} {diagnostic.name} | {_code(place)} | {said} |\n"


def _folded(report: Report, diagnostic: Diagnostic) -> str:
    shown = click.unstyle(excerpt(report, diagnostic))
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", shown)), default=0))
    summary = f"{diagnostic.code} {diagnostic.name}, line {diagnostic.line}"
    return f"<details><summary>{summary}</summary>\n\n{fence}text\n{shown}\n{fence}\n\n</details>\n"


def prose(text: str) -> str:
    """One line of text in which only the code spans of our own messages mean anything to Markdown."""
    pieces = printable(text).split("`")
    return "".join(_code(piece) if index % 2 else _text(piece) for index, piece in enumerate(pieces))


def _text(text: str) -> str:
    return SPECIAL.sub(lambda match: f"&#{ord(match[0])};", text)


def _code(text: str) -> str:
    """A code span in a table cell: a bar would end the cell, a backtick the span."""
    if set("`|\\") & set(text):
        return f"<code>{_text(printable(text))}</code>"
    return f"`{printable(text)}`" if text.strip() else _text(text)
