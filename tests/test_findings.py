from __future__ import annotations

import re

import pytest
from click.testing import CliRunner

from specrun.cli import cli
from specrun.finding_pages import PAGES, page
from specrun.findings import CODES


def test_codes_run_on_without_gaps() -> None:
    assert list(PAGES) == [f"DX{number:02}" for number in range(1, len(PAGES) + 1)] == list(CODES)


@pytest.mark.parametrize("code", PAGES)
def test_page_is_whole(code: str) -> None:
    found = PAGES[code]
    assert found.title.endswith(".") and len(found.rests_on) > 40 and len(found.look) > 30
    assert not re.search(r"(?i)\b(raise|increase|larger|higher|more)\b[^.]{0,20}(\bK\b|draft tokens)", found.look)
    assert set(re.findall(r"DX\d\d", found.rests_on + found.look)) <= PAGES.keys()
    assert max(map(len, page(code).splitlines())) <= 100


def test_explain_prints_a_page() -> None:
    found = CliRunner().invoke(cli, ["explain", "dx05"])
    assert found.exit_code == 0 and found.output.startswith("DX05: Break-even length")
    unknown = CliRunner().invoke(cli, ["explain", "DX99"])
    assert unknown.exit_code == 2 and "there is no finding DX99; they run from DX01 to DX" in unknown.output
