"""`specrun report`: from files or run folders to one of the forms of a report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from speclint.canonical import spec_digest
from specrun.errors import EnvironmentTrouble, SpecrunError
from specrun.report import against, json_form, junit, page, records
from specrun.report.records import Recorded
from specrun.report.tables import Result
from specrun.report.text import report
from specrun.session import result_of


def one(source: Path, form: str, number: int, place: Path | None) -> str:
    """The report of a result in a spec file, or of a finished run. Raises SpecrunError, Refused for records of another run."""
    result = result_in(source, number)
    if form == "junit":
        return junit.junit(*result)
    if form == "html":
        return page.page(*result, recorded(result, source, place))
    if form == "json":
        return written(json_form.as_data(*result, recorded(result, source, place)))
    return report(*result, "markdown" if form == "markdown" else "text")


def result_in(source: Path, number: int) -> Result:
    """A result with its spec. Raises SpecrunError if the file is no longer the spec that the result is for."""
    found = Result(*result_of(source, number))
    if found.entry["spec"] != spec_digest(found.spec):
        why = f"result {found.entry['id']} is for another state of the spec than {source} has now"
        raise SpecrunError(why, f"`specrun verify {source}` says what differs")
    return found


def recorded(result: Result, source: Path, place: Path | None) -> Recorded | None:
    """What the records add: of the named folder, of the run itself, or of a run folder where they usually are."""
    place = source if source.is_dir() else place
    folder = records.named(result.entry, place) if place else records.found(result.entry, source.parent)
    return None if folder is None else records.recorded(result.entry, folder)


def two(source: Path, form: str, number: int, other: Path, other_number: int | None) -> str:
    """A result against another of the same file, of another file, or of a run. Raises SpecrunError."""
    after = result_in(source, number)
    before = result_in(other, _before(source, other, after, number) if other_number is None else other_number)
    if after.entry["id"] == before.entry["id"]:
        raise SpecrunError(f"both are result {after.entry['id']}", "name another one with --against-result")
    if form == "html":
        return against.page(after, before)
    if form == "json":
        return written(against.as_data(after, before))
    return against.markdown(after, before) if form == "markdown" else against.text(after, before)


def _before(source: Path, other: Path, after: Result, number: int) -> int:
    """The last result of another file; in the same file the one before the reported one."""
    if source.is_dir() or not other.samefile(source):
        return -1
    place = number % len(after.spec["results"])
    if not place:
        raise SpecrunError(f"{source} has no result before {after.entry['id']}", "name another file, or --against-result")
    return place - 1


def written(data: dict[str, Any]) -> str:
    """JSON for programs and people."""
    return json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def put(text: str, output: Path | None) -> None:
    """Print it, or write it to a file. Raises EnvironmentTrouble."""
    if output is None:
        click.echo(text, nl=False)
        return
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise EnvironmentTrouble(f"{output} cannot be written: {error.strerror}", "name another file with -o") from error
