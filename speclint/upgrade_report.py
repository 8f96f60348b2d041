"""What `speclint check --to RELEASE` prints."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from speclint.diagnostic import Severity
from speclint.document import Document
from speclint.releases import load, nearest
from speclint.spec import Spec
from speclint.upgrade import Change, destination, lines, would_mean_the_same

ORDER: tuple[Severity, ...] = ("error", "warning", "info")


class UnknownRelease(ValueError):
    """The release to go to is not known."""


def upgrade_report(documents: Sequence[Document], to: str, style: str) -> tuple[str, list[Severity | None]]:
    """The changes of all specs as `text` or `json`, and each spec's gravest one. Raises UnknownRelease."""
    if load(destination(to)) is None:
        raise UnknownRelease(_unknown(to))
    found = [(document, _changes(document, to)) for document in documents]
    worst = [min((change.severity for change in changes), key=ORDER.index, default=None) for _, changes in found]
    if style == "json":
        files = [{"file": d.path, "changes": [_record(d, change) for change in changes]} for d, changes in found]
        return json.dumps({"to": destination(to), "files": files}, indent=1, ensure_ascii=False), worst
    return "\n".join(line for document, changes in found for line in lines(document, to, changes)), worst


def _changes(document: Document, to: str) -> list[Change]:
    spec = Spec(document.data if isinstance(document.data, dict) else {})
    if load(spec.version or "") is None:
        return [Change("/pair/engine/version", _unknown(spec.version), "error", to)]
    return would_mean_the_same(spec, to)


def _unknown(version: str | None) -> str:
    if version is None:
        return "the spec names no release, so nothing can be compared"
    near = ", ".join(nearest(version))
    return f"release {version} is not known" + (f"; nearest: {near}" if near else "")


def _record(document: Document, change: Change) -> dict[str, Any]:
    span = document.span(change.path)
    return {
        "path": change.path,
        "line": span.line,
        "column": span.column,
        "severity": change.severity,
        "message": change.message,
        "help": change.help,
        "release": change.release,
        "source": change.source,
    }
