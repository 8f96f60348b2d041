"""Text editing of a spec: tools add lines, every byte that was there stays.

Nothing is ever dumped through a YAML library. The new text is read again before it is handed out: the old data must be
unchanged and the new part as meant, or the edit is refused and says why.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple

from speclint import document, emit
from speclint.diagnostic import pointer
from speclint.replace import FileBusy, rewrite

__all__ = ["ORDER", "EditRefused", "FileBusy", "add_entry", "replace_section", "rewrite"]

ORDER = ("lock", "approvals", "results")
BOM = b"\xef\xbb\xbf"
# Only these breaks end a line of YAML 1.2; str.splitlines knows more.
LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")


class EditRefused(Exception):
    """The file is in a shape that cannot be edited without damage; nothing was written."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class _Edit(NamedTuple):
    """Replace `text[start:end]` by `new`, whose lines end in `\\n` and are written in the file's own style."""

    start: int
    end: int
    new: str


def add_entry(source: bytes, section: str, entry: dict[str, Any]) -> bytes:
    """The file with `entry` as last item of the list `section` (approvals or results). Raises EditRefused."""
    read = _read(source)
    text, wanted = read.text, {**read.data, section: [*(read.data.get(section) or []), entry]}
    if section not in read.data:
        return _first_that_holds(source, text, _new(text, _keys(read), section, [entry]), wanted)
    if read.data[section] and not read.nodes[pointer(section)].block:
        what = "is written in brackets" if isinstance(read.data[section], list) else "is no list"
        raise EditRefused(f"`{section}` {what}", "write it as a block: one `- ` item below the other")
    if not read.data[section]:
        read = document.parse(_without_empty_value(text, section).encode("utf-8"), "")
    return _first_that_holds(source, read.text, _into(read.text, _keys(read), section, entry), wanted)


def replace_section(source: bytes, section: str, value: Any) -> bytes:
    """The file with the lines of `section` written anew, or added in their place. Raises EditRefused."""
    read = _read(source)
    keys, wanted = _keys(read), {**read.data, section: value}
    if section not in keys:
        return _first_that_holds(source, read.text, _new(read.text, keys, section, value), wanted)
    start, lines = keys[section], emit.section(section, value)
    edits = [_Edit(start, end, lines) for end in _ends(read.text, keys, section)]
    return _first_that_holds(source, read.text, edits, wanted)


def _read(source: bytes) -> document.Document:
    read = document.parse(source, "")
    if read.problems:
        problem = read.problems[0]
        raise EditRefused(f"line {problem.span.line}: {problem.message}", problem.help)
    if re.search(r"(?<![^\r\n])\.\.\.(?:\s|\Z)", read.text):
        raise EditRefused("the file ends with the marker `...`", "delete that line: nothing can be added after it")
    return read


def _keys(read: document.Document) -> dict[str, int]:
    """Where the line of each top-level key starts, as character index."""
    return {key: _line_start(read.text, read.nodes[pointer(key)].key[0]) for key in read.data}


def _line_start(text: str, at: int) -> int:
    return max(text.rfind("\n", 0, at), text.rfind("\r", 0, at)) + 1


def _without_empty_value(text: str, section: str) -> str:
    """`results: []` or `null`, as people write it to begin with, becomes `results:`; a comment beside it stays."""
    key = rf"""(?P<key>["']?{section}["']?[ \t]*:)"""
    return re.sub(rf"(?<![^\r\n]){key}[ \t]*(?:\[[ \t]*\]|null|~)(?=[ \t]*(?:[\r\n#]|\Z))", r"\g<key>", text)


def _into(text: str, keys: dict[str, int], section: str, entry: dict[str, Any]) -> Iterable[_Edit]:
    ends = _ends(text, keys, section)
    dash = re.compile(r"(?<=[\r\n])( *)-").search(text, keys[section], ends[-1])
    lines = emit.entry(entry, len(dash.group(1)) if dash else 2)
    return [_Edit(end, end, lines) for end in ends]


def _new(text: str, keys: dict[str, int], section: str, value: Any) -> Iterable[_Edit]:
    """A section that is not there yet goes before those that follow it in the file's order, else to the end.

    It is set apart by a blank line, unless that would become part of a block scalar that keeps its last line breaks.
    """
    later = [keys[key] for key in ORDER[ORDER.index(section) + 1 :] if key in keys]
    at = _above(text, min(later)) if later else len(text)
    lines = emit.section(section, value)
    return [_Edit(at, at, lines + "\n" if later else "\n" + lines), _Edit(at, at, lines)]


def _ends(text: str, keys: dict[str, int], section: str) -> list[int]:
    """Where a section may end, best first: before the blank lines that follow it, or after them if they are a block
    scalar's own. Comments at column 0 above the next key belong to that key."""
    following = min((start for start in keys.values() if start > keys[section]), default=len(text))
    return sorted({_above(text, following, blank=True), _above(text, following), following})


def _above(text: str, at: int, blank: bool = False) -> int:
    """Start of the comments at column 0 (and blank lines) that end at `at`."""
    lines = LINE.findall(text, 0, at)
    while lines and (lines[-1].startswith("#") or (blank and not lines[-1].strip())):
        at -= len(lines.pop())
    return at


def _first_that_holds(source: bytes, text: str, edits: Iterable[_Edit], wanted: dict[str, Any]) -> bytes:
    bom = BOM if source.startswith(BOM) else b""
    reason = "adding lines would change what the file says now"
    for edit in edits:
        edited = bom + _applied(text, edit).encode("utf-8")
        read = document.parse(edited, "")
        if not read.problems and _same(read.data, wanted):
            return edited
        reason = read.problems[0].message if read.problems else reason
    raise EditRefused(f"nothing was added: {reason}", _way_out(text))


def _applied(text: str, edit: _Edit) -> str:
    newline = _newline(text)
    head = text[: edit.start]
    joint = "" if head.endswith(("\n", "\r")) or not head else newline
    return head + joint + edit.new.replace("\n", newline) + text[edit.end :]


def _same(data: dict[str, Any], wanted: dict[str, Any]) -> bool:
    # repr tells 1 from 1.0 and from True, which == does not.
    return {key: repr(value) for key, value in data.items()} == {key: repr(value) for key, value in wanted.items()}


def _way_out(text: str) -> str:
    if text and not text.endswith(("\n", "\r")):
        return "end the file with a line break: without one, the last value would change"
    return "write `lock`, `approvals` and `results` in block style at column 0, results last"


def _newline(text: str) -> str:
    """The line break that most lines of the file end in."""
    counts = Counter(re.findall(r"\r\n|\r|\n", text))
    return counts.most_common(1)[0][0] if counts else "\n"
