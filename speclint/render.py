"""Diagnostics as text for people, JSON for programs, and workflow commands for GitHub."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from speclint.diagnostic import Diagnostic, Span
from speclint.lint import Report

RED, YELLOW, BLUE, CYAN = "31", "33", "34", "36"  # of ECMA-48
COLOURS = {"error": RED, "warning": YELLOW, "info": CYAN}
WIDTH = 140


def text(report: Report) -> str:
    """Every diagnostic of a file with its excerpt; empty if there is none. With colours."""
    return "\n\n".join(excerpt(report, diagnostic) for diagnostic in report.diagnostics)


def excerpt(report: Report, diagnostic: Diagnostic) -> str:
    """One diagnostic with the lines it is about, help, source and documentation."""
    return "\n".join(_lines(report, diagnostic))


def summary(reports: Iterable[Report]) -> dict[str, int]:
    """How many errors, warnings and infos there are."""
    counts = dict.fromkeys(COLOURS, 0)
    for report in reports:
        for diagnostic in report.diagnostics:
            counts[diagnostic.severity] += 1
    return counts


def summary_line(reports: Sequence[Report]) -> str:
    """The last line of the text format."""
    files = f"{len(reports)} file{'s' if len(reports) != 1 else ''} checked"
    counted = [f"{n} {_plural(severity, n)}" for severity, n in summary(reports).items() if n]
    silenced = sum(len(report.suppressed) for report in reports)
    return f"{files}: {', '.join(counted) or 'no findings'}" + (f" ({silenced} suppressed)" if silenced else "")


def as_json(reports: Sequence[Report]) -> str:
    """One JSON document for all files."""
    files = [{"file": r.document.path, "diagnostics": [_record(d) for d in r.diagnostics]} for r in reports]
    return json.dumps({"files": files, "summary": summary(reports)}, indent=1, ensure_ascii=False)


def github(reports: Iterable[Report]) -> str:
    """One workflow command a diagnostic; GitHub shows them beside the lines of a pull request."""
    return "\n".join(_command(diagnostic) for report in reports for diagnostic in report.diagnostics)


def _plural(severity: str, count: int) -> str:
    return severity if count == 1 or severity == "info" else severity + "s"


def _lines(report: Report, diagnostic: Diagnostic) -> Iterator[str]:
    colour = COLOURS[diagnostic.severity]
    head = bold(f"{diagnostic.severity}[{diagnostic.code}]", colour)
    yield f"{head}: {printable(diagnostic.message)} ({diagnostic.name})"
    gutter = " " * len(str(max([diagnostic.line, *(item.span.line for item in diagnostic.related)])))
    yield f"{gutter}--> {printable(diagnostic.file)}:{diagnostic.line}:{diagnostic.column}"
    yield f"{gutter} |"
    yield from _excerpt(report, diagnostic.span, len(gutter), "^", colour, "")
    for item in diagnostic.related:
        yield f"{gutter} ..."
        yield from _excerpt(report, item.span, len(gutter), "-", BLUE, item.label)
    yield f"{gutter} |"
    for label, said in (("help", diagnostic.help), ("source", diagnostic.source), ("docs", diagnostic.url)):
        if said:
            yield f"{gutter} = {label}: {printable(said)}"


def _excerpt(report: Report, span: Span, gutter: int, mark: str, colour: str, label: str) -> Iterator[str]:
    line = report.document.line(span.line)
    first = max(0, span.column - 1 - WIDTH // 2) if len(line) > WIDTH else 0  # a window around the place
    shown = printable(line[first : first + WIDTH])
    begin = span.column - 1 - first
    end = (span.end_column - 1 - first) if span.end_line == span.line else len(shown)
    before, marked = _columns(shown[:begin]), max(1, _columns(shown[begin:end]))
    yield f"{span.line:>{gutter}} | {shown}"
    yield f"{'':>{gutter}} | {' ' * before}{bold(mark * marked, colour)} {printable(label)}".rstrip()


def bold(text: str, colour: str) -> str:
    """The text in bold and in a colour, for a terminal."""
    return f"\x1b[{colour}m\x1b[1m{text}\x1b[0m"


def printable(text: str) -> str:
    """The text without characters that would steer a terminal; tabs become blanks."""
    return "".join(c if c.isprintable() else " " if c == "\t" else "\ufffd" for c in text)


def _columns(text: str) -> int:
    """Columns that the text takes on a terminal."""
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def _record(diagnostic: Diagnostic) -> dict[str, Any]:
    related = [{"label": item.label, "line": item.span.line, "column": item.span.column} for item in diagnostic.related]
    return {
        "code": diagnostic.code,
        "name": diagnostic.name,
        "severity": diagnostic.severity,
        "path": diagnostic.path,
        "line": diagnostic.line,
        "column": diagnostic.column,
        "end_line": diagnostic.end_line,
        "end_column": diagnostic.end_column,
        "message": diagnostic.message,
        "help": diagnostic.help,
        "url": diagnostic.url,
        "source": diagnostic.source,
        "related": related,
    }


def _command(diagnostic: Diagnostic) -> str:
    level = {"error": "error", "warning": "warning", "info": "notice"}[diagnostic.severity]
    fields = {
        "file": diagnostic.file,
        "line": diagnostic.line,
        "endLine": diagnostic.end_line,
        "col": diagnostic.column,
        "endColumn": diagnostic.end_column,
        "title": f"{diagnostic.code} {diagnostic.name}",
    }
    said = ",".join(f"{name}={_escape(str(value), ':,')}" for name, value in fields.items())
    message = f"{diagnostic.message}\n{diagnostic.help}".strip()
    return f"::{level} {said}::{_escape(message)}"


def _escape(text: str, further: str = "") -> str:
    for character in "%\r\n" + further:
        text = text.replace(character, f"%{ord(character):02X}")
    return text
