"""The command line of specrun: options in, one function call, exit status out."""

from __future__ import annotations

import signal
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import click
from tabulate import tabulate

from speclint.credentials import masked
from specrun.errors import SpecrunError

if TYPE_CHECKING:
    from speclint.history import Base
    from speclint.history_check import History

UNCHECKED = """
Not checked here: whether entries were removed or changed since they were reviewed, and who wrote the speclint.toml beside the
file, from which the allowed signers come. `--base origin/main` compares with that branch and goes by its allowed signers."""
FILE = click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
KEY = click.option("--key", type=click.Path(path_type=Path), help="OpenSSH private key, or the public key of one in the agent.")
BASE = click.option(
    "--base", metavar="REF", help="Who may approve and sign is what this branch says, whatever the work tree says: origin/main."
)
PYTHON = click.option("--python", default=sys.executable, help="The engine's interpreter.  [default: this one]")
RUNS = click.option(
    "--runs", type=click.Path(path_type=Path), default=Path("runs"), help="Folder of the run folders.  [default: runs]"
)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="specpair")
def cli() -> None:
    """Run an approved pair spec on vLLM, target alone against target plus draft, and append signed results to it."""


@cli.command()
@PYTHON
def doctor(python: str) -> int:
    """Say what is installed here and whether it can run a spec."""
    from specrun.doctor import examine

    rows = list(examine(python))
    click.echo(tabulate([[row.outcome, row.what, row.detail] for row in rows], tablefmt="plain"))
    return 40 if any(row.outcome == "missing" for row in rows) else 0


@cli.command()
@FILE
@click.option("--command", "command", is_flag=True, help="Only the `vllm serve` line of each arm, shell-quoted.")
@PYTHON
def plan(file: Path, command: bool, python: str) -> int:
    """Print what a run would do: commands, order, requests, time. Touches nothing."""
    from specrun.outline import commands, outline
    from specrun.prepare import checked

    data = checked(file)
    click.echo(commands(data, file.parent) if command else outline(data, file.parent, python))
    return 0


@cli.command()
@FILE
@PYTHON
def predict(file: Path, python: str) -> int:
    """Foretell drafts, acceptance and tokens per step for every K, from target and draft served alone. Needs no approval.

    For greedy draft_model and ngram. It is what an undisturbed pair does: exact in float32, near that in 16 bits.
    """
    from specrun.predict import predict as foretell

    click.echo(foretell(file, python, lambda text: click.echo(text, err=True)))
    return 0


@cli.command()
@FILE
@KEY
@click.option("--approver", help="Principal of the allowed-signers file.  [default: the one this key belongs to]")
@BASE
@click.option("--yes", is_flag=True, help="Do not ask.")
def approve(file: Path, key: Path | None, approver: str | None, base: str | None, yes: bool) -> int:
    """Show what is approved, sign it, and append the approval."""
    from specrun.approve import approve as approve_spec
    from specrun.prepare import readable

    if key is None:
        raise click.UsageError("name the key to approve with: --key ~/.ssh/id_ed25519")
    readable(file)
    if not yes and not sys.stdin.isatty():
        raise click.UsageError("there is nobody to ask: approve with --yes, or from a terminal")

    def show(text: str) -> None:
        click.echo(text)
        if not yes:
            click.confirm("approve?", abort=True)

    with _base_of(file, base) as judge:
        entry = approve_spec(file, key, approver=approver, show=show, base=judge)
    click.echo(f"approved as {entry['id']}, appended to {file}")
    return 0


@cli.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False), required=False)
@KEY
@click.option("--signer", help="Principal of the allowed-signers file.  [default: the one this key belongs to]")
@click.option("--resume", metavar="ID", help="Go on with an interrupted run.")
@click.option("--only-establish", is_flag=True, help="One block, no verdict, nothing appended: does the pair run as meant?")
@click.option("--unapproved", is_flag=True, help="Run without approval; the result says so.")
@click.option("--quiet", is_flag=True, help="No progress.")
@BASE
@PYTHON
@RUNS
def run(file: Path | None, resume: str | None, base: str | None, **options: Any) -> int:
    """Run a spec and append the signed result. Without --key: measure now, `specrun append` later."""
    from specrun.run import load
    from specrun.session import execute, resumed

    if (file is None) == (resume is None):
        raise click.UsageError("name a spec file, or --resume ID")
    if file is not None:
        with _base_of(file, base) as judge:
            return execute(file, base=judge, **options)
    folder = options["runs"] / resume
    with _base_of(Path(load(folder).plan["spec_file"]), base) as judge:
        return resumed(folder, key=options["key"], signer=options["signer"], quiet=options["quiet"], base=judge)


@cli.command()
@click.argument("run_folder", metavar="RUN", type=click.Path(path_type=Path, file_okay=False))
@KEY
@click.option("--signer", help="Principal of the allowed-signers file.  [default: the one this key belongs to]")
@click.option(
    "--file", "file", type=click.Path(path_type=Path, dir_okay=False), help="Spec file.  [default: the one that was run]"
)
@BASE
def append(run_folder: Path, key: Path | None, signer: str | None, file: Path | None, base: str | None) -> int:
    """Sign a finished run and append it to its spec file: elsewhere than where it ran, or again after a merge conflict."""
    from specrun import entry
    from specrun.run import load

    if key is None:
        raise click.UsageError("name the key to sign with: --key ~/.ssh/id_ed25519")
    found = load(run_folder)
    path = file or Path(found.plan["spec_file"])
    if file is None and not path.exists():
        raise click.UsageError(f"{path}, which was run, is not on this machine: name the spec with --file")
    entry.intact(found)
    with _base_of(path, base) as judge:
        made = entry.append(found, path, key, signer, judge)
    click.echo(f"result {made['id']}, signed by {made['signer']}, appended to {path}")
    return 0


@cli.command()
@click.argument("run_folder", metavar="RUN", type=click.Path(path_type=Path, file_okay=False))
def end(run_folder: Path) -> int:
    """End a run that cannot go on, as when its machine is gone: what was measured stays and is signed, nothing is judged."""
    from specrun.conclude import unfinished
    from specrun.end import end as conclude_run

    click.echo(f"{run_folder}: {unfinished(conclude_run(run_folder))}\nnext: specrun append {run_folder} --key KEY")
    return 0


@cli.command()
@click.argument("run_folder", metavar="RUN", type=click.Path(path_type=Path, file_okay=False))
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), help="The new file.  [default: ID.tar.gz]")
def pack(run_folder: Path, output: Path | None) -> int:
    """Pack a finished run into one file, to verify and sign it on another machine."""
    from specrun.pack import pack as pack_run

    out = output or Path(f"{run_folder.resolve().name}.tar.gz")
    count = pack_run(run_folder, out)
    click.echo(f"{out}: {count} files, {out.stat().st_size:,} bytes")
    return 0


@cli.command()
@click.argument("packed", metavar="FILE", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--into", type=click.Path(path_type=Path), default=Path("runs"), help="Where run folders are.  [default: runs]")
def unpack(packed: Path, into: Path) -> int:
    """Make the run folder of a packed run again; every file must have the digest that its manifest states."""
    from specrun.pack import unpack as unpack_run

    folder = unpack_run(packed, into)
    click.echo(f"{folder}\nnext: specrun append {folder} --key KEY --file FILE")
    return 0


@contextmanager
def _compared(file: Path, base: str | None, unchanged: bool = False) -> Iterator[History | None]:
    """The history of the file's repository against a base branch, if one is named."""
    from speclint.history_check import against
    from speclint.history_git import NoBase

    try:
        with nullcontext() if base is None else against([file], base, unchanged=unchanged) as history:
            yield history
    except NoBase as error:
        raise click.UsageError(str(error)) from None


@contextmanager
def _base_of(file: Path, ref: str | None) -> Iterator[Base | None]:
    """What a base branch, if one is named, says of a file that is about to be added to: nothing need have changed yet."""
    with _compared(file, ref, unchanged=True) as history:
        if history:
            click.echo(f"specrun: {history.summary()}", err=True)
        yield history.base_of(history.path(file)) if history else None


@cli.command()
@FILE
@click.option(
    "--records", type=click.Path(path_type=Path), help="A run folder, or the folder of several: recompute every figure."
)
@click.option("--base", metavar="REF", help="Compare the repository's history with this branch too: origin/main.")
def verify(file: Path, records: Path | None, base: str | None) -> int:
    """Check signatures, digests, chain and verdicts; with --records, recompute every figure from the raw records."""
    from specrun.entry import recompute
    from specrun.prepare import readable
    from specrun.verify import verify as verify_file

    readable(file)
    with _compared(file, base) as history:
        rows = verify_file(file, records=records, recompute=recompute, history=history)
    click.echo(tabulate([[row.outcome.replace("_", " "), row.claim, row.detail] for row in rows], tablefmt="plain"))
    if not rows:
        click.echo("the file has neither approvals nor results")
    click.echo("" if base else UNCHECKED)
    return 1 if any(row.outcome == "failed" for row in rows) else 0


@cli.command()
@FILE
@click.argument("new", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--name", help="Name of the new spec.  [default: that of its file]")
def fork(file: Path, new: Path, name: str | None) -> int:
    """Start a new spec from one that has results, which is frozen."""
    from specrun.fork import fork as fork_spec

    called = fork_spec(file, new, name)
    click.echo(f"{new}: spec {called}, without approvals and results. Change pair and protocol, then lock and approve it.")
    return 0


@cli.command()
@click.argument("source", metavar="FILE|RUN", type=click.Path(path_type=Path, exists=True))
@click.option("--format", "form", type=click.Choice(["text", "markdown", "html", "json", "junit"]), default="text")
@click.option("--result", "number", default=-1, help="Which result of the file, from 0.  [default: the last]")
@click.option("--records", type=click.Path(path_type=Path, exists=True), help="Run folder, or folder of several: for html, json.")
@click.option("--against", type=click.Path(path_type=Path, exists=True), help="File or run of a result to compare with.")
@click.option("--against-result", type=int, help="Which result of that.  [default: the last; of the same file the one before]")
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), help="Write to this file instead.")
def report(source: Path, form: str, number: int, output: Path | None, against: Path | None, **options: Any) -> int:
    """Print the report of a result in a spec file, or of a finished run; with --against, compare two results."""
    from specrun.report import command as make

    other, records = options["against_result"], options["records"]
    if against and form == "junit":
        raise click.UsageError("--against compares two results: there is no --format junit for it")
    if records and (against or form not in ("html", "json")):
        raise click.UsageError("--records goes with --format html or json of one result")
    if other is not None and not against:
        raise click.UsageError("--against-result goes with --against")
    text = make.two(source, form, number, against, other) if against else make.one(source, form, number, records)
    make.put(text, output)
    return 0


@cli.command()
@click.argument("code")
def explain(code: str) -> int:
    """Print the manual page of a finding of a diagnosis, such as DX05."""
    from specrun.finding_pages import PAGES, page

    if code.upper() not in PAGES:
        raise click.UsageError(f"there is no finding {code}; they run from {min(PAGES)} to {max(PAGES)}")
    click.echo(page(code.upper()))
    return 0


@cli.command()
@click.option("--into", type=click.Path(path_type=Path), default=Path("demo"), help="Where to work.  [default: demo]")
@PYTHON
def demo(into: Path, python: str) -> int:
    """The whole story on the example pair, CPU: lint, lock, approve, run, sign, verify, report."""
    from specrun.demo import demo as tell

    return tell(into, python)


def _terminated(number: int, frame: FrameType | None) -> None:
    """SIGTERM ends what runs as Ctrl-C does: inside an event loop by cancelling its main task, elsewhere by KeyboardInterrupt."""
    interrupted = signal.getsignal(signal.SIGINT)
    (interrupted if callable(interrupted) else signal.default_int_handler)(number, frame)


def main() -> None:
    """Entry point: the only place where exceptions become messages and exit statuses."""
    signal.signal(signal.SIGTERM, _terminated)
    try:
        status = cli(standalone_mode=False)
    except click.exceptions.Abort:
        status = _said("stopped", "", 130)
    except click.ClickException as error:
        error.show()
        status = 2
    except KeyboardInterrupt:
        status = _said("interrupted; servers are stopped, what was measured is kept", "`specrun run --resume ID` goes on", 130)
    except SpecrunError as error:
        status = _said(error.message, error.hint, error.status)
    except Exception:
        click.echo(masked(traceback.format_exc()), err=True)
        status = _said("this is a fault of ours; what was measured is kept in the run folder", "please report the lines above", 3)
    sys.exit(status or 0)


def _said(message: str, hint: str, status: int) -> int:
    click.echo(masked(f"\nspecrun: {message}" + (f"\n  way out: {hint}" if hint else "")), err=True)
    return status
