"""A new spec from one that has results: the old file stays as it is, for it is frozen."""

from __future__ import annotations

import re
from pathlib import Path

from speclint import document, edit
from specrun.errors import Refused
from specrun.prepare import readable

WRITTEN_BY_TOOLS = re.compile(r"^(?:approvals|results):.*\n?(?:[ \t#-].*\n?|\r?\n)*", re.MULTILINE)
NAME = re.compile(r"^name:[ \t]*\S+", re.MULTILINE)
VALID = re.compile(r"[a-z0-9][a-z0-9._-]{0,79}")


def fork(path: Path, new: Path, name: str | None = None) -> str:
    """Write `new` with everything of `path` but approvals and results, under another name; returns the name.

    Raises Refused if `new` exists, the name is no name, or the file cannot be cut without damage.
    """
    read = readable(path)
    data = read.data
    if not isinstance(data, dict) or read.problems:
        raise Refused(f"{path} cannot be read as a spec", f"see `speclint check {path}`")
    called = name or new.name.partition(".")[0]
    if not VALID.fullmatch(called) or called == data.get("name"):
        raise Refused(f"{called!r} cannot be the new name", "give another with --name: lower case, digits, dots, dashes")
    if new.exists():
        raise Refused(f"{new} exists", "name a file that does not")
    text = NAME.sub(f"name: {called}", WRITTEN_BY_TOOLS.sub("", read.text), count=1)
    wanted = {key: value for key, value in data.items() if key not in ("approvals", "results")} | {"name": called}
    if document.parse(text.encode(), str(new)).data != wanted:
        raise Refused(f"{path} cannot be cut without damage", "copy it by hand: drop approvals and results, change the name")
    edit.rewrite(_empty(new), lambda _: text.encode())
    return called


def _empty(path: Path) -> Path:
    path.touch(exist_ok=False)
    return path
