"""One run at a time on a device: two that share it measure each other."""

from __future__ import annotations

import fcntl
import json
import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, TextIO

from specrun import host
from specrun.errors import EnvironmentTrouble, Refused

PLACE = Path("/tmp")  # one for all users of the machine, whatever their TMPDIR


@contextmanager
def held(pair: dict[str, Any], run: str, spec: str) -> Iterator[None]:
    """Hold the devices of a pair for the length of the block; the kernel lets go of them however the process ends.

    Raises Refused with the name of the run that holds one of them already.
    """
    owner = {"run": run, "pid": os.getpid(), "spec": spec}
    with ExitStack() as stack:
        for name in names(pair):
            stack.enter_context(_held(name, owner))
        yield


def free(pair: dict[str, Any]) -> None:
    """Raises Refused, with its name, if a run is at work on a device of a pair. Names nobody as holder."""
    for name in names(pair):
        with _locked(name):
            pass


def names(pair: dict[str, Any]) -> list[str]:
    """`cpu`, or the UUIDs of the GPUs that a server of the pair takes; `cuda` where none can be told."""
    if pair["placement"]["device"] == "cpu":
        return ["cpu"]
    return sorted(gpus(pair)) or [pair["placement"]["device"]]


def gpus(pair: dict[str, Any]) -> list[str]:
    """UUIDs of the GPUs that a server takes: the first ones that it sees, one for each of its ranks."""
    placement = pair["placement"]
    ranks = placement.get("tensor_parallel_size", 1) * placement.get("pipeline_parallel_size", 1)
    return host.visible_gpus(pair.get("env", {}).get("CUDA_VISIBLE_DEVICES"))[:ranks]


@contextmanager
def _held(name: str, owner: dict[str, Any]) -> Iterator[None]:
    with _locked(name) as file:
        file.truncate(0)
        file.write(json.dumps(owner))
        file.flush()
        try:
            yield
        finally:
            file.truncate(0)


@contextmanager
def _locked(name: str) -> Iterator[TextIO]:
    """The lock file of a device, locked. Raises Refused with the name of the run that holds it."""
    path = PLACE / f"pair-spec-{name}.lock"
    while True:
        with _opened(path) as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise Refused(f"{_told(file)} is at work on {name}", "let it finish, or stop it") from None
            if _still_there(file, path):
                yield file
                return


def _still_there(file: TextIO, path: Path) -> bool:
    """Whether the path still names the file: one that was removed between opening and locking keeps nobody out."""
    with suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    return False


def _opened(path: Path) -> TextIO:
    """The lock file, which every user may write. Raises EnvironmentTrouble."""
    hint = "runs write their names there, so that one at a time has the device: it must be a file that all may write"
    try:
        file = os.fdopen(_descriptor(path), "r+", encoding="utf-8")
    except OSError as error:
        raise EnvironmentTrouble(f"{path} cannot be opened: {error.strerror or error}", hint) from error
    kind = os.fstat(file.fileno())
    if not stat.S_ISREG(kind.st_mode) or kind.st_nlink != 1:  # a name for somebody's other file would have that one emptied
        file.close()
        raise EnvironmentTrouble(f"{path} is no file of its own, but a link to another one or no file", hint)
    return file


def _descriptor(path: Path) -> int:
    """Open it, or create it where it is not: Linux lets no other user open with O_CREAT what exists in /tmp."""
    flags = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC
    while True:
        with suppress(FileNotFoundError):
            return os.open(path, flags)
        with suppress(FileExistsError):  # another run was faster
            made = os.open(path, flags | os.O_CREAT | os.O_EXCL)
            os.fchmod(made, 0o666)
            return made


def _told(file: TextIO) -> str:
    """The holder by its own words, as far as it has written them."""
    try:
        owner = json.loads(file.read())
        return f"run {owner['run']} (process {owner['pid']}, {owner['spec']})"
    except (ValueError, KeyError, TypeError):
        return "another run"
