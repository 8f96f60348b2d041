"""The command line of speclint. `speclint FILE` is `speclint check FILE`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from speclint.check_command import check
from speclint.rules import rules
from speclint.shape import did_you_mean


class _CheckByDefault(click.Group):
    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] not in ("--help", "--version"):
            args = ["check", *args]
        return super().parse_args(ctx, args)


@click.group(cls=_CheckByDefault, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="specpair", prog_name="speclint")
def cli() -> None:
    """Check pair specs for vLLM speculative decoding, without a GPU."""


cli.add_command(check)


@cli.command()
@click.argument("code")
def explain(code: str) -> None:
    """Print the manual page of rule CODE, such as SL305 or its name."""
    wanted = code.lower()
    rule = next((rule for rule in rules().values() if wanted in (rule.code.lower(), rule.name)), None)
    if rule is None:
        near = did_you_mean(code.upper(), rules()) or did_you_mean(wanted, [rule.name for rule in rules().values()])
        raise click.UsageError(f"there is no rule {code}; {near or '`speclint rules` lists them'}")
    click.echo(rule.manual)
    click.echo(f"\nSeverity: {rule.severity}. " + ("" if rule.suppressible else "Cannot be suppressed."))


@cli.command("rules")
def list_rules() -> None:
    """List every rule with its code, severity and sentence."""
    width = max(len(rule.name) for rule in rules().values())
    for rule in rules().values():
        click.echo(f"{rule.code}  {rule.severity:<7}  {rule.name:<{width}}  {rule.summary}")


@cli.command()
@click.option("--config", "of", flag_value="speclint", help="That of speclint.toml instead.")
@click.option("--report", "of", flag_value="report", help="That of `specrun report --format json` instead.")
def schema(of: str | None) -> None:
    """Print the JSON Schema of pair-spec/v1, for editors."""
    from speclint.data import schemas_path

    click.echo((schemas_path() / f"{of or 'spec'}.schema.json").read_text(encoding="utf-8"), nl=False)


@cli.command()
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--check", "check_only", is_flag=True, help="Write nothing; say what would change and exit 1 if it would.")
@click.option("--update", is_flag=True, help="Rewrite the lock of a spec that is approved already.")
@click.option("--upgrade", is_flag=True, help="Write the newest layout of the lock; implies --update.")
def lock(file: Path, check_only: bool, update: bool, upgrade: bool) -> None:
    """Write the facts about the pinned models and prompts into FILE."""
    from speclint.lock.command import lock_file

    status, lines = lock_file(file, check=check_only, update=update, upgrade=upgrade)
    for line in lines:
        click.echo(line)
    sys.exit(status)


@cli.command()
@click.argument("source", metavar="LINE|FILE|-")
def translate(source: str) -> None:
    """Print the `pair` section that a vLLM launch line means.

    LINE is `vllm serve …` in quotes; FILE (or - for standard input) is a shell script, compose or Kubernetes YAML that
    holds one. Comments say what was dropped, what could not be carried over, and what was assumed.
    """
    from speclint.translate import NoLaunchLine, render
    from speclint.translate import translate as translated

    try:
        click.echo(render(translated(_text_of(source))), nl=False)
    except NoLaunchLine as error:
        raise click.UsageError(str(error)) from None


def _text_of(source: str) -> str:
    try:
        if source == "-" or (len(source) < 4096 and Path(source).is_file()):
            with click.open_file(source, encoding="utf-8") as file:
                text: str = file.read()
                return text
    except (OSError, UnicodeDecodeError) as error:
        raise click.UsageError(f"{source}: {error}") from None
    return source


@cli.command()
@click.option("--diff", nargs=2, metavar="A B", help="What turns between two releases.")
@click.option("--import", "wheel", type=click.Path(path_type=Path, exists=True, dir_okay=False), metavar="WHEEL",
              help="Write the release file of a vLLM wheel by reading it.")  # fmt: skip
def releases(diff: tuple[str, str] | None, wheel: Path | None) -> None:
    """List the vLLM releases that are known, compare two, or add one from its wheel."""
    from speclint import releases as known

    if wheel:
        from speclint.release_import import import_wheel

        click.echo(f"wrote {known.write(import_wheel(wheel), known.folder())}")
    elif diff:
        _print_diff(known, *diff)
    else:
        click.echo("\n".join(known.known()))


def _print_diff(known: Any, a: str, b: str) -> None:
    for version in (a, b):
        if known.load(version) is None:
            near = ", ".join(known.nearest(version))
            raise click.UsageError(f"release {version} is not known" + (f"; nearest: {near}" if near else ""))
    click.echo("\n".join(known.diff(a, b)) or f"nothing that is recorded differs between {a} and {b}")
