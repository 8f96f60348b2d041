"""Replacing a file: a crash at any point leaves the old one or the new one, and no second writer slips between."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

PATIENCE = 10.0
"""Seconds to wait for another writer."""
TEMPORARY = ".tmp"


class FileBusy(OSError):
    """Another writer holds the file, or changed it while it was being rewritten; nothing was written."""


def rewrite(path: Path, change: Callable[[bytes], bytes]) -> None:
    """Put `change(old bytes)` in the place of the file, keeping its mode, owner and any symlink that leads to it.

    `change` may raise; the old file then stays. Raises FileBusy when another writer is at work or the file changed
    meanwhile, OSError when the disk refuses.
    """
    real = path.resolve(strict=True)
    with _only_writer(real.parent):
        _clear(real)
        old = real.read_bytes()
        new = change(old)
        if new != old:
            _replace(real, old, new)


def _replace(real: Path, old: bytes, new: bytes) -> None:
    fd, name = tempfile.mkstemp(prefix=f".{real.name}.", suffix=TEMPORARY, dir=real.parent)
    temporary = Path(name)
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(new)
            file.flush()
            _take_after(real, file.fileno())
            os.fsync(file.fileno())
        if real.read_bytes() != old:
            raise FileBusy(f"{real} was changed by someone else meanwhile; nothing was written")
        temporary.replace(real)
        fsync_folder(real.parent)
    finally:
        temporary.unlink(missing_ok=True)


def _clear(real: Path) -> None:
    """Remove what killed writers of this file left beside it: whoever is alive holds the lock, which is ours now.

    Where a lock does not reach the other hosts of a network file system, a writer there may lose its temporary file; it then
    fails and says so, and the file itself is whole.
    """
    left = re.compile(rf"\.{re.escape(real.name)}\.[a-z0-9_]{{8}}{re.escape(TEMPORARY)}")  # as mkstemp names them
    for other in real.parent.iterdir():
        if left.fullmatch(other.name) and other.is_file() and not other.is_symlink():
            with contextlib.suppress(OSError):
                other.unlink()


def _take_after(real: Path, fd: int) -> None:
    """Give the new file the old one's owner, as far as we may, and its mode."""
    state = real.stat()
    with contextlib.suppress(PermissionError):
        os.fchown(fd, state.st_uid, state.st_gid)
    os.fchmod(fd, state.st_mode & 0o7777)


def fsync_folder(folder: Path) -> None:
    """Make the names in a folder last: a new or renamed file may else be gone after a power cut."""
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


@contextlib.contextmanager
def _only_writer(folder: Path) -> Iterator[None]:
    """Lock the folder itself: no lock file is left behind, and a crashed writer's lock dies with it."""
    fd = os.open(folder, os.O_RDONLY)
    try:
        _wait_for_lock(fd, folder)
        yield
    finally:
        os.close(fd)


def _wait_for_lock(fd: int, folder: Path) -> None:
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            return fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise FileBusy(f"another program has been writing in {folder} for {PATIENCE:.0f} s") from None
            time.sleep(0.05)
