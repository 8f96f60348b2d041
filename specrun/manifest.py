"""The list of a run folder's files with their digests; its own digest stands in the signed entry."""

from __future__ import annotations

import json
from pathlib import Path

from speclint.canonical import digest
from specrun.errors import SpecrunError
from specrun.record import file_digest, write_json

NAME = "manifest.json"


def write(folder: Path) -> tuple[str, int]:
    """Write `manifest.json` over every other file now in the run folder. Returns its digest and the count of files."""
    files = {name: file_digest(folder / name) for name in names(folder)}
    write_json(folder / NAME, {"format": 1, "files": files})
    return digest(files), len(files)


def names(folder: Path) -> list[str]:
    """Relative POSIX names of the files of a run folder, hidden and temporary ones left out, sorted."""
    found = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file() and path.suffix != ".part")
    return sorted(name.as_posix() for name in found if name.as_posix() != NAME and not _hidden(name))


def open_still(folder: Path) -> None:
    """Raises SpecrunError if the run has its manifest, which ends it."""
    if (folder / NAME).exists():
        raise SpecrunError(f"run {folder.name} is finished", f"`specrun append {folder} --key KEY` signs and appends it")


def read(folder: Path) -> dict[str, str]:
    """Name to `sha256:…`. Raises OSError or ValueError if there is no readable manifest."""
    files = json.loads((folder / NAME).read_text(encoding="utf-8"))["files"]
    if not isinstance(files, dict) or not all(isinstance(value, str) for value in files.values()):
        raise ValueError("its files are not a mapping of names to digests")
    return files


def differences(folder: Path, files: dict[str, str]) -> list[str]:
    """Files of the manifest that are missing or differ, in words. Names that lead out of the folder count as missing."""
    inside = {name for name in files if (folder / name).resolve().is_relative_to(folder.resolve())}
    present = {name for name in inside if (folder / name).is_file()}
    missing = [f"{name} is missing" for name in sorted(files.keys() - present)]
    return missing + [f"{name} differs" for name in sorted(present) if file_digest(folder / name) != files[name]]


def _hidden(name: Path) -> bool:
    return any(part.startswith(".") for part in name.parts)
