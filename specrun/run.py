"""A run folder: its frozen plan, who holds it, and the stages that fill it. Each stage reads what the one before left.

prepare    lint, approvals, engine and files against the spec; ledger; plan.json (see prepare.py)
first      every arm started once and driven through every cell, unmeasured (blocks.py)
blocks     b01/ … bNN/: the measured windows (blocks.py)
scores     scores/: a sample of the answers, scored by target and draft alone, unmeasured (scores.py)
conclude   conclusion.json: established, figures, verdicts, diagnosis (conclude.py)
"""

from __future__ import annotations

import errno
import fcntl
import json
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from speclint import __version__, releases
from speclint.canonical import section_digests, spec_digest
from speclint.releases import Release
from specrun import host, ledger, record
from specrun.errors import EnvironmentTrouble, Refused, SpecrunError

FULL = frozenset((errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS))  # what a write to an open file may meet


@dataclass(frozen=True, slots=True)
class Run:
    """A run folder and its frozen plan."""

    folder: Path
    plan: dict[str, Any]

    @property
    def data(self) -> dict[str, Any]:
        spec: dict[str, Any] = self.plan["spec"]
        return spec

    @property
    def release(self) -> Release:
        found = releases.load(self.data["pair"]["engine"]["version"])
        if found is None:
            raise SpecrunError(f"no release data for vLLM {self.data['pair']['engine']['version']}", "see `speclint releases`")
        return found

    @property
    def spec_folder(self) -> Path:
        return Path(self.plan["spec_folder"])

    @property
    def device(self) -> str:
        return str(self.data["pair"]["placement"]["device"])

    def workload(self, name: str) -> dict[str, Any]:
        return next(w for w in self.data["protocol"]["workloads"] if w["id"] == name)

    def block_folder(self, block: int) -> Path:
        return self.folder / f"b{block:02d}"


def now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def create(spec_path: Path, data: dict[str, Any], approvals: list[str], engine: dict[str, Any], runs: Path, python: str) -> Run:
    """Write the attempt to the ledger, fsynced, then freeze the plan into a new run folder."""
    began = now()
    run_id = f"{re.sub('[-:]', '', began)}-{data['name']}-{secrets.token_hex(2)}"
    spec: dict[str, Any] = {key: data[key] for key in ("schema", "name", "pair", "protocol", "lock") if key in data}
    with kept_in(runs):
        attempts = ledger.add(runs / "ledger.jsonl", run_id, data, began)
    frozen = {
        "format": 1,
        "id": run_id,
        "started": began,
        "attempts": attempts,
        "spec_file": str(spec_path.resolve()),
        "spec_folder": str(spec_path.resolve().parent),
        "spec": spec,
        "digest": spec_digest(data),
        "sections": section_digests(data),
        "approvals": approvals,
        "python": python,
        "tool": {"specpair": __version__},
        "engine": engine,
        "host": host.facts(),
    }
    folder = runs / run_id
    with kept_in(folder):
        record.write_json(folder / "plan.json", frozen)
    return Run(folder, frozen)


@contextmanager
def kept_in(folder: Path) -> Iterator[None]:
    """Turn a disk that is full, or a folder that may not be written, into a message; other trouble is told as it is."""
    try:
        yield
    except OSError as error:
        if not _about(error, folder):
            raise
        hint = "make room, or name another folder with --runs; a run that had begun goes on with `specrun run --resume ID`"
        raise EnvironmentTrouble(f"{folder} cannot be written: {error}", hint) from error


def _about(error: OSError, folder: Path) -> bool:
    """Whether an error is the folder's: named with it, with a path inside it or above it, or a full disk."""
    if not isinstance(error.filename, str):
        return error.errno in FULL
    here, named = folder.absolute(), Path(error.filename).absolute()
    return named.is_relative_to(here) or here.is_relative_to(named)


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Hold a run folder for this process. Raises Refused if another process measures into it."""
    with (folder / ".lock").open("w", encoding="utf-8") as held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Refused(f"another process is at work on run {folder.name}", "let it finish, or stop it") from None
        yield


def load(folder: Path) -> Run:
    """A run folder left by an earlier process. Raises SpecrunError if it is none."""
    try:
        return Run(folder, json.loads((folder / "plan.json").read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:
        raise SpecrunError(
            f"{folder} is no run folder: {error}", "runs are folders under runs/, named in `specrun run`'s output"
        ) from error
