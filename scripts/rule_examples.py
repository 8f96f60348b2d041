"""For each rule a file that it finds fault with and one that it passes, with what speclint prints of them.

The snippets of a rule's manual page are laid over the good spec of the tests; where a snippet is only a part (`…`) or
needs a comment, a signature or a model, the rule's own test case stands in for it.
"""

from __future__ import annotations

import re
import sys
import tempfile
import textwrap
from collections.abc import Callable
from contextlib import nullcontext
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import click

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

import spec_cases  # noqa: E402
import trust_sample  # noqa: E402

from speclint import document, render  # noqa: E402
from speclint.canonical import entry_digest, section_digests, spec_digest  # noqa: E402
from speclint.emit import section  # noqa: E402
from speclint.history import Base, Past, entries  # noqa: E402
from speclint.lint import Report, inspect  # noqa: E402
from speclint.rules import Rule  # noqa: E402
from speclint.signature import NAMESPACES, Kind, statement  # noqa: E402
from specrun.sign import sign  # noqa: E402

PAIR = ("engine", "target", "speculative", "vocabulary", "engine_args", "env", "placement")
PROTOCOL = ("kind", "request", "sampling", "workloads", "load", "design", "criteria", "confidence", "sweep")
Data = dict[str, Any]


class Example(NamedTuple):
    """What speclint prints of one file, as far as one rule goes; `own`: the file is the manual page's snippet."""

    output: str
    fails: bool
    own: bool = True


def examples(rule: Rule) -> tuple[Example, Example]:
    """A failing and a passing example. Raises AssertionError if the rule's material does not hold."""
    pages = [manual_part(rule, name) for name in ("Fails", "Passes")]
    found = [_printed(rule, source) for source in map(_whole, pages)] if all(map(_is_whole, pages)) else []
    if not found or not found[0].fails or found[1].fails:
        make = _signed_examples if rule.code in CHANGES else _case_examples
        found = [example._replace(own=False) for example in make(rule)]
    failing, passing = found
    assert failing.fails and not passing.fails, f"{rule.code}: the examples do not show the rule"
    return failing, passing


def manual_part(rule: Rule, name: str) -> str:
    """The snippet under `Fails:` or `Passes:` of the manual page."""
    found = re.search(rf"^{name}:\n\n((?:    .*\n|\n)+)", rule.manual, re.MULTILINE)
    assert found, f"{rule.code} lacks {name}"
    return textwrap.dedent(found[1]).strip()


def _is_whole(snippet: str) -> bool:
    return "…" not in snippet


def _whole(snippet: str) -> bytes:
    """The snippet as a file: laid over the good spec, or alone where it is about the file as such."""
    read = document.parse(f"{snippet}\n".encode(), "")
    if read.problems or not isinstance(read.data, dict) or "schema" in read.data:
        return f"{snippet}\n".encode()
    data: Data = {}
    for key, value in read.data.items():
        holder = "pair" if key in PAIR else "protocol" if key in PROTOCOL else ""
        (data.setdefault(holder, {}) if holder else data)[key] = value
    return spec_cases.dumped(_laid_over(spec_cases.good(), data))


def _laid_over(under: Any, over: Any) -> Any:
    if isinstance(under, dict) and isinstance(over, dict):
        return {**under, **{key: _laid_over(under.get(key), value) for key, value in over.items()}}
    return over


def _printed(rule: Rule, source: bytes, folder: Path = spec_cases.RULES, base: Base | None = None) -> Example:
    report = inspect(document.parse(source, "my.spec.yaml"), folder, today=spec_cases.TODAY, base=base)
    return _shown(rule, report)


def _shown(rule: Rule, report: Report) -> Example:
    own = report._replace(diagnostics=[item for item in report.diagnostics if item.code == rule.code], suppressed=[])
    parts = filter(None, (click.unstyle(render.text(own)), render.summary_line([own])))
    return Example(_without_chance("\n\n".join(parts)), bool(own.diagnostics))


def _without_chance(text: str) -> str:
    """The text without what differs from run to run: fingerprints of fresh keys and the scratch folder."""
    text = re.sub(r"SHA256:[A-Za-z0-9+/]{43}", "SHA256:…", text)
    return re.sub(rf"{re.escape(tempfile.gettempdir())}/speclint-docs-\w+/((nobody|wide)/)?", "", text)


def _case_examples(rule: Rule) -> list[Example]:
    folder = spec_cases.RULES / rule.code
    bad = min(folder.glob("bad_*.yaml"))
    fine = min(folder.glob("ok_*.yaml"), default=None)
    with spec_cases.environment(bad):
        failing = _printed(rule, spec_cases.case_source(bad), folder)
    with spec_cases.environment(fine) if fine else nullcontext():
        source = spec_cases.case_source(fine) if fine else spec_cases.dumped(spec_cases.good())
        return [failing, _printed(rule, source, folder)]


def _signed_examples(rule: Rule) -> list[Example]:
    folder, data = _signed()
    changed = document.parse(_text(data), "").data  # a copy
    CHANGES[rule.code](changed)
    if rule.code == "SL606":
        return [_printed(rule, _text(now), folder, _base(data, now)) for now in (changed, data)]
    if rule.code == "SL615":
        return [_printed(rule, _text(data), folder / "wide"), _printed(rule, _text(data), folder)]
    if rule.code == "SL603":
        return [_printed(rule, _text(changed), folder / "nobody"), _printed(rule, _text(data), folder)]
    return [_printed(rule, _text(changed), folder), _printed(rule, _text(data), folder)]


@cache
def _signed() -> tuple[Path, Data]:
    """A folder with trust in one key, and an approved spec with two results signed by it."""
    folder = Path(tempfile.mkdtemp(prefix="speclint-docs-"))
    key = trust_sample.make_key(folder, "alice")
    trust_sample.write_trust(folder, alice=key)
    (folder / "nobody").mkdir()
    trust_sample.write_trust(folder / "nobody", bob=trust_sample.make_key(folder, "bob"))
    (folder / "wide").mkdir()
    trust_sample.write_trust(folder / "wide")
    (folder / "wide" / "allowed_signers").write_text(f"*@example.com {trust_sample.public(key)}\n")
    spec: Data = document.parse(trust_sample.SPEC.encode(), "").data

    def signed(kind: Kind, entry: Data) -> Data:
        return entry | {"signature": sign(statement(kind, spec["name"], entry["spec"], entry), key, NAMESPACES[kind])}

    approval = signed("approval", {
        "id": "a1", "approver": trust_sample.ALICE, "time": "2026-11-29T10:00:00Z", "spec": spec_digest(spec),
        "sections": section_digests(spec), "suppressions": [], "results_known": [],
    })  # fmt: skip
    first = signed("result", trust_sample.result(spec, "r1", approvals=[entry_digest(approval)]))
    second = signed("result", trust_sample.result(spec, "r2", approvals=[entry_digest(approval)], previous=[entry_digest(first)]))
    return folder, spec | {"approvals": [approval], "results": [first, second]}


def _base(data: Data, now: Data) -> Base:
    """What a base branch that holds all of the data knows of a file that holds what it holds now."""
    held, folder = tuple(entries(data)), _signed()[0]
    past = Past("my.spec.yaml", "5d6e7f8", held, {}, data)
    known, ref = frozenset(entry.signed for entry in held), "origin/main (1a2b3c4)"
    return Base("my.spec.yaml", ref, folder, folder, tuple(entries(now)), (past,), (), known, datetime(2026, 12, 1, tzinfo=UTC))


def _text(data: Data) -> bytes:
    """The file as the tools write it."""
    entries = "".join(f"\n{section(key, data[key])}" for key in ("approvals", "results"))
    spec = {key: value for key, value in data.items() if key not in ("approvals", "results")}
    return spec_cases.dumped(spec) + entries.encode()


def _of_another(data: Data) -> None:
    data["pair"]["speculative"]["num_speculative_tokens"] = 5
    data["protocol"]["load"]["requests"] = 128


CHANGES: dict[str, Callable[[Data], Any]] = {
    "SL601": lambda data: data.update(approvals=[], results=[]),
    "SL602": lambda data: data["results"][1]["scope"].pop(),
    "SL603": lambda data: None,
    "SL604": _of_another,
    "SL605": lambda data: data["results"].pop(0),
    "SL606": lambda data: data["results"].pop(),
    "SL608": lambda data: data["results"][1]["verdicts"][0].update(verdict="not_met"),
    "SL610": lambda data: data["results"][1]["verdicts"][0]["cells"][0].update(value=0.2),
    "SL611": lambda data: data["results"][1]["established"].update(checks=[]),
    "SL612": lambda data: data["results"][1].update(approvals=[]),
    "SL613": lambda data: _approved_late(data),
    "SL614": lambda data: data["protocol"]["criteria"][0].update(at_most=0.95),
    "SL615": lambda data: None,
}
"""What happens to the signed file before the failing example is printed."""


def _approved_late(data: Data) -> None:
    late = data["approvals"][0] | {"id": "late", "time": "2026-11-30T10:30:00Z"}
    data["approvals"].append(late)
    data["results"][1]["approvals"] = [entry_digest(late)]
