"""A finished run as one file: measured on one machine, checked and signed on another.

The file is a gzipped tar of the manifest and the files that it lists, by name, without times, owners and modes: the same
run gives the same bytes. On the way back nothing is left to the archive: only regular files that the manifest names are
written, as new files of the caller's, and all of them must have the digests that it states.
"""

from __future__ import annotations

import gzip
import re
import shutil
import tarfile
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from specrun import manifest
from specrun.errors import EnvironmentTrouble, SpecrunError
from specrun.run import load

MOST_BYTES = 8 * 2**30  # of a whole run, unpacked
MOST_AT_ONCE = 2**24  # of its manifest, and of any header
PART = r"[A-Za-z0-9_][A-Za-z0-9._-]*"
NAME = re.compile(rf"{PART}(?:/{PART})*")
FIRST = re.compile(rf"({PART})/{re.escape(manifest.NAME)}")


class Damaged(SpecrunError):
    """A run folder or a packed run that is not what its manifest says."""


def pack(folder: Path, out: Path) -> int:
    """Write a finished run to the new file `out`; returns the count of files in it.

    Raises Damaged if the run is not as its manifest says, EnvironmentTrouble if `out` exists or cannot be written.
    """
    run, files = load(folder).plan["id"], listed(folder)
    names = [manifest.NAME, *sorted(files)]
    try:
        with out.open("xb") as stream:
            try:
                _write(stream, folder, run, names)
            except BaseException:
                out.unlink()
                raise
    except OSError as error:
        raise EnvironmentTrouble(f"{out} cannot be written: {error.strerror}", "name another file with -o") from error
    return len(names)


def unpack(file: Path, into: Path) -> Path:
    """Make the folder of a packed run in `into` again; returns it.

    Raises Damaged, EnvironmentTrouble if a file cannot be read or written. Then nothing is left in `into`.
    """
    try:
        into.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".unpack-", dir=into) as place:
            folder = _unpacked(file, Path(place))
            end = into / folder.name
            if end.exists():
                raise SpecrunError(f"{end} exists", "name another folder with --into")
            return folder.rename(end)
    except (tarfile.TarError, gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise _damaged(file, str(error)) from error
    except OSError as error:
        raise EnvironmentTrouble(f"{file} cannot be unpacked into {into}: {error}", "see the path, and the room there") from error


def listed(folder: Path) -> dict[str, str]:
    """The files of a finished run with their digests, all of them present and as the manifest says. Raises Damaged."""
    try:
        files = manifest.read(folder)
    except (OSError, ValueError, KeyError, TypeError) as error:
        hint = f"finish it with `specrun run --resume {folder.name}`"
        raise Damaged(f"run {folder.name} is not finished: its {manifest.NAME} cannot be read ({error})", hint) from error
    wrong = [f"{name!r} is no name of a run's file" for name in files if not NAME.fullmatch(name)]
    wrong = wrong or manifest.differences(folder, files)
    if wrong:
        more = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
        raise Damaged(f"run {folder.name} is not what its manifest says: {wrong[0]}{more}", "bring its files back as they were")
    return files


def _write(stream: BinaryIO, folder: Path, run: str, names: list[str]) -> None:
    with (
        gzip.GzipFile("", "wb", 6, stream, mtime=0) as zipped,
        tarfile.open(fileobj=zipped, mode="w") as tar,
    ):
        for name in names:
            member = tarfile.TarInfo(f"{run}/{name}")
            member.size = (folder / name).stat().st_size
            with (folder / name).open("rb") as content:
                tar.addfile(member, content)


class _Stream(gzip.GzipFile):
    """Is never read in one large piece, as a header that claims gigabytes would have it."""

    def read(self, size: int | None = -1) -> bytes:
        if size is None or not 0 <= size <= MOST_AT_ONCE:
            raise tarfile.ReadError("a header is too large")
        return super().read(size)


def _unpacked(file: Path, place: Path) -> Path:
    """The folder of the run, in `place`, checked against its own manifest."""
    with _Stream(file, "rb") as stream, tarfile.open(fileobj=stream, mode="r:") as tar:
        members = iter(tar)
        first = next(members, None)
        run = FIRST.fullmatch(first.name) if first else None
        if first is None or run is None or first.size > MOST_AT_ONCE:
            raise _damaged(file, f"it does not begin with the {manifest.NAME} of a run")
        folder = place / run[1]
        _take(tar, first, folder / manifest.NAME)
        _take_listed(file, tar, members, folder)
    listed(folder)
    if load(folder).plan["id"] != folder.name:
        raise _damaged(file, f"it holds another run than {folder.name}")
    return folder


def _take_listed(file: Path, tar: tarfile.TarFile, members: Iterator[tarfile.TarInfo], folder: Path) -> None:
    try:
        names = {f"{folder.name}/{name}": name for name in manifest.read(folder) if NAME.fullmatch(name)}
    except (ValueError, KeyError, TypeError) as error:
        raise _damaged(file, f"its {manifest.NAME} cannot be read ({error})") from error
    room = MOST_BYTES
    for member in members:
        name = names.pop(member.name, None)
        if name is None:
            raise _damaged(file, f"it holds {member.name!r}, which its manifest does not list, or holds it twice")
        room -= member.size
        if room < 0:
            raise _damaged(file, f"it holds more than {MOST_BYTES / 2**30:g} GiB")
        _take(tar, member, folder / name)


def _take(tar: tarfile.TarFile, member: tarfile.TarInfo, path: Path) -> None:
    content = tar.extractfile(member) if member.isreg() else None
    if content is None:
        raise tarfile.ReadError(f"{member.name!r} is no regular file")
    path.parent.mkdir(parents=True, exist_ok=True)
    with content, path.open("xb") as out:
        shutil.copyfileobj(content, out)


def _damaged(file: Path, why: str) -> Damaged:
    return Damaged(f"{file} is no packed run, or is damaged: {why}", "pack it again where it ran: `specrun pack RUN`")
