"""One file from bytes to diagnostics: read, schema, rules, suppressions, order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from speclint import document as documents
from speclint import shape, suppress
from speclint.diagnostic import Diagnostic, Finding, Related, Severity, Span
from speclint.document import Document, Problem
from speclint.releases import Release, load
from speclint.rules import Rule, rules
from speclint.spec import Spec

if TYPE_CHECKING:
    from speclint.history import Base


class Report(NamedTuple):
    """What checking one file gave; `suppressed` pairs each effective suppression with what it silences."""

    document: Document
    diagnostics: list[Diagnostic]
    suppressed: list[tuple[suppress.Suppression, Diagnostic]]


def check(path: Path, *, select: Iterable[str] = (), ignore: Iterable[str] = ()) -> list[Diagnostic]:
    """Diagnostics of a file, by line and column. `select` and `ignore` are codes or their beginnings, such as `SL3`.

    Raises OSError if the file cannot be read.
    """
    return inspect(documents.read(path), path.parent, select=select, ignore=ignore).diagnostics


def inspect(
    document: Document,
    folder: Path,
    *,
    select: Iterable[str] = (),
    ignore: Iterable[str] = (),
    today: date | None = None,
    base: Base | None = None,
) -> Report:
    """Check a document that was read already; `folder` is where its relative paths start.

    `base` is what a base branch knows of the file: without it nothing is said of its history.
    """
    active = _active(tuple(select), tuple(ignore))
    found = [diagnostic for diagnostic in _findings(document, folder, active, base) if diagnostic.code in active]
    applied = suppress.apply(document, found, today or datetime.now(UTC).date(), active)
    spec = Spec(document.data if isinstance(document.data, dict) else {}, folder, base)
    told = [*applied.about, *suppress.unapproved(spec, applied.in_force)]
    about = [_about(document, *item) for item in told if item[0] in active]
    ordered = sorted([*applied.diagnostics, *about], key=lambda item: (item.line, item.column, item.code, item.message))
    return Report(document, ordered, applied.in_force)


def _active(select: tuple[str, ...], ignore: tuple[str, ...]) -> frozenset[str]:
    """Codes to report: reading and integrity findings always, the rest as selected."""
    return frozenset(
        code
        for code in rules()
        if code.startswith(("SL0", "SL6")) or ((not select or code.startswith(select)) and not code.startswith(ignore or ("-",)))
    )


def _findings(document: Document, folder: Path, active: frozenset[str], base: Base | None) -> Iterator[Diagnostic]:
    yield from (_problem(document, problem) for problem in document.problems)
    if not isinstance(document.data, dict):
        return
    shapes = shape.check(document)
    yield from (diagnosed(document, rules()[item.code], item.finding) for item in shapes)
    # a value that may mean something else, or is of another type, is nothing to judge further
    doubtful = {problem.path for problem in document.problems}
    doubtful |= {item.finding.path for item in shapes if item.code in ("SL004", "SL103")}
    spec = Spec(document.data, folder, base)
    release = load(spec.version) if spec.version else None
    for rule in rules().values():
        if rule.code in active:
            yield from (item for item in _run(document, rule, spec, release) if item.path not in doubtful - {""})


MOST = 100  # findings of one rule in a file; more would be noise, and a hostile file could ask for thousands


def _run(document: Document, rule: Rule, spec: Spec, release: Release | None) -> Iterator[Diagnostic]:
    if rule.check is None or (rule.needs == "lock" and not spec.lock):
        return
    if rule.needs == "results" and not (spec.results or spec.approvals):
        return
    yield from (diagnosed(document, rule, finding) for finding in islice(rule.check(spec, release), MOST))


def diagnosed(document: Document, rule: Rule, finding: Finding) -> Diagnostic:
    """A finding with its place in the document."""
    span = document.span(finding.path, finding.on_key)
    related = tuple(Related(label, document.span(path)) for path, label in finding.related)
    severity = finding.severity or rule.severity
    return _made(
        document, rule, severity, finding.path, span, finding.message, finding.help, finding.source or rule.source, related
    )


def _problem(document: Document, problem: Problem) -> Diagnostic:
    related = tuple(Related(label, span) for span, label in problem.related)
    rule = rules()[problem.code]
    return _made(document, rule, rule.severity, problem.path, problem.span, problem.message, problem.help, "", related)


def _about(document: Document, code: str, span: Span, message: str, help: str) -> Diagnostic:
    rule = rules()[code]
    return _made(document, rule, rule.severity, "", span, message, help, "", ())


def _made(
    document: Document,
    rule: Rule,
    severity: Severity,
    path: str,
    span: Span,
    message: str,
    help: str,
    source: str,
    related: tuple[Related, ...],
) -> Diagnostic:
    place = (span.line, span.column, span.end_line, span.end_column)
    return Diagnostic(document.path, rule.code, rule.name, severity, path, *place, message, help, rule.url, source, related)
