"""Which files are pair specs: by name, by their first key, or because somebody named them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from speclint.document import Document

NAMED = (".spec.yaml", ".pairspec.yaml")
YAML = (".yaml", ".yml")
FIRST_KEY = re.compile(rb"""(?:\xef\xbb\xbf)?(?:[ \t]*(?:\#[^\n]*)?\r?\n)*["']?schema["']?[ \t]*:[ \t]*["']?pair-spec/""")
SNIFFED = 4096


def specs_below(folder: Path) -> list[Path]:
    """The specs in a folder and below, in order of name; hidden folders are left out."""
    return sorted(path for path in _visible(folder) if path.name.endswith(NAMED) or _says_so(path))


def is_meant(document: Document) -> bool:
    """Whether a file means to be a pair spec; one that cannot be understood does, so that nothing wrong is skipped."""
    if not isinstance(document.data, dict):
        return True
    return str(document.data.get("schema", "")).startswith("pair-spec/") or bool({"pair", "protocol"} & document.data.keys())


def _visible(folder: Path) -> Iterator[Path]:
    for holder, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        paths = (Path(holder) / name for name in names if name.endswith(YAML))
        yield from (path for path in paths if not path.is_fifo())  # nobody may ever write into it


def _says_so(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return FIRST_KEY.match(file.read(SNIFFED)) is not None
    except OSError:
        return False  # nobody named it
