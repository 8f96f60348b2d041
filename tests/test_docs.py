"""The generated pages are what the tools say today, and every rule's address exists. `make docs` writes them."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from speclint.rules import Rule, rules

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

from rule_examples import examples  # noqa: E402

import docs  # noqa: E402


@pytest.fixture(scope="module")
def made() -> dict[str, str]:
    return docs.pages()


@pytest.mark.parametrize(
    "name", ["rules.md", "spec.md", "cli.md", "findings.md", "metrics.md", "gpu-shared-k3.html", "gpu-deep-k3.html"]
)
def test_page_is_fresh(made: dict[str, str], name: str) -> None:
    assert (ROOT / "docs" / name).read_text(encoding="utf-8") == made[name], "run `make docs`"


@pytest.mark.parametrize("rule", rules().values(), ids=lambda rule: rule.code)
def test_address_of_every_rule_exists(rule: Rule) -> None:
    page, _, anchor = rule.url.partition("#")
    assert f'<a id="{anchor}"></a>\n\n### {rule.code} {rule.name}\n' in (ROOT / page).read_text(encoding="utf-8")


@pytest.mark.parametrize("rule", rules().values(), ids=lambda rule: rule.code)
def test_examples_are_output_of_the_tool(rule: Rule) -> None:
    failing, passing = examples(rule)
    assert f"[{rule.code}]: " in failing.output and f"docs: {rule.url}" in failing.output
    assert passing.output == "1 file checked: no findings"


def test_nothing_of_this_machine_is_in_the_pages(made: dict[str, str]) -> None:
    for text in made.values():
        assert not re.search(r"/tmp/|/home/|/root/|SHA256:\w", text)
