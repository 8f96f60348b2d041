"""Attempts: written and fsynced before the first measured request, so that ten tries and one published cannot look like one."""

from __future__ import annotations

import copy
import fcntl
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from speclint.canonical import digest
from speclint.replace import fsync_folder


def keys(data: dict[str, Any]) -> dict[str, str]:
    """What attempts are counted by, whatever the spec calls itself: the pair without the number of draft tokens, so that
    trying every K counts as trying one pair, and what is asked of it. The lock, which follows from both, is left out."""
    pair = copy.deepcopy(data["pair"])
    pair["speculative"].pop("num_speculative_tokens", None)
    return {"pair": digest(pair), "spec": digest({"pair": data["pair"], "protocol": data["protocol"]})}


def add(ledger: Path, run: str, data: dict[str, Any], when: str) -> dict[str, int]:
    """Append an attempt, fsynced, and return how many of this pair and of this spec are known, this one included.

    Known are those of the ledger and the results that stand in the file, wherever they were measured: a lower bound.
    """
    own = keys(data)
    ledger.parent.mkdir(parents=True, exist_ok=True)
    with ledger.open("a+b") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)  # until it is closed: two runs that begin at once both count
        torn = _torn(stream)
        stream.write(b"\n" * torn + json.dumps({"run": run, "time": when, **own}).encode() + b"\n")
        stream.flush()
        os.fsync(stream.fileno())
    fsync_folder(ledger.parent)
    rows = list(attempts(ledger))
    published = {str(result.get("id")) for result in data.get("results") or []}
    return {key: len(published | {str(row.get("run")) for row in rows if row.get(key) == own[key]}) for key in own}


def attempts(ledger: Path) -> Iterator[dict[str, Any]]:
    """Rows of a ledger. A line that a crash or a full disk cut short is left out: the count is a lower bound anyway."""
    for line in ledger.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            row = json.loads(line)
        except ValueError:
            continue
        if isinstance(row, dict):
            yield row


def _torn(stream: BinaryIO) -> bool:
    """Whether the last line has no end."""
    if stream.seek(0, os.SEEK_END) == 0:
        return False
    stream.seek(-1, os.SEEK_END)
    return stream.read(1) != b"\n"
