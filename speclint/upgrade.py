"""Would a spec mean the same on another release? What turns on the way, and where."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import cast

from speclint.diagnostic import Severity
from speclint.document import Document
from speclint.meaning import METHOD, Meaning, meanings
from speclint.releases import Release, compare, known, load
from speclint.rules import rules
from speclint.spec import Spec

# The others look at files, signatures or results, which no release changes; SL427 repeats the defects.
FAMILIES = ("SL3", "SL4", "SL5")
NOT_ASKED = frozenset(("SL427",))
Subject = tuple[str, str]
"""What a statement is about: (`""`, words), (rule code, JSON Pointer) or (`defect`, its id)."""


@dataclass(frozen=True, slots=True)
class Change:
    """One thing that a spec would come to mean; `release` is the newer of the two releases between which it turned."""

    path: str
    message: str
    severity: Severity
    release: str
    source: str = ""
    help: str = ""


@dataclass(frozen=True, slots=True)
class _Statement:
    """What holds at one release; two are equal if they mean the same, however they are worded."""

    meaning: Meaning
    said: str = field(default="", compare=False)
    help: str = field(default="", compare=False)
    covered_by: str | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class _Turn:
    """A subject whose statement differs between the ends of the way, and the release of its last change."""

    subject: Subject
    before: _Statement | None
    after: _Statement | None
    release: str

    @property
    def path(self) -> str:
        statement = self.after or self.before
        return statement.meaning.path if statement else ""


def would_mean_the_same(spec: Spec, to: str) -> list[Change]:
    """What differs for a spec between its own release and `to` (`latest`: the newest known); empty if nothing does.

    Works in both directions. Raises KeyError with the release that is not known here.
    """
    way = _way(spec.version or "", destination(to))
    turns = _turns(spec, way)
    return [_change(turn, way[0].version) for turn in turns if not _is_said_elsewhere(turn, turns)]


def destination(to: str) -> str:
    """The release that `--to` names: `latest` is the newest one known."""
    return known()[-1] if to == "latest" else to


def lines(document: Document, to: str, changes: list[Change]) -> list[str]:
    """The changes as lines of text, in file order."""
    if not changes:
        return [f"{document.path}: means the same in vLLM {destination(to)}, as far as is recorded"]
    placed = [(document.span(change.path), change) for change in changes]
    placed.sort(key=lambda item: (item[0].line, item[0].column, item[1].message))
    return [
        f"{document.path}:{span.line}:{span.column}: {change.severity}: {change.message} (turned at {change.release})"
        + (f"\n  help: {change.help}" if change.help else "")
        for span, change in placed
    ]


def _way(own: str, to: str) -> list[Release]:
    """The releases from one to the other, both included, in the order of travel."""
    for version in (own, to):
        if load(version) is None:
            raise KeyError(version)
    between = [version for version in known() if compare(own, version) * compare(version, to) > 0]
    ordered = [own, *(between if compare(own, to) < 0 else between[::-1]), to]
    return [release for version in ordered if (release := load(version))]


def _turns(spec: Spec, way: list[Release]) -> list[_Turn]:
    before, after = _statements(spec, way[0]), _statements(spec, way[-1])
    turned = [subject for subject in {**before, **after} if before.get(subject) != after.get(subject)]
    # a default, runner or fate that only one end has is no change: its setting or method is not there at the other
    turned = [subject for subject in turned if subject[0] or (subject in before and subject in after)]
    if not turned:
        return []
    states = [before, *(_statements(spec, release) for release in way[1:-1]), after]
    return [_Turn(s, before.get(s), after.get(s), _last_step(way, [state.get(s) for state in states])) for s in turned]


def _last_step(way: list[Release], statements: list[_Statement | None]) -> str:
    """The newer release of the last step on the way at which the statement changed."""
    step = max(i for i in range(1, len(way)) if statements[i] != statements[i - 1])
    here, there = way[step - 1].version, way[step].version
    return here if compare(here, there) > 0 else there


def _statements(spec: Spec, release: Release) -> dict[Subject, _Statement]:
    there = _moved(spec, release.version)
    found = {("", subject): _Statement(meaning) for subject, meaning in meanings(there, release).items()}
    return {**found, **dict(_findings(there, release)), **dict(_defects(there, release))}


def _moved(spec: Spec, version: str) -> Spec:
    """The spec as if it were written for another release."""
    engine = {**spec.section("pair", "engine"), "version": version}
    return Spec({**spec.data, "pair": {**spec.section("pair"), "engine": engine}}, spec.folder)


def _findings(spec: Spec, release: Release) -> Iterator[tuple[Subject, _Statement]]:
    for rule in rules().values():
        asked = rule.code.startswith(FAMILIES) and rule.code not in NOT_ASKED
        if rule.check is None or not asked or (rule.needs == "lock" and not spec.lock):
            continue
        for finding in rule.check(spec, release):
            meaning = Meaning(finding.path, rule.code, finding.severity or rule.severity, finding.source)
            yield (rule.code, finding.path), _Statement(meaning, f"{rule.code} {finding.message}", finding.help)


def _defects(spec: Spec, release: Release) -> Iterator[tuple[Subject, _Statement]]:
    for defect in release.defects:
        if defect.applies(spec.data):
            meaning = Meaning(str(defect.when[0]["path"]), defect.id, cast(Severity, defect.severity), defect.upstream or "")
            said = f"known defect ({defect.condition}): {defect.effect}"
            yield ("defect", defect.id), _Statement(meaning, said, covered_by=defect.rule)


def _is_said_elsewhere(turn: _Turn, turns: list[_Turn]) -> bool:
    """Whether a rule's turn at the same step says it better: of the same defect, of the same value, or more gravely."""
    others = [t for t in turns if t.release == turn.release and t.subject[0].startswith("SL") and t is not turn]
    if turn.subject[0] == "defect":
        statement = turn.after or turn.before
        return any(statement is not None and t.subject[0] == statement.covered_by for t in others)
    alike = [t for t in others if t.path == turn.path]
    if turn.subject[0]:
        return turn.after is None and any(t.after and t.after.meaning.severity == "error" for t in alike)
    return turn.path != METHOD and bool(alike)


def _change(turn: _Turn, own: str) -> Change:
    before, after = turn.before, turn.after
    if after is None:
        return Change(turn.path, f"no more: {before.said if before else ''}", "info", turn.release)
    meaning = after.meaning
    message = after.said
    if before and not turn.subject[0]:
        message = f"{turn.subject[1]} {meaning.text}; in {own} it {before.meaning.text}"
    return Change(turn.path, message, meaning.severity, turn.release, meaning.source, after.help)
