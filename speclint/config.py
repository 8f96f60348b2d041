"""What to check, by default: `[lint]` of `speclint.toml` or `[tool.speclint]` of `pyproject.toml`, the nearest above a spec.

`schemas/speclint.schema.json` describes the keys. Flags of the command line win. `specrun` does not read these tables:
a run is judged by every rule, and what does not apply is suppressed in the spec, with a reason that the approver sees.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from speclint.data import schemas_path
from speclint.rules import rules
from speclint.shape import did_you_mean

SPECLINT, PYPROJECT = "speclint.toml", "pyproject.toml"
ALWAYS = ("SL0", "SL6")


class ConfigError(ValueError):
    """A configuration file or a list of codes that cannot be meant; the message says where and what."""


class Config(NamedTuple):
    """What one configuration file asks for; paths in it start at its folder."""

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    strict: bool = False
    exclude: tuple[str, ...] = ()
    per_file_ignores: tuple[tuple[str, tuple[str, ...]], ...] = ()
    source: Path | None = None

    def excludes(self, path: Path) -> bool:
        """Whether a spec is left out."""
        return any(self._matches(path, pattern) for pattern in self.exclude)

    def ignored(self, path: Path) -> tuple[str, ...]:
        """Codes that are ignored for this spec only."""
        return tuple(code for pattern, codes in self.per_file_ignores if self._matches(path, pattern) for code in codes)

    def _matches(self, path: Path, pattern: str) -> bool:
        folder = self.source.parent if self.source else Path.cwd()
        name = path.resolve().relative_to(folder).as_posix()
        bare = pattern.removeprefix("**/").rstrip("/")
        forms = [bare, f"{bare}/*"]
        if "/" not in bare or pattern.startswith("**/"):
            forms += [f"*/{form}" for form in forms]
        return any(fnmatchcase(name, form) for form in forms)


def load_config(path: Path) -> Config:
    """Configuration for a spec file: the nearest above it, at most up to the repository's top. Raises ConfigError."""
    return _of_folder(path.resolve().parent)


def codes(given: Iterable[str], *, ignoring: bool = False) -> tuple[str, ...]:
    """Codes or their beginnings, in capitals. Raises ConfigError for one that no rule begins with or that cannot be ignored."""
    found = tuple(code.strip().upper() for item in given for code in item.split(",") if code.strip())
    for code in found:
        if not any(known.startswith(code) for known in rules()):
            near = did_you_mean(code, rules())
            raise ConfigError(f"no rule begins with {code}; {near or '`speclint rules` lists them'}")
        if ignoring and code.startswith(ALWAYS):
            raise ConfigError(f"{code} cannot be ignored: reading errors and integrity findings always count")
    return found


@cache
def _of_folder(folder: Path) -> Config:
    for path in (folder / SPECLINT, folder / PYPROJECT):
        table = _table(path)
        if table is not None:
            return _config(path, table)
    at_top = (folder / ".git").exists() or folder.parent == folder
    return Config() if at_top else _of_folder(folder.parent)


def _table(path: Path) -> dict[str, Any] | None:
    """Our table of a file, or None if there is none."""
    if not path.is_file():
        return None
    text = path.read_text(encoding="utf-8", errors="replace")
    if path.name == PYPROJECT and "speclint" not in text:
        return None
    import tomllib  # costs a cold start milliseconds that most do not need

    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path}: {error}") from None
    if path.name == PYPROJECT:
        tool = data.get("tool")
        return tool.get("speclint") if isinstance(tool, dict) else None
    _known(path, "", data, _schema()["properties"])
    return data.get("lint")


def _config(path: Path, table: Any) -> Config:
    name = "[lint]" if path.name == SPECLINT else "[tool.speclint]"
    properties = _schema()["$defs"]["lint"]["properties"]
    if not isinstance(table, dict):
        raise ConfigError(f"{path}: {name} is not a table")
    _known(path, name, table, properties)
    for key, value in table.items():
        if not _fits(value, properties[key]):
            raise ConfigError(f"{_place(path, key)}: {name} {key}: {properties[key]['x-wanted']}")
    try:
        return Config(
            select=codes(table.get("select", ())),
            ignore=codes(table.get("ignore", ()), ignoring=True),
            strict=table.get("strict", False),
            exclude=tuple(table.get("exclude", ())),
            per_file_ignores=tuple((k, codes(v, ignoring=True)) for k, v in table.get("per-file-ignores", {}).items()),
            source=path,
        )
    except ConfigError as error:
        raise ConfigError(f"{path}: {name} {error}") from None


def _known(path: Path, name: str, table: dict[str, Any], properties: dict[str, Any]) -> None:
    for key in table:
        if key not in properties:
            what = f"{name} has no key `{key}`" if name else f"there is no table [{key}]"
            near = did_you_mean(key, properties) or f"known are {', '.join(properties)}"
            raise ConfigError(f"{_place(path, key)}: {what}; {near}")


def _fits(value: Any, schema: dict[str, Any]) -> bool:
    if schema["type"] == "object":
        return isinstance(value, dict) and all(_fits(item, schema["additionalProperties"]) for item in value.values())
    if schema["type"] == "array":
        return isinstance(value, list) and all(isinstance(item, str) for item in value)
    return isinstance(value, bool)


def _place(path: Path, key: str) -> str:
    """The file with the line on which a key or table is written first, as well as that can be told."""
    written = re.compile(rf"""\s*\[*\s*(?:tool\s*\.\s*speclint\s*\.\s*)?["']?{re.escape(key)}["']?\s*[=.\]]""")
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    return next((f"{path}:{number}" for number, line in enumerate(lines, 1) if written.match(line)), str(path))


@cache
def _schema() -> dict[str, Any]:
    schema: dict[str, Any] = json.loads((schemas_path() / "speclint.schema.json").read_text(encoding="utf-8"))
    return schema
