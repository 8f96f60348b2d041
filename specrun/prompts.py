"""Prompts kept with the run: what was sent stays readable after a generator or a file has changed. Of private ones, digests."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from speclint.canonical import digest
from speclint.workload import Prompt, WorkloadError, block_prompts, is_private, prompts_digest
from specrun import record
from specrun.errors import EnvironmentTrouble

FOLDER = "prompts"


def keep(folder: Path, data: dict[str, Any], spec_folder: Path, block: int) -> None:
    """Write the prompts of a block into a run folder, one JSON Lines file for each workload, a line for each request in order.

    Raises EnvironmentTrouble if a prompt file is no longer what it was when the run began.
    """
    for workload in data["protocol"]["workloads"]:
        try:
            prompts = block_prompts(workload, data["protocol"], spec_folder, block)
        except WorkloadError as error:
            raise EnvironmentTrouble(str(error), "bring the file back; then `specrun run --resume ID` goes on") from error
        lines = (json.dumps(_row(prompt, is_private(workload)), ensure_ascii=False) + "\n" for prompt in prompts)
        record.write_text(kept_in(folder, workload["id"], block), "".join(lines))


def kept_in(folder: Path, workload: str, block: int) -> Path:
    """The file of one workload and block."""
    return folder / FOLDER / f"b{block:02d}-{workload}.jsonl"


def differences(folder: Path, data: dict[str, Any]) -> Iterator[str]:
    """Kept prompts that are not those of the spec's lock, in words; those of which only digests are kept cannot differ."""
    for workload in data["protocol"]["workloads"]:
        if is_private(workload):
            continue
        locked = data["lock"]["workloads"][workload["id"]]["blocks"]
        for block, expected in enumerate(locked, 1):
            path = kept_in(folder, workload["id"], block)
            if path.is_file() and _digest_of(path) != expected:
                yield f"{path.relative_to(folder)} is not what the lock has"


def _digest_of(path: Path) -> str | None:
    """The digest of a file's prompts as the lock has it; None where a line holds no prompt."""
    try:
        return prompts_digest([Prompt(row["content"], row["max_tokens"]) for row in record.read(path)])
    except (ValueError, KeyError, TypeError):
        return None


def _row(prompt: Prompt, hidden: bool) -> dict[str, Any]:
    content = {"sha256": digest(prompt.content)} if hidden else {"content": prompt.content}
    return content | {"max_tokens": prompt.max_tokens}
