"""SL609 raw-records-missing-or-differ: the run folder of a result is not beside the spec, or is not what was signed.

A result names the digest of its run's manifest, which names every file. Without the records nobody can recompute the figures;
that is a note. Records that differ are an error.

Fails:

    results: [{id: r1, records: {manifest: "sha256:0000…"}}]      # runs/r1/manifest.json says otherwise

Passes:

    results: [{id: r1, records: {manifest: "sha256:…"}}]          # runs/r1 is as it was

Way out: bring the run folder back from where it is kept; `specrun verify` recomputes every figure from it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

from speclint.canonical import digest
from speclint.diagnostic import Finding, pointer
from speclint.lock.tree import file_digest
from speclint.releases import Release
from speclint.spec import Spec

SEVERITY = "error"
NEEDS = "results"

MOST_BYTES = 256_000_000  # of files read by a check; `specrun verify` reads all
RUN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def check(spec: Spec, release: Release | None) -> Iterator[Finding]:
    for index, entry in spec.results:
        run = entry.get("id")
        signed = spec.at("results", index, "records", "manifest", kind=str)
        if not isinstance(run, str) or not RUN.fullmatch(run) or signed is None:
            continue
        folder = spec.folder / "runs" / run
        if not folder.is_dir():
            help = "bring the folder back to have the figures recomputed by `specrun verify`"
            path = pointer("results", index, "records")
            yield Finding(path, f"the raw records are not here (runs/{run})", help, on_key=True, severity="info")
        elif wrong := next(_differences(folder, signed), ""):
            path = pointer("results", index, "records", "manifest")
            yield Finding(path, f"runs/{run} is not what was signed: {wrong}", "restore the folder as the run left it")


def _differences(folder: Path, signed: str) -> Iterator[str]:
    try:
        files = json.loads((folder / "manifest.json").read_bytes())["files"]
        if digest(files) != signed:
            yield "manifest.json differs"
            return
        yield from _files(folder, files)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        yield f"its manifest cannot be read ({type(error).__name__})"


def _files(folder: Path, files: dict[str, str]) -> Iterator[str]:
    """The first files that are missing or differ, as many as may be read."""
    total = 0
    for name, expected in files.items():
        path = folder / name
        if not path.resolve().is_relative_to(folder.resolve()) or not path.is_file():
            yield f"{name} is missing"
            continue
        total += path.stat().st_size
        if total > MOST_BYTES:
            return
        if "sha256:" + file_digest(path) != expected:
            yield f"{name} differs"
