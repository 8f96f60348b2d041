"""vLLM releases as data: one JSON file each, loaded one at a time.

A release's file says what its `speculative_config`, arguments, metrics and log lines are. Files are written from wheels
by `release_import`; nothing in this package branches on a release.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from functools import cache
from itertools import groupby, zip_longest
from pathlib import Path
from typing import Any, NamedTuple

from speclint.data import schemas_path

Json = dict[str, Any]

VERSION = re.compile(r"(\d+(?:\.\d+){2,3})(?:\.post(\d+))?")


def parse(version: str) -> tuple[tuple[int, ...], int] | None:
    """`0.10.1.1.post2` as a sortable key ((0, 10, 1, 1), 2); None if it is no exact release."""
    match = VERSION.fullmatch(version)
    return (tuple(int(part) for part in match[1].split(".")), int(match[2] or 0)) if match else None


def compare(a: str, b: str) -> int:
    """-1, 0 or 1 as release `a` is before, equal to or after `b`. Raises ValueError if one is no exact release."""
    left, right = _key(a), _key(b)
    return (left > right) - (left < right)


def in_range(version: str, first: str | None, last: str | None) -> bool:
    """Whether a release lies in [first, last]; None is open. A post release belongs to the release it repackages.

    Raises ValueError if one of them is no exact release.
    """
    number = _key(version)
    is_after = first is None or number >= _key(first)
    return is_after and (last is None or number <= _key(last) or number[0] == _key(last)[0])


def _key(version: str) -> tuple[tuple[int, ...], int]:
    key = parse(version)
    if key is None:
        raise ValueError(f"not an exact release: {version!r} (X.Y.Z, X.Y.Z.W, with or without .postN)")
    return key


class LogLine(NamedTuple):
    """A regular expression for a log line, the device classes where it counts, and what it means."""

    pattern: str
    devices: tuple[str, ...]
    means: str

    def matches(self, line: str, device: str) -> bool:
        """Whether `line` is this one and counts on `device` (`cpu`, `cuda`, `rocm`, …)."""
        return ("any" in self.devices or device in self.devices) and re.search(self.pattern, line) is not None


class Defect(NamedTuple):
    """A known fault of some releases that touches speculation.

    `first` and `last` are releases (`last` None: in every release read so far); `when` are tests that all must hold,
    each `{"path": JSON Pointer, …}` with one of `is` (list of values), `not` (list), `above` (number), `present` (bool).
    `rule` is the rule that already covers it, `reproduced` our own evidence, `dated` the day it was last looked at.
    """

    id: str
    upstream: str | None
    first: str
    last: str | None
    condition: str
    effect: str
    severity: str
    when: tuple[Json, ...]
    rule: str | None
    reproduced: str | None
    dated: str

    def applies(self, document: Mapping[str, Any]) -> bool:
        """Whether a spec document meets the defect's condition (the release is the caller's business)."""
        return all(_holds(test, document) for test in self.when)


def _holds(test: Json, document: Mapping[str, Any]) -> bool:
    value: Any = document
    for key in str(test["path"]).strip("/").split("/"):
        value = value.get(key) if isinstance(value, Mapping) else None
    if "present" in test:
        return (value is not None) is test["present"]
    if "above" in test:
        return isinstance(value, int | float) and not isinstance(value, bool) and value > test["above"]
    return value not in test["not"] if "not" in test else value in test["is"]


class Release(NamedTuple):
    """One vLLM release. `raw` is its whole file; argument and setting names are written with underscores."""

    version: str
    raw: Json

    @property
    def speculative_config(self) -> Json:
        """JSON Schema of `speculative_config`, with `x-internal`, `x-trap`, `x-validation` and `x-hyphens`."""
        return dict(self.raw["speculative_config"])

    @property
    def settings(self) -> Json:
        """Setting name to its JSON Schema."""
        return dict(self.raw["speculative_config"]["properties"])

    @property
    def unknown_keys(self) -> str:
        """What happens to a key that the release does not know: `type_error`, `dropped` or `refused`."""
        return str(self.raw["unknown_keys"])

    @property
    def methods(self) -> frozenset[str]:
        """Names that `method` accepts; some may be refused later, see `methods_refused`."""
        return frozenset(self.raw["methods"])

    @property
    def method_aliases(self) -> dict[str, str]:
        """Method name to the method it is read as (`deepseek_mtp` to `mtp`)."""
        return dict(self.raw["method_aliases"])

    @property
    def methods_refused(self) -> dict[str, str]:
        """Methods whose name is accepted and whose use fails, with what happens."""
        return {row["method"]: row["effect"] for row in self.raw["methods_refused"]}

    @property
    def engine_args(self) -> Json:
        """Engine argument to `{type, enum?, default?}`."""
        return dict(self.raw["engine_args"])

    @property
    def server_args(self) -> Json:
        """Argument of the server beside the engine's, to `{type, enum?, default?}`."""
        return dict(self.raw["server_args"])

    @property
    def sampling_params(self) -> Json:
        """Sampling parameter to `{type, default?}`."""
        return dict(self.raw["sampling_params"])

    @property
    def sampling_with_speculation(self) -> tuple[Json, ...]:
        """Rows `{parameter, effect, methods}`; effect `refused`, `ignored` or `stops_drafting`, methods None for all.

        `min_p` and `logit_bias` are reset at temperature 0, so that their refusal concerns sampling above it.
        """
        return tuple(self.raw["sampling_with_speculation"])

    @property
    def flags(self) -> frozenset[str]:
        """Flags of `vllm serve`, short ones included; a boolean one has a `--no-` form that is not listed.

        The file lists only what the arguments' names do not give.
        """
        named = (f"--{name.replace('_', '-')}" for part in ("engine_args", "server_args") for name in self.raw[part])
        return frozenset({*named, *self.raw["flags"]} - set(self.raw["no_flags"]))

    @property
    def metrics(self) -> dict[str, str | None]:
        """Role (`drafts`, `accepted_tokens`, …) to the name that the metrics endpoint exposes; None if there is none."""
        return dict(self.raw["metrics"])

    @property
    def runner(self) -> Json:
        """`default` (v1, v2), `v2_default_for`, `v2_env`, and what each runner refuses."""
        return dict(self.raw["runner"])

    @property
    def fallback_lines(self) -> tuple[LogLine, ...]:
        """Log lines which mean that the engine does not do what was configured."""
        return tuple(_log_line(row) for row in self.raw["fallback_lines"])

    @property
    def healthy_lines(self) -> tuple[LogLine, ...]:
        """Alarming log lines that healthy starts print."""
        return tuple(_log_line(row) for row in self.raw["healthy_lines"])

    @property
    def config_diff(self) -> dict[str, list[str]]:
        """`ignored`, `derived`, `expected`: paths of the effective configuration whose difference voids nothing."""
        return dict(self.raw["config_diff"])

    @property
    def defects(self) -> tuple[Defect, ...]:
        """Known faults of this release that touch speculation."""
        return tuple(_defect(row) for row in self.raw["defects"])

    def in_range(self, first: str | None, last: str | None) -> bool:
        """Whether this release lies in [first, last]; None is open."""
        return in_range(self.version, first, last)


def _log_line(row: Json) -> LogLine:
    return LogLine(row["pattern"], tuple(row["devices"]), row["means"])


def _defect(row: Json) -> Defect:
    return Defect(**{**row, "when": tuple(row["when"])})


def folder() -> Path:
    """Where the release files lie."""
    return schemas_path() / "vllm"


@cache
def load(version: str) -> Release | None:
    """The release of that exact number, or None. A post release without a file of its own is the one it repackages."""
    if parse(version) is None:
        return None
    candidates = (folder() / f"{number}.json" for number in (version, version.partition(".post")[0]))
    path = next((path for path in candidates if path.is_file()), None)
    return Release(version, json.loads(path.read_bytes())) if path else None


@cache
def known() -> tuple[str, ...]:
    """Every release there is a file for, oldest first."""
    return tuple(sorted((p.stem for p in folder().glob("*.json") if parse(p.stem)), key=_key))


def spans(holds: Callable[[Release], bool]) -> str:
    """The known releases of which something holds: `0.8.2 to 0.9.2, 0.15.0 to 0.33.0`; empty if it is none."""
    runs = (list(run) for true, run in groupby(known(), lambda version: holds(_known_release(version))) if true)
    return ", ".join(run[0] if len(run) == 1 else f"{run[0]} to {run[-1]}" for run in runs)


def _known_release(version: str) -> Release:
    release = load(version)
    assert release is not None, "known() lists what has a file"
    return release


def nearest(version: str) -> list[str]:
    """Known releases to offer for an unknown one, likeliest first, at most three; the newest where nothing is a number."""
    numbers = re.findall(r"\d+", version)[:4]
    if not numbers:
        return list(known()[:-4:-1])
    key = parse(version) or (tuple(int(n) for n in numbers), 0)
    return sorted(known(), key=lambda other: _distance(key, _key(other)))[:3]


def _distance(a: tuple[tuple[int, ...], int], b: tuple[tuple[int, ...], int]) -> tuple[int, ...]:
    """How far two releases are apart, number by number."""
    gaps = [abs(x - y) for x, y in zip_longest(a[0], b[0], fillvalue=0)]
    return (*gaps, *[0] * (4 - len(gaps)), abs(a[1] - b[1]))


def write(release: Json, into: Path) -> Path:
    """Write a release's file into a folder and return its path."""
    from speclint.release_text import dump

    path = into / f"{release['version']}.json"
    path.write_text(dump(release), encoding="utf-8")
    load.cache_clear()
    known.cache_clear()
    return path


def diff(a: str, b: str) -> list[str]:
    """What turns between two releases, one line each: `- removed`, `+ added`, `~ changed`.

    Raises KeyError if one of them is unknown.
    """
    from speclint.release_text import changes

    left, right = load(a), load(b)
    if left is None or right is None:
        raise KeyError(a if left is None else b)
    return changes(left, right)
