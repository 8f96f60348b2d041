"""What `speclint check` does: files in, findings in the wanted format out, exit status. It needs no command-line library."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from speclint import document, render
from speclint.config import Config, ConfigError, codes, load_config
from speclint.diagnostic import Finding
from speclint.discovery import is_meant, specs_below
from speclint.history import entries
from speclint.lint import Report, diagnosed, inspect
from speclint.rules import rules

if TYPE_CHECKING:
    from speclint.history import Base
    from speclint.history_check import History

CLEAN, FINDINGS, USAGE, FAULT = 0, 1, 2, 3
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


class UsageError(ValueError):
    """Something asked for on the command line or in a configuration file that cannot be meant."""


class Wanted(NamedTuple):
    """What the command line asks for, beside the files."""

    style: str = "text"
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    strict: bool | None = None
    to: str | None = None
    base: str | None = None


def _sarif(reports: Sequence[Report]) -> str:
    from speclint.sarif import sarif

    return sarif(reports)


def _markdown(reports: Sequence[Report]) -> str:
    from speclint.markdown import markdown

    return markdown(reports)


FORMATS: dict[str, Callable[[Sequence[Report]], str]] = {
    "text": render.summary_line,
    "json": render.as_json,
    "github": render.github,
    "sarif": _sarif,
    "markdown": _markdown,
}


def run(files: Iterable[Path], wanted: Wanted = Wanted()) -> int:  # noqa: B008
    """Check files and folders and print what was found. Returns the exit status; raises UsageError."""
    flags = _flags(wanted)
    named, unreadable = list(files), list[str]()
    with _history(named, wanted) as history:
        chosen = [(read, path, config._replace(**flags)) for path, read, config in _documents(named, unreadable, history)]
        if wanted.to is not None:
            failed = _check_to(wanted.to, wanted.style, [(read, config) for read, _, config in chosen])
        else:
            reports = _reports(chosen, history)
            _show(reports, wanted.style)
            strict = [config.strict for _, _, config in chosen] + [bool(wanted.strict)] * (len(reports) - len(chosen))
            failed = any(map(_fails, reports, strict))
    return USAGE if unreadable else FINDINGS if failed else CLEAN


@contextmanager
def _history(files: list[Path], wanted: Wanted) -> Iterator[History | None]:
    """What the files are compared with, if anything."""
    if wanted.base is None:
        yield None
        return
    if wanted.to is not None:
        raise UsageError("--to asks about another release and --base about the history: ask one at a time")
    from speclint.history_check import against
    from speclint.history_git import NoBase

    try:
        with against(files, wanted.base) as history:
            print(f"speclint: {history.summary()}", file=sys.stderr)
            yield history
    except NoBase as error:
        raise UsageError(str(error)) from None


def _flags(wanted: Wanted) -> dict[str, Any]:
    """Fields of the configuration that the command line sets."""
    try:
        given = {"select": codes(wanted.select), "ignore": codes(wanted.ignore, ignoring=True)}
    except ConfigError as error:
        raise UsageError(str(error)) from None
    return {name: value for name, value in given.items() if value} | ({} if wanted.strict is None else {"strict": wanted.strict})


def _reports(chosen: list[tuple[document.Document, Path, Config]], history: History | None) -> list[Report]:
    if history is None:
        return _uncompared([_report(read, path, config, config.ignored(path), None) for read, path, config in chosen])
    from speclint.history_reports import whole

    reports = [
        _report(read, path, config, config.ignored(history.policy_path(path)), history.base_of(history.path(path)))
        for read, path, config in chosen
    ]
    return whole(history, reports, [path for _, path, _ in chosen])


def _uncompared(reports: list[Report]) -> list[Report]:
    """The reports, with a warning where approvals or results of a pull request are judged by what it says itself."""
    target = os.environ.get("GITHUB_BASE_REF")
    told = next((report for report in reports if target and any(entries(report.document.data))), None)
    if told:
        message = f"this is a pull request to {target}, and nothing was compared with it: the change itself says who may sign"
        help = f"`speclint check --base origin/{target} …`, in a clone with its whole history (fetch-depth: 0)"
        told.diagnostics.append(diagnosed(told.document, rules()["SL606"], Finding("", message, help, severity="warning")))
    return reports


def _report(read: document.Document, path: Path, config: Config, ignored: tuple[str, ...], base: Base | None) -> Report:
    return inspect(read, path.parent, select=config.select, ignore=(*config.ignore, *ignored), base=base)


def _fails(report: Report, strict: bool) -> bool:
    counts = render.summary([report])
    return bool(counts["error"] or (strict and counts["warning"]))


def _check_to(to: str, style: str, chosen: list[tuple[document.Document, Config]]) -> bool:
    """Print what each spec would come to mean in another release; whether that fails the check."""
    from speclint.upgrade_report import UnknownRelease, upgrade_report

    if style not in ("text", "json"):
        raise UsageError("--to is printed as text or json")
    try:
        said, worst = upgrade_report([read for read, _ in chosen], to, style)
    except UnknownRelease as error:
        raise UsageError(str(error)) from None
    print(_for_here(said))
    return any(w == "error" or (w == "warning" and config.strict) for w, (_, config) in zip(worst, chosen, strict=True))


def _show(reports: list[Report], style: str) -> None:
    said = FORMATS[style](reports)
    if style == "text":
        said = "\n\n".join([*filter(None, map(render.text, reports)), said])
    if said:
        print(_for_here(said))


def _for_here(text: str) -> str:
    """The text, without colours where nobody sees them or somebody asked for none."""
    return text if sys.stdout.isatty() and not os.environ.get("NO_COLOR") else COLOUR.sub("", text)


def _documents(
    files: Iterable[Path], unreadable: list[str], history: History | None
) -> Iterator[tuple[Path, document.Document, Config]]:
    for path in files:
        found = specs_below(path) if path.is_dir() else [path]
        if not found:
            _note(path, "holds no pair spec")
        for file in found:
            yield from _document(file, unreadable, history)


def _document(path: Path, unreadable: list[str], history: History | None) -> Iterator[tuple[Path, document.Document, Config]]:
    try:
        own, configured = load_config(path), history.policy_path(path) if history else path
        config = load_config(configured) if history else own  # its own must be readable all the same
        read = history.read(path) if history else document.read(path)
    except ConfigError as error:
        raise UsageError(str(error)) from None
    except OSError as error:
        unreadable.append(str(path))
        _note(path, error.strerror or str(error))
        return
    if config.excludes(configured):
        _note(path, f"skipped, {config.source if config is own else history and history.compared.shown} excludes it")
    elif not is_meant(read):
        _note(path, "skipped, it does not begin with `schema: pair-spec/…`")
    else:
        yield path, read, config


def _note(path: Path, what: str) -> None:
    print(f"speclint: {path}: {what}", file=sys.stderr)
