"""`speclint lock`: writes the lock's own lines of a spec, or says what would change in them and why it matters."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from speclint import document, edit, render
from speclint.diagnostic import Diagnostic
from speclint.lint import inspect
from speclint.lock.errors import LockError
from speclint.lock.facts import build_lock
from speclint.lock.format import FORMAT, stated_format
from speclint.lock.resolve import COMMIT
from speclint.spec import Spec

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

    Status 0: written or up to date; 1: it differs (`check`), must not be changed, the spec is not what a lock can be made of, or
    pins in it are still to be corrected; 2: it could not be made. A lock that was approved is rewritten only with `update`, that
    of a spec with results never; its layout changes only with `upgrade`, which implies `update`.
    """
    try:
        read = document.read(path)
        if findings := _unusable(read, path.parent):
            return FOUND, [f"{findings}\n", f"{path}: no lock was made: mend this first"]
        if stated_format(read.data) > FORMAT:
            newer = f"its lock has format {stated_format(read.data)}, this speclint knows {FORMAT}"
            return TROUBLE, [f"{path}: {newer}: use the one that wrote it"]
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
    old = Spec(read.data).lock
    found, pins = changes(old, new), _pins_to_correct(read.data, new)
    if check:
        lines = [*_told(old, new, found), *pins]
        return (FOUND if lines else OK), lines or [f"{path}: the lock is up to date", *_older(new)]
    if not found:
        return FOUND if pins else OK, [f"{path}: the lock is up to date", *_older(new), *pins]
    refusal = _must_not_change(read.data, update)
    if refusal:
        return FOUND, [*_told(old, new, found), f"{path}: {refusal}"]
    _write(path, read.source, _with_known(old, new))
    told = [*(_told(old, new, found) if old else []), f"{path}: lock written", *pins, *_stale_approvals(read.data)]
    return FOUND if pins else OK, told


def _unusable(read: document.Document, folder: Path) -> str:
    """What `speclint check` says of the file's reading and of the shape of what its author wrote; nothing if it is sound."""
    report = inspect(read, folder, select=("SL1",))
    mine = [item for item in report.diagnostics if item.code.startswith("SL0") or (item.code.startswith("SL1") and _mine(item))]
    return render.text(report._replace(diagnostics=mine))


def _mine(item: Diagnostic) -> bool:
    return item.path.split("/")[1:2] not in [[section] for section in WRITTEN_BY_TOOLS]


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
    ids = ", ".join(str(row.get("id")) for _, row in Spec(data).approvals)
    return [f"approvals given to the lock before this one no longer hold: {ids}"] if ids else []


def _write(path: Path, source: bytes, lock: dict[str, Any]) -> None:
    def with_lock(now: bytes) -> bytes:
        if now != source:
            raise edit.FileBusy(f"{path} was changed while it was being locked; nothing was written")
        return edit.replace_section(now, "lock", lock)

    edit.rewrite(path, with_lock)


def _told(old: dict[str, Any] | None, new: dict[str, Any], found: list[Change]) -> list[str]:
    if not old:
        return ["there is no lock yet"]
    sections = {
        section: old.get(section) or new.get(section) for section in {**old, **new} if (section in old) != (section in new)
    }
    whole = [_whole(section, len(list(_leaves(facts))), section in new) for section, facts in sections.items()]
    return whole + [str(change) for change in found if change.path.partition(".")[0] not in sections]


def _whole(section: str, facts: int, came: bool) -> str:
    """A section that the pair had no use for before, or has none for now, on one line."""
    return f"{section}: nothing -> {facts} facts" if came else f"{section}: {facts} facts -> nothing"


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
        before, after = Spec({"lock": old}).section("lock", role), new.get(role)
        if after and before.get("revision") == after["revision"] and COMMIT.fullmatch(after["revision"]):
            kept[role] = after | _known(Spec(before), after)
    return kept


def _known(before: Spec, after: dict[str, Any]) -> dict[str, Any]:
    stated, named = before.section("weights"), before.at("config", "base_model", kind=str)
    weights = {"weights": stated} if stated and "headers" in after["weights"] else {}
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
