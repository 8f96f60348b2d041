"""Suppressions in comments: `# speclint: ignore[SL409] reason (until 2027-01-31)`.

On the line of a finding or on a line of its own above it. The reason is mandatory, the last day optional; reading (SL0)
and integrity (SL6) findings cannot be suppressed.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from datetime import date
from itertools import chain, islice
from typing import Any, NamedTuple

from speclint.diagnostic import Diagnostic, Span
from speclint.document import Document
from speclint.entries import current_digest
from speclint.rules import rules
from speclint.spec import Spec

COMMENT = re.compile(r"(?:^|(?<=\s))#\s*speclint:\s*ignore\b(?:\[(?P<codes>[^\]\r\n]*)\])?(?P<rest>[^\r\n]*)", re.MULTILINE)
CONTENT = re.compile(r"^[^\S\r\n]*[^\s#]", re.MULTILINE)
MOST = 200  # suppressions that are heeded; findings under any others are shown
UNTIL = re.compile(r"\(until\s+(?P<day>[^)]*)\)\s*$")


class Suppression(NamedTuple):
    """One ignored code and the line it speaks of."""

    code: str
    line: int
    reason: str
    until: date | None
    span: Span
    fault: str = ""
    """Why it cannot be understood, if so."""

    def lapsed(self, today: date) -> bool:
        return self.until is not None and today > self.until

    def covers(self, diagnostic: Diagnostic) -> bool:
        rule = rules().get(self.code)
        return diagnostic.code == self.code and diagnostic.line == self.line and rule is not None and rule.suppressible


class Applied(NamedTuple):
    """What is left after suppression, what the suppressions themselves give rise to, and what each one silenced."""

    diagnostics: list[Diagnostic]
    about: list[tuple[str, Span, str, str]]
    """Code, place, message and help of findings about suppressions."""
    in_force: list[tuple[Suppression, Diagnostic]]


def read(document: Document) -> list[Suppression]:
    """The suppressions of a file, at most `MOST`; text that only looks like one inside a value is none."""
    matches = COMMENT.finditer(document.text)
    first = next(matches, None)
    if first is None:
        return []
    content = [document.place(found.end() - 1)[0] for found in CONTENT.finditer(document.text, first.start())]
    return list(islice((item for match in chain([first], matches) for item in _of(document, match, content)), MOST))


def apply(document: Document, diagnostics: list[Diagnostic], today: date, active: frozenset[str]) -> Applied:
    """Drop what is suppressed, and report suppressions that lack a reason, have lapsed, or silence nothing.

    `active` are the codes that were checked: a suppression of another one is not called unused.
    """
    about: list[tuple[str, Span, str, str]] = []
    in_force: list[tuple[Suppression, Diagnostic]] = []
    for item in read(document):
        fault = _fault(item, today)
        if fault:
            about.append(fault)
            continue
        hits = [diagnostic for diagnostic in diagnostics if item.covers(diagnostic)]
        in_force += [(item, hit) for hit in hits]
        if not hits and item.code in active:
            about.append(_unused(item))
    silenced = {id(hit) for _, hit in in_force}
    return Applied([item for item in diagnostics if id(item) not in silenced], about, in_force)


def unapproved(spec: Spec, in_force: list[tuple[Suppression, Diagnostic]]) -> list[tuple[str, Span, str, str]]:
    """What to say of suppressions that no approval of the spec as it stands knew (SL601); nothing once there are results.

    An approver signs the suppressions in force, which are comments and so outside the spec's digest.
    """
    current = current_digest(spec) if in_force and not spec.results else None
    approvals = [entry for _, entry in spec.approvals if current and entry.get("spec") == current]
    known = [(row.get("code"), row.get("path")) for entry in approvals for row in listed(entry.get("suppressions"))]
    help = "`specrun approve FILE --key KEY` approves it with the suppression"
    return [
        ("SL601", item.span, f"approved without ignore[{hit.code}] at {hit.path or '/'}", help)
        for item, hit in in_force
        if approvals and (hit.code, hit.path) not in known
    ]


def listed(rows: object) -> list[dict[str, Any]]:
    """The mappings of a list that may be malformed."""
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []


def _of(document: Document, match: re.Match[str], content: list[int]) -> Iterator[Suppression]:
    """Those of one comment; `content` are the lines that hold more than a comment."""
    begin, end = match.start(), match.end()
    before = bisect_right(document.scalars, (begin, len(document.text)))
    if before and begin < document.scalars[before - 1][1]:
        return  # scalars stand in the order of the file
    span = document.between(begin, end)
    line = span.line if document.line(span.line)[: span.column - 1].strip() else _next_line(content, span.line)
    rest = match["rest"].strip(" :-")
    found = UNTIL.search(rest)
    reason = UNTIL.sub("", rest).strip()
    until, fault = _day(found["day"] if found else None)
    codes = [code.strip() for code in (match["codes"] or "").split(",") if code.strip()]
    for code in codes:
        yield Suppression(code, line, reason, until, span, fault)
    if not codes:
        yield Suppression("", line, reason, until, span, "it names no rule")


def _next_line(content: list[int], line: int) -> int:
    """The next line that holds more than a comment."""
    after = bisect_right(content, line)
    return content[after] if after < len(content) else line


def _day(text: str | None) -> tuple[date | None, str]:
    if text is None:
        return None, ""
    try:
        return date.fromisoformat(text.strip()), ""
    except ValueError:
        return None, f"`{text.strip()}` is no day (write 2027-01-31)"


def _fault(item: Suppression, today: date) -> tuple[str, Span, str, str] | None:
    form = "write `# speclint: ignore[SL409] reason (until 2027-01-31)`; the day is optional"
    if item.fault:
        return "SL902", item.span, f"this suppression has no effect: {item.fault}", form
    rule = rules().get(item.code)
    if rule is None:
        return "SL901", item.span, f"there is no rule {item.code}", "`speclint rules` lists them"
    if not rule.suppressible:
        return "SL901", item.span, f"{item.code} cannot be suppressed", "resolve the finding itself"
    if not item.reason:
        return "SL902", item.span, f"the suppression of {item.code} gives no reason, so it has no effect", form
    if item.lapsed(today):
        message = f"the suppression of {item.code} ended on {item.until}: {item.reason}"
        return "SL903", item.span, message, "resolve the finding, or set a later day with a fresh reason"
    return None


def _unused(item: Suppression) -> tuple[str, Span, str, str]:
    return "SL901", item.span, f"{item.code} finds nothing on line {item.line}", "remove the comment"
