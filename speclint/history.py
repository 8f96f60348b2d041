"""What a base branch knows of one spec file: who may sign, and which approvals and results must still stand in it.

Pure data and functions; `history_check` reads them from git.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from speclint.canonical import NotCanonical, entry_digest
from speclint.diagnostic import pointer
from speclint.scalar import short

if TYPE_CHECKING:
    from speclint.spec import Spec

SECTIONS = ("approvals", "results")
ABSENT: Any = object()
"""Stands for a value that is not there."""


class Entry(NamedTuple):
    """An approval or result as it stands, or stood, in a file."""

    section: str
    place: int
    digest: str
    value: dict[str, Any]

    @property
    def name(self) -> str:
        """Such as `result r1`."""
        return f"{self.section[:-1]} {self.value.get('id', self.digest[:19])}"

    @property
    def signed(self) -> tuple[str, str]:
        """What tells it from the same entry under another signature."""
        return self.digest, str(self.value.get("signature"))


class Past(NamedTuple):
    """The entries of one file of the merge base, in its order; `elsewhere` says in which other files they stand now."""

    file: str
    commit: str
    entries: tuple[Entry, ...]
    elsewhere: dict[str, tuple[str, ...]]
    """Digest to paths."""
    data: dict[str, Any]
    """All that the file said."""

    @property
    def shown(self) -> str:
        return f"{printable(self.file)} at {self.commit[:7]}"

    def brought_back_to(self, file: str) -> str:
        """The command, for any folder of the repository, that brings the entries back to the file that continues this one."""
        import shlex  # on use: most checks have no base

        if file == self.file:
            return f"`{shlex.join(['git', 'checkout', self.commit[:7], '--', f':/{printable(file)}'])}`"
        return f"`{shlex.join(['git', 'show', f'{self.commit[:7]}:{printable(self.file)}'])}`"


class Difference(NamedTuple):
    """A value that is another than it was."""

    at: tuple[str | int, ...]
    was: Any
    now: Any

    def in_words(self, place: str) -> str:
        """Such as `/started was "2026-11-30", is "2026-12-01"`; `place` names it."""
        return f"{place} was {_shown(self.was)}, is {_shown(self.now)}"


class Base(NamedTuple):
    """What the base branch says of one spec file."""

    file: str
    """Path of the spec from the top of the repository."""
    ref: str
    """The ref and its commit, as they are shown."""
    policy: Path
    """Where its speclint.toml is looked up from: the spec's folder in a copy of the base's policy files."""
    copy: Path
    """The top of that copy."""
    own: tuple[Entry, ...]
    """The entries of the spec as it stands here."""
    past: tuple[Past, ...]
    """What this file continues."""
    taken: tuple[Past, ...]
    """What this file, new or fuller than it was, took over in part while another file continues it."""
    known: frozenset[tuple[str, str]]
    """Digest and signature of every entry of the merge base."""
    now: datetime

    def in_words(self, text: str) -> str:
        """The text with the copy's paths as paths of the base."""
        return text.replace(f"{self.copy}/", f"{self.ref.partition(' ')[0]}:")


def printable(path: str) -> str:
    """A path whose bytes may be no UTF-8, as text that can be."""
    return path.encode("utf-8", "replace").decode()


def differing(was: Any, now: Any, at: tuple[str | int, ...] = ()) -> Iterator[Difference]:
    """The leaves that differ, in the order of what was; 1 and 1.0 are the same, as they are to a signature."""
    if isinstance(was, dict) and isinstance(now, dict):
        for key in [*was, *(key for key in now if key not in was)]:
            yield from differing(was.get(key, ABSENT), now.get(key, ABSENT), (*at, key))
    elif isinstance(was, list) and isinstance(now, list) and len(was) == len(now):
        for index, pair in enumerate(zip(was, now, strict=True)):
            yield from differing(*pair, (*at, index))
    elif was != now or isinstance(was, bool) is not isinstance(now, bool):
        yield Difference(at, was, now)


def _shown(value: Any) -> str:
    return "absent" if value is ABSENT else short(json.dumps(value, ensure_ascii=False))


def few(differences: list[Difference]) -> str:
    """The first of the differences in words, and how many more there are."""
    first, more = differences[0], len(differences) - 1
    return first.in_words(pointer(*first.at)) + (f", and {more} more value{'s' if more > 1 else ''}" if more else "")


def entries(data: Any) -> Iterator[Entry]:
    """The approvals and results of a spec that can be digested, whatever else is wrong with it."""
    for section in SECTIONS:
        rows = data.get(section) if isinstance(data, dict) else None
        for index, row in enumerate(rows if isinstance(rows, list) else []):
            if isinstance(row, dict):
                try:
                    yield Entry(section, index, entry_digest(row), row)
                except NotCanonical:
                    continue


def missing(base: Base, past: Past) -> list[Entry]:
    """Entries of the past that no longer stand in the spec as they were."""
    there = {(entry.section, entry.digest) for entry in base.own}
    return [entry for entry in past.entries if (entry.section, entry.digest) not in there]


def lost(spec: Spec) -> set[str]:
    """Digests of entries that stood in the base and no longer do as they were: SL606 tells of each, and no rule again."""
    return {entry.digest for past in spec.base.past for entry in missing(spec.base, past)} if spec.base else set()


def edited(spec: Spec) -> dict[tuple[str, int], tuple[Entry, Past]]:
    """Section and index of each entry that is another state of one in the past, with what it was."""
    if spec.base is None:
        return {}
    old = {entry.digest for past in spec.base.past for entry in past.entries}
    by_id = {(now.section, str(now.value.get("id"))): now for now in spec.base.own if now.digest not in old}
    return {
        (now.section, now.place): (gone, past)
        for past in spec.base.past
        for gone in missing(spec.base, past)
        if (now := by_id.get((gone.section, str(gone.value.get("id")))))
    }
