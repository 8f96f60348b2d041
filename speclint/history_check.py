"""The whole repository against a base branch: what `speclint check --base REF` and `specrun verify --base REF` compare."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple, TypeVar

from speclint import document
from speclint.document import Document
from speclint.entries import current_digest
from speclint.history import Base, Entry, Past, edited, entries, missing
from speclint.history_git import Compared, NoBase, at_commit, compared, of_work_tree, specs
from speclint.history_policy import Change, added_signers, changes, copy_to, policy
from speclint.signers import Signer
from speclint.spec import Spec

Key = TypeVar("Key")
T = TypeVar("T")
Sources = dict[str, bytes]
"""Path from the top to bytes."""


class History(NamedTuple):
    """The specs of the work tree beside those of the merge base, and the policy of the base's tip."""

    compared: Compared
    here: dict[str, Document]
    """Every spec of the work tree, by path from the top."""
    held: dict[str, tuple[Entry, ...]]
    """The entries of each of them."""
    past: tuple[Past, ...]
    homes: tuple[str, ...]
    """The file here that continues each of the past ones; empty if none does."""
    known: frozenset[tuple[str, str]]
    """Digest and signature of every entry of the merge base."""
    copy: Path
    """The base's policy files, for whoever reads them from disk."""
    changes: tuple[Change, ...]
    """What the change under review does to policy files."""
    added: tuple[tuple[str, Signer], ...]
    """The lines it adds to lists of allowed signers, with the file of each."""
    untouched: frozenset[str]
    """Specs that are, to the byte, what they are in a merge base."""
    unreadable: dict[str, str]
    """Specs of the merge base that could not be read, and why."""
    now: datetime

    def path(self, file: Path) -> str:
        """Path from the top of a file, which need not be there; its name if it lies elsewhere."""
        return _inside(self.compared.top, file) or file.name

    def read(self, file: Path) -> Document:
        """A file of the work tree, read once. Raises OSError if it cannot be opened."""
        known = self.here.get(self.path(file))
        return known._replace(path=str(file)) if known else document.read(file)

    def policy_path(self, file: Path) -> Path:
        """The path that stands for a file in the copy of the base's policy files."""
        return self.copy / self.path(file)

    def base_of(self, path: str) -> Base:
        """What the base knows of the spec at a path from the top."""
        rows = list(zip(self.past, self.homes, strict=True))
        own = tuple(past for past, home in rows if home == path)
        taken = tuple(past for past, home in rows if home != path and self._takes(path, past))
        folder, held = (self.copy / path).parent, self.held.get(path, ())
        return Base(path, self.compared.shown, folder, self.copy, held, own, taken, self.known, self.now)

    def _takes(self, path: str, past: Past) -> bool:
        """Whether the file holds some and not all of the entries, and did not hold them before."""
        held = {entry.digest for entry in past.entries if path in past.elsewhere.get(entry.digest, ())}
        before = {entry.digest for other in self.past if other.file == path for entry in other.entries}
        return bool(held - before) and len(held) < len({entry.digest for entry in past.entries})

    def new(self, path: str) -> list[Entry]:
        """Entries of a spec here that the change adds or signs anew."""
        return [entry for entry in self.held[path] if entry.signed not in self.known]

    def summary(self) -> str:
        """For people: what was compared with what, and whose policy counted."""
        stood = sum(len(past.entries) for past in self.past)
        files = len({past.file for past in self.past})
        found = f"{stood} approvals and results in {files} file{'s' if files > 1 else ''} there" if stood else "none there yet"
        where = f" of {self.compared.remote}" if self.compared.remote else ""
        bases = ", ".join(commit[:7] for commit in self.compared.bases)
        return f"compared with {self.compared.shown}{where}, merge base {bases}: {found}, {self._here()} here"

    def _here(self) -> str:
        """What became of the entries, such as `1 new, 2 edited`."""
        bases = {path: self.base_of(path) for path in self.here}
        changed = sum(len(edited(Spec({}, base=base))) for base in bases.values())
        lost = [missing(bases[home], past) if home else past.entries for past, home in zip(self.past, self.homes, strict=True)]
        counts = {
            "new": sum(len(self.new(path)) for path in self.here) - changed,
            "edited": changed,
            "gone": sum(map(len, lost)) - changed,
        }
        return ", ".join(f"{count} {what}" for what, count in counts.items() if count or what == "new")


@contextmanager
def against(files: Iterable[Path], ref: str, *, unchanged: bool = False) -> Iterator[History]:
    """The repository of the files against a base branch. Raises NoBase if there is nothing to compare with.

    `unchanged`: there may be no change yet, because the caller asks for the base's policy before it adds something.
    """
    named = list(files)
    found = compared(named, ref)
    with tempfile.TemporaryDirectory(prefix="speclint-base-") as folder:
        try:
            history = _history(found, named, Path(folder).resolve(), unchanged)
        except OSError as error:
            raise NoBase(f"{error.filename} cannot be read: {error.strerror}") from None
        yield history


def _history(found: Compared, named: list[Path], copy: Path, unchanged: bool) -> History:
    also = [path for file in named if not file.is_dir() and (path := _inside(found.top, file))]
    here = of_work_tree(found.top)
    then = {commit: at_commit(found.top, commit) for commit in found.bases}
    sources, stood = specs(here, also), {commit: specs(files, also) for commit, files in then.items()}
    rules, ruled = policy(here), {commit: policy(files) for commit, files in then.items()}
    same = found.head in stood and _same(stood[found.head], sources) and _same(ruled[found.head], rules)
    if same and not unchanged:
        raise NoBase(_itself(found))
    copy_to(copy, ruled[found.tip] if found.tip in ruled else policy(at_commit(found.top, found.tip)))
    documents: dict[bytes, Document] = {}
    read = {path: _read(path, source, documents) for path, source in sources.items()}
    was = {commit: {path: _read(path, source, documents) for path, source in old.items()} for commit, old in stood.items()}
    held = {path: tuple(entries(one.data)) for path, one in read.items()}
    past = tuple(_past(was, _holders(held)))
    return History(
        compared=found,
        here=read,
        held=held,
        past=past,
        homes=tuple(_home(one, read) for one in past),
        known=frozenset(entry.signed for one in past for entry in one.entries),
        copy=copy,
        changes=_in_all([{change.path: change for change in changes(old, rules)} for old in ruled.values()]),
        added=_in_all([{row: row for row in added_signers(old, rules)} for old in ruled.values()]),
        untouched=frozenset(path for old in stood.values() for path, source in old.items() if sources.get(path) == source),
        unreadable={path: one.problems[0].message for old in was.values() for path, one in old.items() if not _holds_spec(one)},
        now=datetime.now(UTC),
    )


def _itself(found: Compared) -> str:
    if found.tip == found.head:
        said = f"{found.ref} is what is checked out, so the change would be compared with itself and anything would pass"
    else:
        said = f"HEAD is part of {found.ref} already, so there is no change to compare"
    return f"{said}: name the branch that it goes to or, after a push, the commit before it (`github.event.before`)"


def _read(path: str, source: bytes, known: dict[bytes, Document]) -> Document:
    """The document; the same bytes are parsed once."""
    if source not in known:
        known[source] = document.parse(source, path)
    return known[source]._replace(path=path)


def _holds_spec(read: Document) -> bool:
    return isinstance(read.data, dict)


def _holders(held: dict[str, tuple[Entry, ...]]) -> dict[str, tuple[str, ...]]:
    """Digest of each entry to the files that hold it."""
    found: dict[str, tuple[str, ...]] = {}
    for path, own in held.items():
        for digest in {entry.digest for entry in own}:
            found[digest] = (*found.get(digest, ()), path)
    return found


def _past(was: dict[str, dict[str, Document]], holders: dict[str, tuple[str, ...]]) -> Iterator[Past]:
    """What each file held; where there are several merge bases, what an earlier one said is not repeated."""
    said: dict[str, set[tuple[str, str]]] = {}
    for commit, files in was.items():
        for path, read in files.items():
            held = tuple(entries(read.data))
            if {entry.signed for entry in held} - said.setdefault(path, set()):
                said[path] |= {entry.signed for entry in held}
                elsewhere = {entry.digest: holders.get(entry.digest, ()) for entry in held}
                yield Past(path, commit, held, elsewhere, read.data)


def _home(past: Past, here: dict[str, Document]) -> str:
    """The file that continues it: its own while it holds one of the entries or is their spec, else that with most of them."""

    def held(path: str) -> int:
        return sum(path in past.elsewhere[entry.digest] for entry in past.entries)

    if past.file in here and (held(past.file) or not _is_another_spec(here[past.file], past)):
        return past.file
    best = max(here, key=held, default="")
    return best if best and held(best) else ""


def is_spec_of(read: Document, past: Past) -> bool:
    """Whether a file is the spec that entries are about, with them or without."""
    stated = {entry.value.get("spec") for entry in past.entries}
    return _holds_spec(read) and current_digest(Spec(read.data)) in stated


def _is_another_spec(read: Document, past: Past) -> bool:
    """Whether a file of the same name can be read and is about something else."""
    return _holds_spec(read) and not is_spec_of(read, past)


def _in_all(found: list[dict[Key, T]]) -> tuple[T, ...]:
    """What differs from every merge base, by its key: the rest came with one of them."""
    first, *others = found
    return tuple(item for key, item in first.items() if all(key in more for more in others))


def _same(one: Sources, other: Sources) -> bool:
    """Whether both hold the same files, line ends aside: git converts them where it is told to."""
    return _unix(one) == _unix(other)


def _unix(sources: Sources) -> Sources:
    return {path: source.replace(b"\r\n", b"\n") for path, source in sources.items()}


def _inside(top: Path, file: Path) -> str:
    """Path from the top; empty if the file lies elsewhere."""
    place = file.parent.resolve() / file.name
    return place.relative_to(top).as_posix() if place.is_relative_to(top) else ""
