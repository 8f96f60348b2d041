"""The flags of `speclint check`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from speclint.checking import FORMATS, UsageError, Wanted, run


@click.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--format", "style", type=click.Choice(list(FORMATS)), default="text", show_default=True)
@click.option("--select", multiple=True, metavar="CODES", help="Only these rules (SL305, or SL3 for a family).")
@click.option("--ignore", multiple=True, metavar="CODES", help="Not these rules. SL0 and SL6 cannot be ignored.")
@click.option("--strict/--no-strict", default=None, help="Warnings fail too.")
@click.option("--to", metavar="RELEASE", help="Would the spec mean the same in this vLLM release? (`latest`: the newest known)")
@click.option("--base", metavar="REF", help="Hold all approvals and results of the repository against a branch: origin/main.")
def check(files: tuple[Path, ...], style: str, **wanted: Any) -> None:
    """Check FILES, and in folders every *.spec.yaml, *.pairspec.yaml and YAML file that begins with `schema: pair-spec/…`.

    Defaults for --select, --ignore and --strict come from [lint] of the nearest speclint.toml above a file, or from
    [tool.speclint] of its pyproject.toml.

    With --base, entries are compared with the merge base of REF and HEAD, and speclint.toml, allowed signers, revocations and
    configuration are those of REF: nothing that the change under review says of itself counts.

    Exit status: 0 clean or only info (warnings too, without --strict), 1 findings, 2 bad usage, an unreadable file or nothing to
    compare with, 3 a fault of ours.
    """
    try:
        sys.exit(run(files, Wanted(style, **wanted)))
    except UsageError as error:
        raise click.UsageError(str(error)) from None
