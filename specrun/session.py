"""One `specrun run`, from the file to the appended result."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import click

from speclint.canonical import spec_digest
from speclint.history import Base
from speclint.signature import NAMESPACES, verify
from specrun import blocks, conclude, device, entry, launch, manifest, plan, prepare, record, run
from specrun.compare import status
from specrun.errors import Interrupted, Refused, SpecrunError
from specrun.progress import Progress
from specrun.report.text import report
from specrun.run import Run
from specrun.sign import principal_of, sign
from specrun.who import who_of


def execute(
    path: Path,
    *,
    key: Path | None,
    signer: str | None,
    quiet: bool,
    python: str,
    runs: Path,
    only_establish: bool = False,
    unapproved: bool = False,
    base: Base | None = None,
) -> int:
    """Check everything that can be checked before a server starts, then measure, conclude and append. Returns the exit status."""
    data = prepare.checked(path, base)
    who = may_sign(path, data, key, signer, base) if key else signer
    approvals = approved(path, data, who, unapproved, base)
    probed = launch.probe(python)
    prepare.engine(data, probed)
    prepare.artifacts(path, data)
    prepare.room_for_result(path)
    device.free(data["pair"])
    made = run.create(path, data, approvals, probed, runs, python)
    return measured(made, key=key, signer=who, quiet=quiet, only_establish=only_establish, base=base)


def may_sign(path: Path, data: dict[str, Any], key: Path, signer: str | None, base: Base | None = None) -> str:
    """The principal under which the key may sign results, tried before anything is measured. Raises Refused."""
    who = who_of(path, data, base)
    if who.trust.problem:
        raise Refused(who.in_words(who.trust.problem), "mend speclint.toml")
    name = signer or principal_of(key, who.trust, NAMESPACES["result"])
    if name is None:
        raise Refused(
            f"{key} belongs to none of the {who.allowed} for {path}", "see `allowed_signers` in speclint.toml, or --signer"
        )
    probe = b"may this key sign results?"
    outcome = verify(probe, sign(probe, key, NAMESPACES["result"]), NAMESPACES["result"], name, who.trust)
    if not outcome.ok:
        raise Refused(f"{name} may not sign results with {key}: {who.in_words(outcome.reason)}", "name another key or --signer")
    return name


def approved(path: Path, data: dict[str, Any], signer: str | None, unapproved: bool, base: Base | None = None) -> list[str]:
    """The approvals it runs under; none with --unapproved, where there are too few."""
    try:
        return prepare.approvals(path, data, signer, base)
    except Refused:
        if not unapproved:
            raise
        return []


def resumed(folder: Path, *, key: Path | None, signer: str | None, quiet: bool, base: Base | None = None) -> int:
    """Go on with a run: finished blocks stay, an interrupted one is repeated whole, its windows kept as void."""
    found = run.load(folder)
    manifest.open_still(folder)
    path = Path(found.plan["spec_file"])
    data = prepare.readable(path).data
    if spec_digest(data) != found.plan["digest"]:
        raise Refused(f"{path} changed since run {folder.name} began", "restore it, or start a new run")
    if launch.probe(found.plan["python"]) != found.plan["engine"]:
        raise Refused(f"the engine changed since run {folder.name} began", "reinstall it as it was, or start a new run")
    prepare.artifacts(path, data)
    who = may_sign(path, data, key, signer, base) if key else signer
    return measured(found, key=key, signer=who, quiet=quiet, base=base)


def measured(
    made: Run,
    *,
    key: Path | None,
    signer: str | None,
    quiet: bool,
    only_establish: bool = False,
    base: Base | None = None,
) -> int:
    """Measure, conclude, append if there is a key, report. A run that was interrupted keeps what it has."""
    last = 1 if only_establish else None
    progress = Progress(blocks.steps(made, last), quiet=quiet)
    progress.line(f"run {made.folder}: {plan.requests_in_all(made.data)} requests, {plan.server_starts(made.data)} server starts")
    try:
        blocks.measure(made, progress, blocks=last)
    except KeyboardInterrupt:
        message = f"interrupted; servers are stopped, what was measured is kept in {made.folder}"
        raise Interrupted(message, f"`{going_on(made)}` goes on") from None
    except SpecrunError:
        progress.line(f"run {made.folder.name} is incomplete; what was measured is kept: `{going_on(made)}`")
        raise
    if only_establish:
        return establishment(made)
    found = entry.finish(made)
    result: dict[str, Any] = dict(entry.unsigned(made, prepare.readable(Path(made.plan["spec_file"])).data, signer or "nobody"))
    if key:
        result = entry.append(made, Path(made.plan["spec_file"]), key, signer, base)
        progress.line(f"appended to {made.plan['spec_file']}, signed by {result['signer']}")
    click.echo(report(made.data, result))
    if not key:
        click.echo(f"Not appended: `specrun append {made.folder} --key KEY` signs it and appends it.", err=True)
    return status(found["verdicts"], found["established"]["verdict"] == "established")


def going_on(made: Run) -> str:
    """The command that goes on with a run."""
    runs = "" if made.folder.parent == Path("runs") else f" --runs {shlex.quote(str(made.folder.parent))}"
    return f"specrun run --resume {made.folder.name}{runs}"


def establishment(made: Run) -> int:
    """Print the checks of one block; 0 if the pair ran as meant, 20 if not."""
    found = conclude.conclusion(made)
    record.write_json(made.folder / "establishment.json", found["established"])
    for row in found["established"]["checks"]:
        click.echo(f"{row['outcome']:8} {row['check']}: {row['detail']}")
    return 0 if found["established"]["verdict"] == "established" else 20


def result_of(source: Path, number: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Spec data and result entry of a spec file (result `number`) or of a finished run folder."""
    if source.is_dir():
        found = run.load(source)
        return found.data, {**entry.unsigned(found, {}, "nobody")}
    data = prepare.shaped(source)
    results = data.get("results")
    if not results:
        raise SpecrunError(f"{source} has no results", f"`specrun run {source} --key KEY` makes one")
    try:
        return data, results[number]
    except IndexError:
        raise SpecrunError(
            f"{source} has {len(results)} results, there is no number {number}", "count from 0, or -1 for the last"
        ) from None
