"""What of a spec file's approvals and results holds, claim by claim, and what each claim rests on.

A signature says who vouches for these bytes; it does not prove that a GPU ran. Whether entries were removed or changed
since they were reviewed is not in the file: that is a comparison with its history, against a base branch.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from speclint import __version__, document
from speclint.canonical import digest, entry_digest, section_digests, spec_digest
from speclint.document import Document
from speclint.history_check import History
from speclint.history_reports import whole
from speclint.lint import inspect
from speclint.newer import maker_of
from speclint.scalar import short
from speclint.signature import Kind, signed_at, verify_entry
from speclint.workload import is_private
from specrun import manifest, prompts
from specrun.errors import SpecrunError
from specrun.rejudge import contradictions, unlike
from specrun.who import Who, who_of

HISTORY = ("SL606", "SL615")
"""What is a matter of the base branch; all else about the file itself has rows of its own."""
VERSION = re.compile(r"[0-9]+(\.[0-9]+)*((a|b|rc)[0-9]+)?(\.post[0-9]+)?(\.dev[0-9]+)?(\+[a-z0-9]+(\.[a-z0-9]+)*)?")
"""A version in the normal form of PEP 440; an entry's signer may write anything, and other text must not get into a command."""
Recompute = Callable[[Path], Mapping[str, Any]]
"""From a run folder, the parts of a result entry that follow from its records (figures, ratios, verdicts, …)."""


@dataclass(frozen=True, slots=True)
class Row:
    """One claim and whether it holds; `detail` says by what, or why not."""

    claim: str
    outcome: Literal["ok", "failed", "not_checked"]
    detail: str


def verify(
    path: Path, *, records: Path | None = None, recompute: Recompute | None = None, history: History | None = None
) -> list[Row]:
    """Check every approval and result of the file. `records`: a run folder, or the folder that holds several.

    With a `history` the whole repository is held against its base branch, whose policy says who may sign.
    Raises OSError if the file cannot be read. A file whose shape is wrong gives one failed row.
    """
    read = document.read(path)
    shape = [item for item in inspect(read, path.parent).diagnostics if item.code.startswith(("SL0", "SL1"))]
    wrong = next((item for item in shape if item.severity == "error"), None)
    if wrong:
        why = "; ".join(filter(None, (f"line {wrong.line}: {wrong.message}", wrong.help)))
        return [Row("the file has the shape of a spec", "failed", why)]
    data, base = read.data, history.base_of(history.path(path)) if history else None
    who = who_of(path, data, base)
    rows = [*_history(history, read, path)] if history else []
    rows += [row for entry in data.get("approvals") or [] for row in _approval(data, entry, who)]
    for index, result in enumerate(data.get("results") or []):
        rows += [*_result(data, index, result, who), *_records(data, result, records, recompute)]
    return rows


def _history(history: History, read: Document, path: Path) -> Iterator[Row]:
    ref = history.compared.shown
    report = inspect(read, path.parent, base=history.base_of(history.path(path)))
    told = [(item, f"{item.file}: {item.message}") for one in whole(history, [report], [path]) for item in one.diagnostics]
    wrong = [said for item, said in told if item.severity == "error" and (item.code in HISTORY or item.file != str(path))]
    yield _row(f"every approval and result of {ref} stands in this repository as it was", wrong, history.summary())
    if history.changes and not wrong:
        said = "; ".join(f"{change.path}: {change.said}" for change in history.changes)
        yield Row("who may sign is what the base says", "not_checked", f"it is, and the change alters it: {said}")


def _approval(data: dict[str, Any], entry: dict[str, Any], who: Who) -> Iterator[Row]:
    claim = f"approval {entry['id']}"
    yield _signature(claim, "approval", data, entry, who)
    yield _same_spec(claim, data, entry)


def _result(data: dict[str, Any], index: int, entry: dict[str, Any], who: Who) -> Iterator[Row]:
    claim = f"result {entry['id']}"
    yield _signature(claim, "result", data, entry, who)
    same = _same_spec(claim, data, entry)
    yield same
    yield _approved(claim, data, entry, who)
    yield _chain(claim, data["results"][:index], entry)
    if same.outcome == "ok":
        wrong = contradictions(entry, data["protocol"])
        yield _row(f"{claim}: verdicts follow from its intervals and blocks", wrong, f"{len(entry['verdicts'])} verdicts")
    else:
        yield Row(f"{claim}: verdicts follow from its intervals and blocks", "not_checked", "its criteria are not at hand")


def _signature(claim: str, kind: Kind, data: dict[str, Any], entry: dict[str, Any], who: Who) -> Row:
    claim = f"{claim}: signed by who it says, unchanged since"
    outcome = who.verify(kind, data, entry)
    if outcome.ok:
        return Row(claim, "ok", f"{outcome.reason}, key {outcome.fingerprint}")
    then = signed_at(kind, entry)
    if outcome.code == "SL603" and then and verify_entry(kind, data["name"], entry, who.trust, then).ok:
        detail = f"{outcome.reason}; it was allowed at the entry's own time, which is the signer's word"
        return Row(claim, "not_checked", detail)
    return Row(claim, "failed", outcome.reason)


def _same_spec(claim: str, data: dict[str, Any], entry: dict[str, Any]) -> Row:
    claim = f"{claim}: is for this spec"
    if entry["spec"] == spec_digest(data):
        return Row(claim, "ok", entry["spec"])
    own = section_digests(data)
    changed = [name for name, value in entry["sections"].items() if own.get(name) != value]
    return Row(claim, "failed", f"it is for {entry['spec']}; differing: {', '.join(changed) or 'schema or name'}")


def _approved(claim: str, data: dict[str, Any], entry: dict[str, Any], who: Who) -> Row:
    approvals = {entry_digest(approval): approval for approval in data.get("approvals") or []}
    named = [approvals[digest] for digest in entry["approvals"] if digest in approvals]
    wrong = [f"approval {digest} is not in the file" for digest in entry["approvals"] if digest not in approvals]
    wrong += [f"{one['id']} is for another spec" for one in named if one["spec"] != entry["spec"]]
    wrong += [f"{one['id']} was given after the run began" for one in named if one["time"] > entry["started"]]
    people = {one["approver"] for one in named} - ({entry["signer"]} if who.trust.other_than_signer else set())
    if len(people) < who.trust.min_approvals:
        wrong.append(f"{len(people)} approvers count, {who.trust.min_approvals} are needed")
    return _row(f"{claim}: ran under approvals that stand here", wrong, ", ".join(sorted(people)) or "none is needed")


def _chain(claim: str, before: list[dict[str, Any]], entry: dict[str, Any]) -> Row:
    earlier = {entry_digest(other): other["id"] for other in before}
    wrong = [f"{digest} is not among the results before it" for digest in entry["previous"] if digest not in earlier]
    if entry["id"] in earlier.values():
        wrong.append("the same run stands in the file twice")
    names = ", ".join(earlier[digest] for digest in entry["previous"] if digest in earlier)
    return _row(f"{claim}: follows the results it names", wrong, names or "it names none")


def _records(data: dict[str, Any], entry: dict[str, Any], records: Path | None, recompute: Recompute | None) -> Iterator[Row]:
    of = f"result {entry['id']}: "
    claim, kept, recomputed = of + "raw records", of + "prompts kept are the locked ones", of + "figures follow from the records"
    folder = _run_folder(entry["id"], records) if records else None
    if folder is None:
        why = f"no run {entry['id']} in {records}" if records else "no run folder was given (--records)"
        yield from (Row(name, "not_checked", why) for name in (claim, kept, recomputed))
        return
    intact = _manifest(claim, entry, folder)
    yield intact
    if intact.outcome == "ok" and recompute:
        yield _prompts(kept, data, folder)
        yield _figures(recomputed, entry, folder, recompute)
    else:
        why = "the records are not those that were signed" if recompute else "not asked for"
        yield from (Row(name, "not_checked", why) for name in (kept, recomputed))


def _run_folder(run: str, records: Path) -> Path | None:
    """The folder of the run, by the id that its plan states: `records` itself or the folder of that name in it."""
    for folder in (records, records / run):
        try:
            plan = json.loads((folder / "plan.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
        if isinstance(plan, dict) and plan.get("id") == run:
            return folder
    return None


def _manifest(claim: str, entry: dict[str, Any], folder: Path) -> Row:
    try:
        files = manifest.read(folder)
    except (OSError, ValueError, KeyError, TypeError) as error:
        return Row(claim, "failed", f"{folder / manifest.NAME} cannot be read: {error}")
    if digest(files) != entry["records"]["manifest"]:
        return Row(claim, "failed", f"{folder / manifest.NAME} is not the list that was signed")
    return _row(claim, manifest.differences(folder, files), f"{len(files)} files as signed, in {folder}")


def _prompts(claim: str, data: dict[str, Any], folder: Path) -> Row:
    """Kept prompts against the lock; of private ones the run has digests only, which say nothing about the lock's."""
    files = list((folder / prompts.FOLDER).glob("*.jsonl"))
    hidden = [workload["id"] for workload in data["protocol"]["workloads"] if is_private(workload)]
    if not files or "lock" not in data or len(hidden) == len(data["protocol"]["workloads"]):
        why = "they are private" if hidden else "the run has kept none" if not files else "the file has no lock"
        return Row(claim, "not_checked", why)
    detail = f"{len(files)} files" + (f"; not checked, because private: {', '.join(hidden)}" if hidden else "")
    return _row(claim, list(prompts.differences(folder, data)), detail)


def _figures(claim: str, entry: dict[str, Any], folder: Path, recompute: Recompute) -> Row:
    maker = maker_of(entry)
    try:
        found = recompute(folder)
    except (SpecrunError, KeyError, TypeError, ValueError, IndexError) as error:
        if maker in ("", __version__):
            raise
        return Row(claim, "failed", f"the records cannot be read here ({type(error).__name__}: {error}); {by_its_maker(maker)}")
    wrong = [pointer for key, value in found.items() for pointer in unlike(entry.get(key), value, f"/{key}")]
    row = _row(claim, [f"{pointer} differs" for pointer in wrong], ", ".join(found))
    return replace(row, detail=f"{row.detail}; {by_its_maker(maker)}") if wrong and maker else row


def by_its_maker(maker: str) -> str:
    """Which version made the figures and which one computes them again, and what to do where these differ."""
    if maker == __version__:
        return f"specpair {maker} made it, and this is {__version__}: not what its records say, unless code was changed"
    if not VERSION.fullmatch(maker):
        return f"made by {short(ascii(maker))}, which is no version of specpair; this is {__version__}"
    again = f"`pip install specpair=={maker}` and verify again, which tells a change of the tool from one of the figures"
    return f"specpair {maker} made it, this is {__version__}: {again}"


def _row(claim: str, wrong: list[str], detail: str) -> Row:
    if not wrong:
        return Row(claim, "ok", detail)
    more = f" (and {len(wrong) - 3} more)" if len(wrong) > 3 else ""
    return Row(claim, "failed", "; ".join(wrong[:3]) + more)
