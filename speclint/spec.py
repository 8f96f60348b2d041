"""A pair spec whose parts may be missing or malformed.

Rules read it through accessors that give None (or an empty dict or list) where the shape is wrong: the shape itself is
the schema's business, and a mistake in one place must not hide findings in another.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

if TYPE_CHECKING:
    from speclint.history import Base

T = TypeVar("T")


class Spec(NamedTuple):
    """`data` as read from the file, the folder that relative paths in it start from, and what a base branch knows of it."""

    data: dict[str, Any]
    folder: Path = Path()
    base: Base | None = None

    def at(self, *keys: str | int, kind: type[T]) -> T | None:
        """The value under `keys`, or None if it is absent or not a `kind` (an int is a float, a bool is no number)."""
        value: Any = self.data
        for key in keys:
            listed = isinstance(value, list) and isinstance(key, int) and key < len(value)
            if not listed and not (isinstance(value, dict) and key in value):
                return None
            value = value[key]
        return value if _is(value, kind) else None

    def section(self, *keys: str | int) -> dict[str, Any]:
        """The mapping under `keys`; empty if there is none."""
        return self.at(*keys, kind=dict) or {}

    def listing(self, *keys: str | int) -> list[Any]:
        """The list under `keys`; empty if there is none."""
        return self.at(*keys, kind=list) or []

    def rows(self, *keys: str | int) -> Iterator[tuple[int, dict[str, Any]]]:
        """Index and value of each mapping in the list under `keys`."""
        return ((index, row) for index, row in enumerate(self.listing(*keys)) if isinstance(row, dict))

    @property
    def name(self) -> str | None:
        return self.at("name", kind=str)

    @property
    def version(self) -> str | None:
        """Engine release, such as "0.32.0"."""
        return self.at("pair", "engine", "version", kind=str)

    @property
    def device(self) -> str | None:
        return self.at("pair", "placement", "device", kind=str)

    @property
    def vocabulary_mode(self) -> str | None:
        return self.at("pair", "vocabulary", "mode", kind=str)

    @property
    def speculative(self) -> dict[str, Any]:
        return self.section("pair", "speculative")

    @property
    def method(self) -> str | None:
        return self.at("pair", "speculative", "method", kind=str)

    @property
    def k(self) -> int | None:
        """Draft tokens per step (K)."""
        return self.at("pair", "speculative", "num_speculative_tokens", kind=int)

    @property
    def context(self) -> tuple[str, int] | None:
        """Pointer and number of tokens that the target is served with; None where the engine works it out (-1, `8k`)."""
        asked = self.engine_args.get("max_model_len")
        if asked is not None:
            known = _is(asked, int) and asked > 0
            return ("/pair/engine_args/max_model_len", asked) if known else None
        own = self.at("lock", "target", "config", "max_position_embeddings", kind=int)
        return ("/lock/target/config/max_position_embeddings", own) if own is not None else None

    @property
    def engine_args(self) -> dict[str, Any]:
        return self.section("pair", "engine_args")

    @property
    def sampling(self) -> dict[str, Any]:
        return self.section("protocol", "sampling")

    @property
    def temperature(self) -> float | None:
        return self.at("protocol", "sampling", "temperature", kind=float)

    @property
    def workloads(self) -> list[dict[str, Any]]:
        return [row for _, row in self.rows("protocol", "workloads")]

    @property
    def load(self) -> dict[str, Any]:
        return self.section("protocol", "load")

    @property
    def concurrency(self) -> list[int]:
        """Concurrency levels, in file order."""
        return [level for level in self.listing("protocol", "load", "concurrency") if _is(level, int)]

    @property
    def loads(self) -> int:
        """How often a block sends the prompts of a workload: once per concurrency level, once in open loop."""
        return len(self.concurrency) + ("arrival" in self.section("protocol"))

    @property
    def design(self) -> dict[str, Any]:
        return self.section("protocol", "design")

    @property
    def criteria(self) -> list[tuple[int, dict[str, Any]]]:
        """Index and value of each criterion."""
        return list(self.rows("protocol", "criteria"))

    @property
    def lock(self) -> dict[str, Any]:
        return self.section("lock")

    def both(self, *keys: str, kind: type[T]) -> tuple[T | None, T | None]:
        """The same fact of the lock's target and draft."""
        return self.at("lock", "target", *keys, kind=kind), self.at("lock", "draft", *keys, kind=kind)

    @property
    def approvals(self) -> list[tuple[int, dict[str, Any]]]:
        return list(self.rows("approvals"))

    @property
    def results(self) -> list[tuple[int, dict[str, Any]]]:
        return list(self.rows("results"))


def _is(value: Any, kind: type) -> bool:
    if isinstance(value, bool):
        return kind is bool
    return isinstance(value, (int, float)) if kind is float else isinstance(value, kind)


def is_local(model: str, revision: str | None, folder: Path) -> bool:
    """Whether a model reference is a folder rather than a hub id.

    It is if its revision is a tree digest, if it is written as a path (`./`, `../`, `/`), or if such a folder exists.
    """
    if revision is not None and revision.startswith("sha256:"):
        return True
    if model.startswith(("./", "../", "/")) or (model.count("/") > 1 and not model.startswith(("http://", "https://"))):
        return True
    return is_folder(folder / model)


def is_folder(path: Path) -> bool:
    """Whether the path leads to a folder; not where it may not be looked at, or where no file can have such a name."""
    try:
        return path.is_dir()
    except OSError:
        return False
