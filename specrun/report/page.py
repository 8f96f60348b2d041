"""A result as one HTML page that loads nothing and runs nothing.

Verdicts first, then figures, then why and what it does not show.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from specrun.report import tables
from specrun.report.acceptance import along_the_answer, by_draft_position, foretold
from specrun.report.distributions import distributions
from specrun.report.figures import break_even, forest, memory, operating_curve
from specrun.report.html import Element, Node, document, el
from specrun.report.html_tables import bullets, folded, grid
from specrun.report.records import Recorded
from specrun.report.style import STYLE
from specrun.report.sweep_figure import sweep_figure
from specrun.report.tables import Entry, Table
from specrun.report.text import ANSWERS
from specrun.report.timeline import time_line

Spec = Mapping[str, Any]
ABSENT = "The records of this run are not at hand, and the entry does not keep this. Name the run folder with --records."


def page(spec: Spec, entry: Entry, recorded: Recorded | None = None) -> str:
    """The whole page. `recorded`: what the run's records add; without it the figures are those of the entry, which is said."""
    parts = list(sections(spec, entry, recorded))
    title = f"{spec['name']}: result {entry['id']}"
    return document(title, STYLE, [_skip(), head(spec, entry), contents(parts), el("main", parts, id="main"), foot()])


def sections(spec: Spec, entry: Entry, recorded: Recorded | None) -> Iterator[Element]:
    """Every section in its order."""
    yield section("verdicts", "Verdicts", _verdicts(spec, entry))
    yield section("established", "Was the pair established?", _established(entry))
    yield section("ratios", "Pair against target", forest(spec, entry))
    if entry.get("sweep"):
        yield section("sweep", "Sweep of K", sweep_figure(spec, entry))
    yield section("arms", "Both arms", _arms(spec, entry))
    yield section("distributions", "How long requests took", distributions(entry, recorded))
    yield section("acceptance", "What was accepted", _acceptance(spec, entry, recorded))
    yield section("break-even", "Break-even length", break_even(spec, entry))
    yield section("operating-curve", "Throughput against latency", operating_curve(entry))
    yield section("memory", "Memory", memory(entry))
    yield section("time-line", "The run in time", (recorded and time_line(recorded)) or el("p", ABSENT))
    yield section("why", "Why", bullets(tables.finding_lines(entry)) if entry["diagnosis"] else el("p", "No finding."))
    yield section("scope", "What it does and does not show", bullets(entry["scope"]))
    yield section("ran", "What ran", *_ran(entry))


def section(name: str, title: str, *inside: Node) -> Element:
    """A part with its heading; `name` is its address on the page."""
    return el("section", el("h2", title, id=f"{name}-title"), inside, id=name, aria_labelledby=f"{name}-title")


def _skip() -> Element:
    return el("a", "Skip to the verdicts", href="#verdicts", class_="skip")


def head(spec: Spec, entry: Entry) -> Element:
    """Name, outcome in one sentence, and who vouches for it."""
    outcome = tables.outcome(entry)
    counts = f": {tables.tallied(entry)}" if entry["verdicts"] else ""
    speculative = spec["pair"]["speculative"]
    draft = f", draft {speculative['model']}" if "model" in speculative else ""
    k = speculative.get("num_speculative_tokens")
    pair = f"{spec['pair']['target']['model']}, method {speculative['method']}{draft}, K = {k}"
    said = f"{ANSWERS[outcome].capitalize()}{counts}."
    return el(
        "header",
        el("p", "Speculative decoding pair, result", class_="kicker"),
        el("h1", spec["name"]),
        el("p", said, class_=f"outcome {outcome.replace('_', '-')}"),
        el("p", pair),
        el("ul", [el("li", line) for line in (*tables.facts(spec, entry), f"result {entry['id']}")], class_="facts"),
    )


def contents(parts: Iterable[Element]) -> Element:
    """Links to the sections."""
    links = [el("li", el("a", _title(part), href=f"#{_name(part)}")) for part in parts]
    return el("nav", el("ul", links), aria_label="Sections")


def _name(part: Element) -> str:
    return str(dict(part.attributes)["id"])


def _title(part: Element) -> str:
    heading = part.children[0]
    return str(heading.children[0]) if isinstance(heading, Element) else heading


def _verdicts(spec: Spec, entry: Entry) -> Element:
    if not entry["verdicts"]:
        return el("p", "None: the pair was not established, so no criterion is judged. Nothing here says that it is slow.")
    table = grid(tables.verdict_table(spec, entry), "Criteria that were fixed before the run", "verdict-table")
    return el("div", table, folded("Reasons, and what the blocks decide", bullets(tables.verdict_notes(entry))))


def _arms(spec: Spec, entry: Entry) -> Element:
    table = tables.arm_table(spec, entry)
    return (
        grid(table, "Both arms, medians over blocks; a ratio is the mean of the blocks' own", "arm-figures")
        if table.rows
        else el("p", "No figure has a value.")
    )


def _established(entry: Entry) -> Element:
    checks = grid(tables.check_table(entry), "Checks", "checks")
    if entry["established"]["verdict"] == "established":
        return el("div", el("p", tables.established(entry)), folded("The checks", checks))
    return el("div", el("p", tables.established(entry)), checks)


def _acceptance(spec: Spec, entry: Entry, recorded: Recorded | None) -> Element:
    drawn = [] if recorded is None else [by_draft_position(entry, recorded), along_the_answer(spec, recorded)]
    parts = [part for part in (foretold(entry), *drawn) if part]
    if recorded is None:
        parts += [el("p", ABSENT), el("p", "Acceptance rates per cell stand under “Both arms”.")]
    return el("div", parts or el("p", "The records show no draft."))


def _ran(entry: Entry) -> Iterator[Node]:
    for arm, facts in entry["arms"].items():
        yield el("p", f"{arm}:")
        yield el("pre", " ".join(facts["command"]), tabindex="0")
    if entry["config_diff"]:
        rows = [[row["path"], str(row["target"]), str(row["pair"]), row["kind"]] for row in entry["config_diff"]]
        yield grid(Table(["setting", "target", "pair", "kind"], rows), "Where the arms' configurations differ")
    kept = entry["records"]
    yield el(
        "p", f"Raw records: {kept['requests']:,} requests in {kept['files']} files, manifest ", el("code", kept["manifest"]), "."
    )
    yield el("p", "Spec ", el("code", entry["spec"]), ".")


def foot() -> Element:
    """How to check what the page says."""
    return el(
        "footer",
        el("p", "Every figure follows from the signed entry or, where it says so, from the records that the entry names."),
        el("p", "Whether they are what was signed, `specrun verify --records` says; this page does not."),
    )
