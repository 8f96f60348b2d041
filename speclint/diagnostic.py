"""What a rule says (`Finding`) and what a reader sees (`Diagnostic`).

Named tuples, as a check makes many of them and starts in a fraction of the time that dataclasses take to be defined.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

Severity = Literal["error", "warning", "info"]


class Span(NamedTuple):
    """A piece of a file; lines and columns count from 1, the end column is exclusive."""

    line: int
    column: int
    end_line: int
    end_column: int


class Finding(NamedTuple):
    """One thing a rule found, at a JSON Pointer; the document knows where that is."""

    path: str
    message: str
    help: str = ""
    source: str = ""
    on_key: bool = False
    related: tuple[tuple[str, str], ...] = ()
    """Other places that matter: (JSON Pointer, label)."""
    severity: Severity | None = None
    """Overrides the rule's own severity."""


class Related(NamedTuple):
    """A second place that a diagnostic points to."""

    label: str
    span: Span


class Diagnostic(NamedTuple):
    """A finding with its rule, its file and its place."""

    file: str
    code: str
    name: str
    severity: Severity
    path: str
    line: int
    column: int
    end_line: int
    end_column: int
    message: str
    help: str = ""
    url: str = ""
    source: str = ""
    related: tuple[Related, ...] = ()

    @property
    def span(self) -> Span:
        return Span(self.line, self.column, self.end_line, self.end_column)


def pointer(*keys: str | int) -> str:
    """JSON Pointer (RFC 6901) of the keys."""
    return "".join("/" + str(key).replace("~", "~0").replace("/", "~1") for key in keys)
