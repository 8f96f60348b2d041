"""The digest that pins a local model folder, as a commit pins a hub id.

One line per file, `<sha256 of its bytes>  <path below the folder>`, lines in the byte order of the paths, each ended by
a newline; the digest is the sha256 of these lines. Left out, at any depth, is what does not change what runs: the names
of `LEFT_OUT`. So anyone can recompute it:

    cd FOLDER && find -L . \\( -name '.?*' -o -name __pycache__ -o -name '*~' -o -name '*.swp' -o -name README.md \\
        -o -name LICENSE -o -name LICENSE.txt -o -name LICENSE.md -o -name NOTICE \\) -prune -o -type f \\
        -printf '%P\\n' | LC_ALL=C sort | xargs -d '\\n' sha256sum | sha256sum

Documentation is named exactly, never by pattern: engines load every `*.safetensors`, so `README*` would hide weights.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

from speclint.lock.errors import LockError

LEFT_OUT = (
    ".*",
    "__pycache__",
    "*~",
    "*.swp",
    "README.md",
    "LICENSE",
    "LICENSE.txt",
    "LICENSE.md",
    "NOTICE",
)


FEW_BYTES = 16_000_000


def tree_digest(folder: Path) -> str:
    """`sha256:<hex>` over the names and contents of a folder, by the rule of this module.

    Links to files are followed; a link that is broken, leads to a folder, or leaves the folder for anything but the
    blobs of the hub cache it lies in, raises LockError, as does a folder that is missing or empty.
    """
    files = tree_files(folder)
    if not files:
        raise LockError(f"{folder} holds no model files", "point `model` at the folder with config.json and weights")
    digests = _digests(list(files.values()))
    lines = b"".join(f"{digest}  {name}\n".encode() for name, digest in zip(files, digests, strict=True))
    return "sha256:" + hashlib.sha256(lines).hexdigest()


def _digests(paths: list[Path]) -> list[str]:
    """Digest of each file; in threads where that is worth more than importing them."""
    if sum(path.stat().st_size for path in paths) < FEW_BYTES:
        return [file_digest(path) for path in paths]
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(max_workers=min(4, os.cpu_count() or 1)) as pool:
        return list(pool.map(file_digest, paths))


def file_digest(path: Path) -> str:
    """Hexadecimal sha256 of a file's bytes, read in pieces."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def tree_files(folder: Path) -> dict[str, Path]:
    """What counts in a folder: POSIX name below it to path, in the byte order of the names."""
    if not folder.is_dir():
        kind = "is not a folder" if folder.exists() else "does not exist"
        raise LockError(f"{folder} {kind}", "a local model is a folder, given relative to the spec file")
    found = {path.relative_to(folder).as_posix(): path for path in _walk(folder, folder.resolve())}
    return dict(sorted(found.items(), key=lambda item: os.fsencode(item[0])))


def _walk(folder: Path, root: Path) -> Iterator[Path]:
    for entry in os.scandir(folder):
        if any(fnmatchcase(entry.name, pattern) for pattern in LEFT_OUT):
            continue
        path = Path(entry.path)
        if entry.is_symlink():
            _refuse_stray_link(path, root)
        if entry.is_dir(follow_symlinks=False):
            yield from _walk(path, root)
        elif entry.is_file():
            _refuse_unspeakable(entry.name, path)
            yield path


def _refuse_stray_link(link: Path, root: Path) -> None:
    try:
        end = link.resolve(strict=True)
    except (OSError, RuntimeError) as error:
        raise LockError(f"{link} is a broken link", "restore the file or remove the link") from error
    if end.is_dir():
        raise LockError(f"{link} is a link to a folder", "copy the files into the model folder")
    if not (end.is_relative_to(root) or end.parent == root.parent.parent / "blobs"):
        raise LockError(f"{link} leads out of the model folder to {end}", "copy the file into the model folder")


def _refuse_unspeakable(name: str, path: Path) -> None:
    """sha256sum escapes such names, so the digest could not be recomputed with it."""
    if "\n" in name or "\r" in name or "\\" in name or any("\ud800" <= letter <= "\udfff" for letter in name):
        raise LockError(f"the file name {str(path)!r} holds a line break, backslash or bad byte", "rename the file")
