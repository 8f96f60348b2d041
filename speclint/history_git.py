"""What git knows of a repository: the commit to compare with, the files of a commit, and the files of the work tree.

Only read, by subprocess, without a shell and with no GIT_ variable of the caller: a hook's GIT_DIR or GIT_INDEX_FILE would
point elsewhere.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from speclint.discovery import FIRST_KEY, NAMED, SNIFFED, YAML

MARK = "pair-spec/"
REGULAR = ("100644", "100755")
SETTINGS = {"LC_ALL": "C", "GIT_NO_REPLACE_OBJECTS": "1", "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0"}
CREDENTIALS = re.compile(r"(?<=://)[^/@]*@")


class NoBase(ValueError):
    """There is nothing to compare with; the message says why and what to do."""


class Compared(NamedTuple):
    """A repository and the commits that its work tree is held against."""

    top: Path
    ref: str
    tip: str
    """Commit of the ref: whose trust and policy count."""
    bases: tuple[str, ...]
    """Merge bases of the ref and HEAD, usually one: whose entries must still be here."""
    head: str
    remote: str
    """Where the ref comes from, for people; empty if it is not of a remote."""

    @property
    def shown(self) -> str:
        return f"{self.ref} ({self.tip[:7]})"


class Files(NamedTuple):
    """The files of a commit or of the work tree, by path from the top."""

    top: Path
    names: dict[str, str]
    """Path to what git calls its content; empty where that stands on the disk."""
    marked: set[str]
    """YAML files that may be specs whatever they are called."""

    def read(self, paths: Iterable[str]) -> dict[str, bytes]:
        """Path to bytes of those among the paths that are there."""
        there = sorted(set(paths) & self.names.keys())
        stored = [path for path in there if self.names[path]]
        on_disk = {path: (self.top / path).read_bytes() for path in there if not self.names[path]}
        return on_disk | dict(zip(stored, _contents(self.top, [self.names[path] for path in stored]), strict=True))


def compared(files: Iterable[Path], ref: str) -> Compared:
    """The repository of the files and what to compare it with. Raises NoBase."""
    top = _top_of(files)
    head = _commit(top, "HEAD")
    if not head:
        raise NoBase(f"{top} has no commit yet, so nothing can be compared")
    tip = _commit(top, ref)
    if not tip:
        raise NoBase(_missing(top, ref))
    bases = tuple(git(top, "merge-base", "--all", tip, head, allowed=(0, 1)).decode().split())
    # The ref itself as merge base is exact however little of the history is here.
    if _shallow(top) and bases != (tip,):
        raise NoBase(f"the history is cut off here (a shallow clone), so the merge base is not known: `{_fetch(top, ref)}`")
    if not bases:
        raise NoBase(f"{ref} and HEAD have no commit in common: is {ref} the branch that this change goes to?")
    return Compared(top, ref, tip, bases, head, _remote(top, ref))


def git(top: Path, *words: str, given: bytes = b"", allowed: tuple[int, ...] = (0,)) -> bytes:
    """Standard output of a git command. Raises NoBase with git's own words if its status is not among `allowed`."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        done = subprocess.run(["git", *words], input=given, capture_output=True, cwd=top, env=environment | SETTINGS)
    except FileNotFoundError:
        raise NoBase("git is not installed, and --base needs it") from None
    if done.returncode not in allowed:
        told = " ".join(done.stderr.decode("utf-8", "replace").split())
        raise NoBase(f"git {words[0]} in {top}: {told or f'status {done.returncode}'}")
    return done.stdout


def at_commit(top: Path, commit: str) -> Files:
    """The regular files of a commit; links and submodules are left out."""
    rows = (row.partition("\t") for row in _split(git(top, "ls-tree", "-r", "-z", "--full-tree", commit)))
    found = ((path, *about.split()) for about, _, path in rows)
    names = {path: name for path, mode, _, name in found if mode in REGULAR}
    grep = ["grep", "-z", "-l", "-F", "--no-color", "--no-recurse-submodules", "-e", MARK, commit, "--", "*.yaml", "*.yml"]
    marked = {row.partition(":")[2] for row in _split(git(top, *grep, allowed=(0, 1)))}
    return Files(top, names, marked & names.keys())


def of_work_tree(top: Path) -> Files:
    """The files of the work tree that git tracks or would add; those that are links or were deleted are left out."""
    listed = _split(git(top, "ls-files", "-z", "-t", "--cached", "--others", "--exclude-standard"))
    tags = {path: tag for tag, _, path in (row.partition(" ") for row in listed)}
    # not checked out (sparse checkout): the index has them
    names = {path: f":{path}" if tag == "S" else "" for path, tag in tags.items() if tag == "S" or _is_plain(top / path)}
    marked = {path for path, name in names.items() if path.endswith(YAML) and (name or _begins_as_spec(top / path))}
    return Files(top, names, marked)


def specs(files: Files, also: Iterable[str]) -> dict[str, bytes]:
    """Path to bytes of the pair specs, by name or first key; `also` are paths that somebody named."""
    named = {path for path in files.names if path.endswith(NAMED)} | set(also)
    read = files.read(named | files.marked)
    return {path: source for path, source in read.items() if path in named or FIRST_KEY.match(source[:SNIFFED])}


def _is_plain(file: Path) -> bool:
    return file.is_file() and not file.is_symlink()


def _begins_as_spec(file: Path) -> bool:
    with file.open("rb") as opened:
        return FIRST_KEY.match(opened.read(SNIFFED)) is not None


def _contents(top: Path, names: list[str]) -> Iterator[bytes]:
    """Bytes of the named objects, in order, as they are stored. Raises NoBase if one is not there."""
    told = git(top, "cat-file", "--batch", given="".join(f"{name}\n" for name in names).encode("utf-8", "surrogateescape"))
    at = 0
    for name in names:
        begin = told.index(b"\n", at) + 1
        about = told[at:begin].split()
        if len(about) != 3 or about[1] != b"blob":
            raise NoBase(f"object {name} is not in the repository {top}")
        at = begin + int(about[2]) + 1
        yield told[begin : at - 1]


def _split(told: bytes) -> list[str]:
    return [os.fsdecode(row) for row in told.split(b"\0") if row]


def _top_of(files: Iterable[Path]) -> Path:
    folders = {file if file.is_dir() else file.parent for file in files if file.exists()} or {Path()}
    tops = {_top(folder) for folder in folders}
    if len(tops) > 1:
        raise NoBase(f"the files lie in several repositories ({', '.join(sorted(map(str, tops)))}): check each by itself")
    return tops.pop()


def _top(folder: Path) -> Path:
    told = git(folder, "rev-parse", "--show-toplevel")
    return Path(os.fsdecode(told.removesuffix(b"\n"))).resolve()


def _commit(top: Path, ref: str) -> str:
    """Object name of a commit, or nothing."""
    if not ref or ref.startswith("-"):
        raise NoBase(f"{ref!r} names no commit")
    return git(top, "rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}", allowed=(0, 1, 128)).decode().strip()


def _shallow(top: Path) -> bool:
    return git(top, "rev-parse", "--is-shallow-repository").strip() == b"true"


def _missing(top: Path, ref: str) -> str:
    if not ref.strip("0"):
        return f"{ref[:7]} is no commit: a push that makes a branch has none before it; name the branch it came from"
    return f"there is no {ref} here, so nothing can be compared: `{_fetch(top, ref)}`"


def _fetch(top: Path, ref: str) -> str:
    """The command that brings what is missing."""
    remotes = _remotes(top) or ["origin"]
    remote = next((name for name in remotes if ref.startswith(f"{name}/")), "")
    branch = ref.removeprefix(f"{remote}/")
    wanted = f"+refs/heads/{branch}:refs/remotes/{ref}" if remote else ref
    deeper = ["--unshallow"] if _shallow(top) else []
    return shlex.join(["git", "fetch", *deeper, remote or remotes[-1], wanted])


def _remotes(top: Path) -> list[str]:
    return sorted(git(top, "remote").decode().split(), key=len, reverse=True)


def _remote(top: Path, ref: str) -> str:
    """Remote and address that a remote branch was fetched from, without credentials, and what other remotes there are."""
    full = git(top, "rev-parse", "--symbolic-full-name", ref, allowed=(0, 128)).decode().strip()
    remotes = _remotes(top) if full.startswith("refs/remotes/") else []
    name = next((name for name in remotes if full.startswith(f"refs/remotes/{name}/")), "")
    if not name:
        return ""
    address = git(top, "config", "--get", f"remote.{name}.url", allowed=(0, 1)).decode().strip()
    others = [other for other in sorted(remotes) if other != name]
    fork = f" (remotes too: {', '.join(others)}; if {name} is a fork, compare with the one it goes to)" if others else ""
    return CREDENTIALS.sub("", address) + fork
