"""Criteria as JUnit XML, for CI systems that show test results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from xml.etree import ElementTree

from specrun.oracle import measurement
from specrun.report import tables
from specrun.report.html import HIDDEN
from specrun.report.json_form import criteria
from specrun.report.tables import Entry
from specrun.scope import COST_MODEL

Spec = Mapping[str, Any]


def junit(spec: Spec, entry: Entry) -> str:
    """One test case per criterion: met passes, not met fails, undecided is skipped, of a pair not established it is an error."""
    cases = [_case(spec, entry, row) for row in criteria(spec, entry)]
    found = [kind for case in cases for kind in (child.tag for child in case)]
    counts = {
        "tests": str(len(cases)),
        "failures": str(found.count("failure")),
        "errors": str(found.count("error")),
        "skipped": str(found.count("skipped")),
        "time": "0",
    }
    whole = {name: count for name, count in counts.items() if name != "skipped"}  # the common schema has it one level down only
    suites = ElementTree.Element("testsuites", {"name": "specrun", **whole})
    head = {"name": visible(spec["name"]), "timestamp": entry["ended"].removesuffix("Z")}
    suite = ElementTree.SubElement(suites, "testsuite", head | counts)
    properties = ElementTree.SubElement(suite, "properties")
    told = {"result": entry["id"], "spec": entry["spec"], "outcome": tables.outcome(entry)}
    for name, value in (told | ({} if measurement(spec) else {"cost_model": COST_MODEL})).items():
        ElementTree.SubElement(properties, "property", {"name": name, "value": visible(value)})
    suite.extend(cases)
    ElementTree.indent(suites)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(suites, encoding="unicode") + "\n"


def _case(spec: Spec, entry: Entry, row: Mapping[str, Any]) -> ElementTree.Element:
    case = ElementTree.Element("testcase", {"classname": visible(spec["name"]), "name": row["id"], "time": "0"})
    asked = tables.asks({key: value for key, value in row.items() if value is not None})
    if row["verdict"] is None:
        failed = "; ".join(f"{c['check']}: {c['detail']}" for c in entry["established"]["checks"] if c["outcome"] == "failed")
        _say(case, "error", "the pair was not established, so nothing is judged", f"{asked}\n{failed}", "not_established")
    elif row["verdict"] == "not_met":
        _say(case, "failure", f"{asked} is not met", _told(row), "not_met")
    elif row["verdict"] != "met":
        _say(case, "skipped", f"{tables.WORDS[row['verdict']]}: {asked}", _told(row))
    else:
        ElementTree.SubElement(case, "system-out").text = visible(f"{asked}\n{_told(row)}")
    return case


def _say(case: ElementTree.Element, tag: str, message: str, text: str, kind: str | None = None) -> None:
    told = ElementTree.SubElement(case, tag, {"message": visible(message), **({"type": kind} if kind else {})})
    told.text = visible(text)


def _told(row: Mapping[str, Any]) -> str:
    """Each cell with its interval, and why."""
    cells = [
        f"{tables.cell_name(c)}: {str(tables.interval(c)) or 'no value'}: {tables.WORDS[c['verdict']]}"
        + (f" ({c['reason']})" if c.get("reason") else "")
        for c in row["cells"]
    ]
    return "\n".join([*cells, *([row["reason"]] if row["reason"] else [])])


def visible(text: str) -> str:
    """Text without characters that XML 1.0 forbids or that hide others."""
    return HIDDEN.sub("\N{REPLACEMENT CHARACTER}", text)
