"""Adding a signed entry to the spec file: the old bytes stay, and the file is the old one or the new one at any time."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from speclint import document, edit, lint
from speclint.canonical import NotCanonical, spec_digest
from speclint.emit import entry as render_entry
from specrun.errors import NotWritten

__all__ = ["Section", "append_entry", "appended", "render_entry"]

Section = Literal["approvals", "results"]
# New findings that would mean the entry damages the file. Whether its signer is trusted is for the reader to judge.
DAMAGE = ("SL0", "SL1", "SL602", "SL604", "SL605", "SL607")


def append_entry(path: Path, section: Section, entry: dict[str, Any]) -> None:
    """Append a signed entry to the file, fsynced. Raises NotWritten with the reason; the file is then as it was."""
    try:
        edit.rewrite(path, lambda source: appended(source, path, section, entry))
    except OSError as error:
        raise NotWritten(f"{path} was not changed: {error}", "the run is kept; try `specrun append` again") from error


def appended(source: bytes, path: Path, section: Section, entry: dict[str, Any]) -> bytes:
    """The file's bytes with the entry in it, or NotWritten: also to ask before a run whether its result will fit."""
    try:
        _check(document.parse(source, str(path)).data, section, entry)
        new = edit.add_entry(source, section, entry)
    except edit.EditRefused as error:
        raise NotWritten(f"{path}: {error.message}", error.hint) from error
    added = _damage(new, path) - _damage(source, path)
    if added:
        raise NotWritten(f"{path} was not changed, the entry would not pass: {'; '.join(sorted(added))}")
    return new


def _check(data: Any, section: Section, entry: dict[str, Any]) -> None:
    if not isinstance(data, dict):
        raise edit.EditRefused("the file holds no spec", "`speclint check` says what is wrong with it")
    now = _digest(data)
    if entry["spec"] != now:
        raise edit.EditRefused(
            f"the entry is for spec {entry['spec'][:19]}…, and this file is now {now[:19]}…",
            "the spec changed meanwhile: restore it (git diff), or keep the change as a spec of its own",
        )
    if entry["id"] in [other.get("id") for other in data.get(section) or [] if isinstance(other, dict)]:
        raise edit.EditRefused(f"{entry['id']} stands in {section} already")


def _digest(data: dict[str, Any]) -> str:
    try:
        return spec_digest(data)
    except NotCanonical as error:
        raise edit.EditRefused(f"the spec has no digest: {error}", "`speclint check` says what is wrong with it") from error


def _damage(source: bytes, path: Path) -> set[str]:
    found = lint.inspect(document.parse(source, str(path)), path.parent).diagnostics
    return {f"{item.code} {item.message}" for item in found if item.severity == "error" and item.code.startswith(DAMAGE)}
