"""The result entry: what a run says of itself, signed, in the shape of the schema."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from speclint.canonical import digest, entry_digest, rounded, spec_digest
from speclint.history import Base
from speclint.signature import NAMESPACES, statement
from specrun import conclude, manifest, record
from specrun.append import append_entry
from specrun.errors import EnvironmentTrouble, Refused, SpecrunError
from specrun.launch import mask_log
from specrun.pack import Damaged, listed
from specrun.prepare import shaped
from specrun.rejudge import unlike
from specrun.run import Run, kept_in, now
from specrun.sign import fingerprint, principal_of, sign
from specrun.who import who_of

NAME = "conclusion.json"


def finish(run: Run) -> dict[str, Any]:
    """Write `conclusion.json`, and the manifest over every file of the run, which ends it; returns the conclusion.

    Raises EnvironmentTrouble if the folder cannot be written, or the clock now stands before the run's start.
    """
    ended = now()
    if ended < run.plan["started"]:
        why = f"the clock was set back: run {run.folder.name} began at {run.plan['started']}, and now it is {ended}"
        raise EnvironmentTrouble(why, f"set the clock; then `specrun run --resume {run.folder.name}` concludes, all is measured")
    with kept_in(run.folder):
        for log in run.folder.rglob("*.log"):
            mask_log(log)  # of servers that were killed with their runner, too
        found = {"ended": ended, **six_digits(conclude.conclusion(run))}
        record.write_json(run.folder / NAME, found)
        manifest.write(run.folder)
    return found


def read_conclusion(run: Run) -> dict[str, Any]:
    """The conclusion of a finished run. Raises SpecrunError if it has none yet."""
    try:
        found: dict[str, Any] = json.loads((run.folder / NAME).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        hint = f"finish it with `specrun run --resume {run.folder.name}`"
        raise SpecrunError(f"run {run.folder.name} is not finished: it has no {NAME}", hint) from error
    return found


def six_digits(value: Any) -> Any:
    """The same document with every non-integer number at 6 significant digits, half to even."""
    if isinstance(value, dict):
        return {key: six_digits(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [six_digits(inner) for inner in value]
    return rounded(value) if isinstance(value, float) else value


def recompute(folder: Path) -> dict[str, Any]:
    """The parts of an entry that follow from the records, computed again; for `specrun verify`."""
    from specrun.run import load

    run = load(folder)
    found: dict[str, Any] = six_digits(conclude.conclusion(run))
    return {"spec": spec_digest(run.data), **found}


def intact(run: Run) -> None:
    """The files of a finished run are those of its manifest, and its conclusion follows from them. Raises Damaged."""
    listed(run.folder)
    stored = {"spec": run.plan["digest"], **read_conclusion(run)}
    wrong = [at for key, value in recompute(run.folder).items() for at in unlike(stored.get(key), value, f"/{key}")]
    if wrong:
        why = f"{', '.join(wrong[:3])} in {NAME} does not follow from its records"
        hint = f"bring its files back as they were, and sign with the specpair that ran it ({run.plan['tool']['specpair']})"
        raise Damaged(f"run {run.folder.name} is not signed: {why}", hint)


def unsigned(run: Run, data: dict[str, Any], signer: str) -> dict[str, Any]:
    """The whole entry but its signature. `data`: the file that it will be appended to, which names the results before it."""
    plan, found = run.plan, read_conclusion(run)
    files = manifest.read(run.folder)
    windows = [name for name in files if name.endswith("records.jsonl") and ".void" not in name]
    manifest_digest = digest(files)
    return {
        "id": plan["id"],
        "attempts": plan["attempts"],
        "started": plan["started"],
        "ended": found["ended"],
        "spec": plan["digest"],
        "sections": plan["sections"],
        "approvals": plan["approvals"],
        "previous": heads(data.get("results") or []),
        "tool": plan["tool"],
        "engine": plan["engine"],
        "host": plan["host"],
        "placement": run.data["pair"]["placement"],
        **{
            key: found[key]
            for key in ("established", "arms", "config_diff", "figures", "ratios", "verdicts", "diagnosis", "sweep", "scope")
            if key in found
        },
        "records": {
            "manifest": manifest_digest,
            "files": len(files),
            "requests": sum(_lines(run.folder / name) for name in windows),
        },
        "signer": signer,
    }


def _lines(path: Path) -> int:
    return sum(1 for _ in record.read(path))


def heads(results: list[dict[str, Any]]) -> list[str]:
    """Digests of the results that no other names as previous: usually the last one, several after a merge."""
    named = {other for result in results for other in result.get("previous", [])}
    return [own for result in results if (own := entry_digest(result)) not in named]


def append(run: Run, path: Path, key: Path, signer: str | None = None, base: Base | None = None) -> dict[str, Any]:
    """Sign a finished run and append it to the spec file; returns the entry. With a `base` it says who may sign.

    Raises Refused if the key belongs to nobody who may sign, EnvironmentTrouble without OpenSSH, NotWritten.
    """
    data = shaped(path)
    who = who_of(path, data, base)
    principal = signer or principal_of(key, who.trust, NAMESPACES["result"])
    if principal is None:
        raise Refused(
            f"key {fingerprint(key)} is not among the {who.allowed} for {path}",
            "add its line to the allowed-signers file that speclint.toml names, or name the signer with --signer",
        )
    entry = unsigned(run, data, principal)
    entry["signature"] = sign(statement("result", data["name"], entry["spec"], entry), key, NAMESPACES["result"])
    outcome = who.verify("result", data, entry)
    if not outcome.ok:
        raise Refused(f"{principal} may not sign results with this key: {outcome.reason}", "see the allowed-signers file")
    append_entry(path, "results", entry)
    return entry
