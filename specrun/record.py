"""One request, one JSON line. Everything a figure rests on can be recomputed from these lines."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec


@dataclass(slots=True)
class Record:
    """A request as the client saw it. Times are seconds of a monotonic clock since the window's start.

    `due`: when it should have been sent (closed loop: when the slot's last request ended; open loop: as drawn, and all are of
    slot 0). `chunks`: arrival and number of tokens of every chunk, by the server's token ids. `tokens_in`, `tokens_out`: the
    server's usage. `digest`: of the ids.
    """

    index: int
    slot: int
    first_of_slot: bool
    max_tokens: int
    due: float
    sent: float
    first: float | None = None
    done: float | None = None
    chunks: list[tuple[float, int]] = field(default_factory=list)
    ids: list[int] = field(default_factory=list)
    tokens_in: int | None = None
    tokens_out: int | None = None
    finish_reason: str | None = None
    prompt_digest: str | None = None
    digest: str | None = None
    error: str | None = None

    def line(self) -> str:
        """The record as one JSON line."""
        row: dict[str, Any] = {name: getattr(self, name) for name in self.__slots__}
        for name in ("due", "sent", "first", "done"):
            row[name] = None if row[name] is None else round(row[name], 7)
        row["chunks"] = [[round(t, 7), n] for t, n in self.chunks]
        return json.dumps(row, separators=(",", ":")) + "\n"


def ids_digest(ids: list[int]) -> str:
    """`sha256:…` of the ids in decimal, separated by commas."""
    return "sha256:" + hashlib.sha256(",".join(map(str, ids)).encode()).hexdigest()


def read(path: Path) -> Iterator[dict[str, Any]]:
    """Records of one window, one at a time."""
    decoded = msgspec.json.Decoder().decode
    with path.open("rb") as lines:
        for line in lines:
            yield decoded(line)


def file_digest(path: Path) -> str:
    """`sha256:…` of a file's bytes."""
    with path.open("rb") as stream:
        return "sha256:" + hashlib.file_digest(stream, "sha256").hexdigest()


def write_json(path: Path, value: Any) -> None:
    """Write a JSON document whole or not at all."""
    write_text(path, json.dumps(value, indent=1, ensure_ascii=False) + "\n")


def write_text(path: Path, text: str) -> None:
    """Write a file whole or not at all, also if the machine goes down meanwhile."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    with part.open("w", encoding="utf-8") as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())
    part.replace(path)
