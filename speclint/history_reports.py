"""What the history says of files that nobody named: other specs, specs that are gone, and policy files."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from speclint.config import load_config
from speclint.diagnostic import Diagnostic, Finding
from speclint.document import Document
from speclint.history import printable
from speclint.history_check import History, is_spec_of
from speclint.history_policy import Change
from speclint.lint import Report, diagnosed, inspect
from speclint.positions import LINE_END
from speclint.rules import rules
from speclint.rules.sl606_history_rewritten import names
from speclint.rules.sl615_signer_line_too_wide import HELP
from speclint.signers import Signer, is_wild, too_wide

CODE, WIDE = "SL606", "SL615"


def whole(history: History, reports: list[Report], checked: Iterable[Path]) -> list[Report]:
    """The reports on the files that were checked, with what the history says of all others of the repository."""
    done = {history.path(file) for file in checked}
    others = [report for path in sorted(history.here.keys() - done) if (report := _other(history, path))]
    told = [*reports, *others, *_gone(history), *_unreadable(history)]
    return [*told, *_policy(history, _touched(history, told))]


def _touched(history: History, told: list[Report]) -> bool:
    """Whether the change adds, edits or removes entries."""
    rewritten = any(item.code == CODE and item.severity == "error" for report in told for item in report.diagnostics)
    return rewritten or any(history.new(path) for path in history.here)


def _other(history: History, path: str) -> Report | None:
    """What is wrong with the entries of a file that nobody named; nothing if the base's configuration leaves it out."""
    stand_in = history.copy / path
    if load_config(stand_in).excludes(stand_in):
        return None
    read, base = _shown(history, history.here[path], path), history.base_of(path)
    if not isinstance(read.data, dict):
        lost = [entry for past in base.past for entry in past.entries]
        message = f"it cannot be read ({read.problems[0].message}), so {names(lost)} cannot be found in it"
        return _report(read, Finding("", message, "make it readable again")) if lost else None
    found = inspect(read, (history.compared.top / path).parent, select=["SL1", CODE], base=base).diagnostics
    touched = path not in history.untouched and (base.past or history.new(path))
    about = ("SL0", "SL1", "SL6") if touched else (CODE,)
    kept = [item for item in found if item.code.startswith(about) and item.severity != "info"]
    return Report(read, kept, []) if kept else None


def _gone(history: History) -> Iterator[Report]:
    """Files whose entries are nowhere."""
    for past, home in zip(history.past, history.homes, strict=True):
        if not home:
            like = next((path for path, read in history.here.items() if is_spec_of(read, past)), "")
            hint = f"; {like} looks like its new name" if like else ""
            message = f"{past.shown} is gone, and with it {names(list(past.entries))}{hint}"
            back = f"bring it back: {past.brought_back_to(past.file)}"
            yield _report(_shown(history, _text("", b""), past.file), Finding("", message, back))


def _unreadable(history: History) -> Iterator[Report]:
    for path, why in history.unreadable.items():
        message = f"in the merge base it cannot be read ({why}), so nothing is known of entries it had there"
        read = history.here.get(path) or _text("", b"")
        yield _report(_shown(history, read, path), Finding("", message, severity="warning"))


def _policy(history: History, touched: bool) -> Iterator[Report]:
    """What the change does to who may sign and to what is checked: an error if it touches entries as well."""
    for change in history.changes:
        read = _shown(history, _text("", change.content), change.path)
        lines = [line for path, line in history.added if path == change.path and too_wide(line)]
        found = [_policy_finding(history, change, touched), *map(_too_wide, lines)]
        places = [change.line, *(line.line for line in lines)]
        codes = [CODE, *(WIDE for _ in lines)]
        yield Report(read, [_at(read, *item) for item in zip(codes, found, places, strict=True)], [])


def _policy_finding(history: History, change: Change, touched: bool) -> Finding:
    ref = history.compared.shown
    if touched:
        help = f"judged by the policy of {ref}; land who may sign and what is checked first, in a change of its own"
        return Finding("", f"policy changes together with approvals or results: {change.said}", help)
    help = f"it counts once it is in {ref.split()[0]}; is every name meant?"
    return Finding("", f"policy changes: {change.said}", help, severity="warning")


def _too_wide(line: Signer) -> Finding:
    return Finding("", too_wide(line), HELP, severity="error" if is_wild(line) else "warning")


def _at(read: Document, code: str, finding: Finding, line: int) -> Diagnostic:
    width = len(read.line(line))
    return diagnosed(read, rules()[code], finding)._replace(line=line, column=1, end_line=line, end_column=width + 1)


def _report(read: Document, finding: Finding) -> Report:
    return Report(read, [diagnosed(read, rules()[CODE], finding)], [])


def _shown(history: History, read: Document, path: str) -> Document:
    """The document under the path that the user would write."""
    return read._replace(path=printable(os.path.relpath(history.compared.top / path)))


def _text(path: str, source: bytes) -> Document:
    """A file that is no YAML, to be shown."""
    text = source.decode("utf-8", "replace")
    return Document(path, source, text, None, [], {}, [], [0, *(match.end() for match in LINE_END.finditer(text))])
