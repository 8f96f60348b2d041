"""`speclint lock`: writes the lock's own lines of a spec, or says what would change in them and why it matters."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

from speclint import document, edit
from speclint.data import spec_schema
from speclint.lock.errors import LockError
from speclint.lock.facts import build_lock
from speclint.lock.format import FORMAT, stated_format
from speclint.lock.resolve import COMMIT

__all__ = ["Change", "build_lock", "changes", "lock_file"]

OK, FOUND, TROUBLE = 0, 1, 2
WRITTEN_BY_TOOLS = ("lock", "approvals", "results")
# The first prefix that fits a changed fact says why it matters.
WHY = (
    ("format", "another layout of the lock"),
    ("workloads", "other prompts would be measured"),
    ("pair.texts", "how often the draft reads text cut into other tokens than it was trained on"),
    ("pair.fallback", "another token stands in for those the other side lacks"),
    ("pair", "how many draft ids the target understands, and so acceptance"),
    ("target.revision", "other files than those the lock was made from"),
    ("draft.revision", "other files than those the lock was made from"),
    ("target.files", "the file is not the one that was reviewed"),
    ("draft.files", "the file is not the one that was reviewed"),
    ("target.weights", "another target: its answers, memory and speed"),
    ("draft.weights", "another draft: acceptance, memory and speed"),
    ("target.tokenizer", "what text the target's ids stand for, where answers stop, how prompts are split"),
    ("draft.tokenizer", "what text the draft's ids stand for"),
    ("target.config", "whether target and draft fit, and what the target costs"),
    ("draft.config", "whether target and draft fit, and what the draft costs"),
)


@dataclass(frozen=True, slots=True)
class Change:
    """One fact that is not what the lock says; an absent side is None."""

    path: str
    old: Any
    new: Any

    def __str__(self) -> str:
        why = next((reason for prefix, reason in WHY if self.path.startswith(prefix)), "")
        return f"{self.path}: {_shown(self.old)} -> {_shown(self.new)}" + (f" ({why})" if why else "")


def lock_file(path: Path, *, check: bool, update: bool, upgrade: bool = False) -> tuple[int, list[str]]:
    """Write the lock of a spec file, or with `check` only compare. Returns exit status and what to print.

    Status 0: written or up to date; 1: it differs (`check`), or must not be changed; 2: it could not be made. A lock
    that was approved is rewritten only with `update`, that of a spec with results never; its layout changes only with
    `upgrade`, which implies `update`.
    """
    try:
        read = document.read(path)
        trouble = _unusable(read)
        if trouble:
            return TROUBLE, [f"{path}: {line}" for line in trouble]
        data = {key: value for key, value in read.data.items() if key != "lock"} if upgrade else read.data
        new = build_lock(data, path.parent)
        return _settle(path, read, new, check=check, update=update or upgrade)
    except (LockError, edit.EditRefused) as error:
        return TROUBLE, [f"{path}: {error.message}", *([f"help: {error.hint}"] if error.hint else [])]
    except OSError as error:
        return TROUBLE, [f"{path}: {error.strerror or error}"]


def changes(old: dict[str, Any] | None, new: dict[str, Any]) -> list[Change]:
    """Facts of `new` that `old` does not state, in the order of the lock."""
    before, after = (dict(_leaves(lock)) for lock in (old or {}, _with_known(old, new)))
    paths = [*after, *(path for path in before if path not in after)]
    return [Change(p, before.get(p), after.get(p)) for p in paths if before.get(p) != after.get(p)]


def _settle(path: Path, read: document.Document, new: dict[str, Any], *, check: bool, update: bool) -> tuple[int, list[str]]:
    old = read.data.get("lock")
    found, pins = changes(old, new), _pins_to_correct(read.data, new)
    if check:
        lines = [*_told(old, found), *pins]
        return (FOUND if lines else OK), lines or [f"{path}: the lock is up to date", *_older(new)]
    if not found:
        return OK, [f"{path}: the lock is up to date", *_older(new), *pins]
    refusal = _must_not_change(read.data, update)
    if refusal:
        return FOUND, [*_told(old, found), f"{path}: {refusal}"]
    _write(path, read.source, _with_known(old, new))
    return OK, [*(_told(old, found) if old else []), f"{path}: lock written", *pins, *_stale_approvals(read.data)]


def _unusable(read: document.Document) -> list[str]:
    """Why no lock can be made of this file, or nothing: reading and shape are `speclint check`'s business."""
    if read.problems:
        return [f"line {problem.span.line}: {problem.code} {problem.message}" for problem in read.problems]
    own = {key: value for key, value in read.data.items() if key not in WRITTEN_BY_TOOLS}
    if stated_format(read.data) > FORMAT:
        return [f"its lock has format {stated_format(read.data)}, this speclint knows {FORMAT}: use the one that wrote it"]
    errors = sorted(Draft202012Validator(spec_schema()).iter_errors(own), key=lambda error: list(map(str, error.path)))
    return [f"{errors[0].json_path}: {errors[0].message}; see `speclint check`"] if errors else []


def _must_not_change(data: dict[str, Any], update: bool) -> str:
    if data.get("results"):
        return "the spec has results and is frozen; `specrun fork` starts a new one"
    if data.get("approvals") and not update:
        return "the lock was approved and is left as it is; `speclint lock --update` rewrites it, to be approved again"
    return ""


def _older(lock: dict[str, Any]) -> list[str]:
    told = f"it has format {lock['format']}; `speclint lock --upgrade` writes format {FORMAT}, which states more facts"
    return [told] if lock["format"] < FORMAT else []


def _stale_approvals(data: dict[str, Any]) -> list[str]:
    ids = ", ".join(str(row.get("id")) for row in data.get("approvals") or [])
    return [f"approvals given to the lock before this one no longer hold: {ids}"] if ids else []


def _write(path: Path, source: bytes, lock: dict[str, Any]) -> None:
    def with_lock(now: bytes) -> bytes:
        if now != source:
            raise edit.FileBusy(f"{path} was changed while it was being locked; nothing was written")
        return edit.replace_section(now, "lock", lock)

    edit.rewrite(path, with_lock)


def _told(old: dict[str, Any] | None, found: list[Change]) -> list[str]:
    return [str(change) for change in found] if old else ["there is no lock yet"]


def _pins_to_correct(data: dict[str, Any], lock: dict[str, Any]) -> list[str]:
    """What to paste where a stated revision is absent or is not what is there."""
    target, draft = lock["target"], lock.get("draft", {})
    spots = (
        (("target",), target["revision"]),
        (("target", "tokenizer"), target["tokenizer"].get("revision")),
        (("speculative",), draft.get("revision")),
    )
    return [line for keys, actual in spots if actual for line in _pin(data["pair"], keys, actual)]


def _pin(pair: dict[str, Any], keys: tuple[str, ...], actual: str) -> Iterator[str]:
    for key in keys:
        pair = pair.get(key) or {}
    stated = pair.get("revision")
    if stated != actual:
        was = f"says {stated}, but {pair.get('model')} is another" if stated else "is missing"
        yield f'pair.{".".join(keys)}.revision {was}; write  revision: "{actual}"'


def _with_known(old: dict[str, Any] | None, new: dict[str, Any]) -> dict[str, Any]:
    """What this machine's cache lacks of a hub model (headers, model card) and the lock knows of the same commit stands."""
    kept = dict(new)
    for role in ("target", "draft"):
        before, after = (old or {}).get(role), new.get(role)
        if before and after and before.get("revision") == after["revision"] and COMMIT.fullmatch(after["revision"]):
            kept[role] = after | _known(before, after)
    return kept


def _known(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    weights = {"weights": before["weights"]} if "headers" in after["weights"] else {}
    named = before["config"].get("base_model")
    return weights | ({"config": {**after["config"], "base_model": after["config"].get("base_model", named)}} if named else {})


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict) and (value or not path):
        for key, child in value.items():
            yield from _leaves(child, f"{path}.{key}" if path else str(key))
    else:
        yield path, value


def _shown(value: Any) -> str:
    text = "nothing" if value is None else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 80 else text[:77] + "..."
