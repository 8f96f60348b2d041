"""`examples/rejected`: each complete spec says of itself which codes it gets; its README is what speclint says of them.

`UPDATE_SNAPSHOTS=1 pytest tests/test_rejected.py` rewrites the README.
"""

from __future__ import annotations

import os
import re
from datetime import date
from pathlib import Path

import pytest
from spec_cases import commented

from speclint import document
from speclint.diagnostic import Diagnostic
from speclint.lint import inspect

FOLDER = Path(__file__).parent.parent / "examples" / "rejected"
FILES = sorted(FOLDER.glob("*.spec.yaml"))
EXPECTED = re.compile(rb"^# Expected: (.+)$", re.MULTILINE)
HEAD = """# Rejected on purpose

Each file is a complete spec with one classic mistake; its first lines say who makes it. Try one:

    speclint check examples/rejected/heterogeneous-probabilistic.spec.yaml

| file | codes | what speclint says first |
|---|---|---|
"""


def findings(path: Path) -> list[Diagnostic]:
    """Errors and warnings of a file."""
    found = inspect(document.read(path), path.parent, today=date(2026, 6, 1)).diagnostics
    return [item for item in found if item.severity != "info"]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name.partition(".")[0])
def test_it_gets_the_codes_that_it_says(path: Path) -> None:
    stated = EXPECTED.search(path.read_bytes())
    assert stated is not None, "the comment at its top says `# Expected: CODES`"
    found = findings(path)
    assert sorted({item.code for item in found}) == stated[1].decode().split()
    assert any(item.severity == "error" for item in found)


def test_there_are_at_least_ten() -> None:
    assert len(FILES) >= 10


def test_readme_is_what_speclint_says() -> None:
    rows = []
    for path in FILES:
        found = sorted(findings(path), key=lambda item: item.severity)
        codes = ", ".join(sorted({item.code for item in found}))
        rows.append(f"| [{path.name}]({path.name}) | {codes} | {found[0].message} |\n")
    text = HEAD + "".join(rows)
    readme = FOLDER / "README.md"
    if os.environ.get("UPDATE_SNAPSHOTS"):
        readme.write_text(text, encoding="utf-8")
    assert readme.read_text(encoding="utf-8") == text


def test_a_reason_silences_a_finding_in_a_real_file() -> None:
    source = (FOLDER / "one-concurrency.spec.yaml").read_bytes()
    quiet = commented(source, {"/protocol/load": "  # speclint: ignore[SL502] a batch job, one request at a time"})
    left = inspect(document.parse(quiet, "x"), FOLDER).diagnostics
    assert [item.code for item in left if item.severity != "info"] == []
