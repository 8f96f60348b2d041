"""Diagnostics as SARIF 2.1.0, for code scanning."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from speclint import __version__
from speclint.diagnostic import Diagnostic, Span
from speclint.lint import Report
from speclint.rules import Rule, rules

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
LEVELS = {"error": "error", "warning": "warning", "info": "note"}


def sarif(reports: Sequence[Report]) -> str:
    """One SARIF log with one run; columns count code points, and the rules it names carry their manual page."""
    found = [diagnostic for report in reports for diagnostic in report.diagnostics]
    named = sorted({diagnostic.code for diagnostic in found})
    driver = {"name": "speclint", "version": __version__, "rules": [_rule(rules()[code]) for code in named]}
    results = [_result(diagnostic, named.index(diagnostic.code)) for diagnostic in found]
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=1, ensure_ascii=False)


def _rule(rule: Rule) -> dict[str, Any]:
    return {
        "id": rule.code,
        "name": rule.name,
        "shortDescription": {"text": rule.summary},
        "help": {"text": rule.manual},
        "defaultConfiguration": {"level": LEVELS[rule.severity]},
    }


def _result(diagnostic: Diagnostic, index: int) -> dict[str, Any]:
    related = [_location(diagnostic.file, item.span) | {"message": {"text": item.label}} for item in diagnostic.related]
    result = {
        "ruleId": diagnostic.code,
        "ruleIndex": index,
        "level": LEVELS[diagnostic.severity],
        "message": {"text": f"{diagnostic.message}\n{diagnostic.help}".strip()},
        "locations": [_location(diagnostic.file, diagnostic.span)],
        "properties": {"path": diagnostic.path, "source": diagnostic.source},
    }
    return result | ({"relatedLocations": related} if related else {})


def _location(file: str, span: Span) -> dict[str, Any]:
    region = {"startLine": span.line, "startColumn": span.column, "endLine": span.end_line, "endColumn": span.end_column}
    return {"physicalLocation": {"artifactLocation": {"uri": _uri(file)}, "region": region}}


def _uri(file: str) -> str:
    path = Path(file)
    return path.as_uri() if path.is_absolute() else quote(path.as_posix())
