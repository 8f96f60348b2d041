"""What programs and pull requests read: SARIF, Markdown, and the source that each finding names."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from click.testing import CliRunner
from spec_cases import RULES, TODAY, case_source, dumped, good, overlaid

from speclint import document
from speclint.cli import cli
from speclint.lint import Report, inspect
from speclint.markdown import LIMIT, markdown, prose
from speclint.rules import Rule, rules
from speclint.sarif import sarif

# the schema of OASIS, sarif/v2.1.0/errata01/os, as a package of Python tools ships it
SARIF = json.loads((Path(__file__).parent / "data" / "sarif-schema-2.1.0.json").read_text(encoding="utf-8"))


def report(source: bytes, name: str = "dir/x.spec.yaml", folder: Path = RULES) -> Report:
    return inspect(document.parse(source, name), folder, today=TODAY)


@pytest.fixture(scope="module")
def every() -> list[Report]:
    """A failing case of every rule that has one."""
    first = {path.parent: path for path in sorted(RULES.glob("SL*/bad_*.yaml"), reverse=True)}
    return [report(case_source(path), f"{folder.name}/{path.name}", folder) for folder, path in first.items()]


class TestSarif:
    def test_every_kind_of_finding_is_valid(self, every: list[Report]) -> None:
        log = json.loads(sarif(every))
        jsonschema.Draft4Validator(SARIF, format_checker=jsonschema.FormatChecker()).validate(log)
        (run,) = log["runs"]
        assert len(run["results"]) == sum(len(one.diagnostics) for one in every)

    def test_the_schema_is_not_lax(self, every: list[Report]) -> None:
        log = json.loads(sarif(every))
        log["runs"][0]["results"][0]["level"] = "info"
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.Draft4Validator(SARIF).validate(log)

    def test_results_name_rule_place_and_second_place(self) -> None:
        source = dumped(overlaid({"/pair/speculative/draft_sample_method": "probabilistic",
                                  "/pair/speculative/use_heterogeneous_vocab": True}))  # fmt: skip
        (run,) = json.loads(sarif([report(source, "my pairs/x.spec.yaml")]))["runs"]
        (result,) = [item for item in run["results"] if item["ruleId"] == "SL305"]
        assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == "SL305" and result["level"] == "error"
        place = result["locations"][0]["physicalLocation"]
        line = source.decode().splitlines()[place["region"]["startLine"] - 1]
        region = slice(place["region"]["startColumn"] - 1, place["region"]["endColumn"] - 1)
        assert line[region] == "probabilistic" and place["artifactLocation"]["uri"] == "my%20pairs/x.spec.yaml"
        assert result["relatedLocations"][0]["message"]["text"] == "the vocabulary is set here"

    def test_no_files_is_a_valid_log(self) -> None:
        jsonschema.Draft4Validator(SARIF).validate(json.loads(sarif([])))


class TestMarkdown:
    def test_table_and_folded_excerpts(self, every: list[Report]) -> None:
        for one in every:
            said = markdown([one])
            rows = [line for line in said.splitlines() if re.match(r"\| (❌|⚠️|ℹ️) ", line)]
            assert len(rows) == len(one.diagnostics) == said.count("<details>") == said.count("</details>")
            assert all(len(re.findall(r"(?<!\\)\|", row)) == 5 for row in rows)

    @pytest.mark.parametrize("value", ["a|b", "`x`", "``` </details>", "@everyone #1", "<img src=x>", "[a](http://b)", "\x1b[2J"])
    def test_a_value_cannot_become_markup(self, value: str) -> None:
        said = markdown([report(dumped(overlaid({"/pair/target/revision": value})))])
        outside = re.sub(r"(`{3,})text\n.*?\n\1\n", "", said, flags=re.DOTALL)
        spans = re.sub(r"`[^`\n]*`", "", outside)
        assert not re.search(r"@everyone|<img|\]\(|\x1b", spans)
        assert said.count("</details>") - said.count("``` </details>") == said.count("<details>")
        assert all(len(re.findall(r"\|", row)) == 5 for row in outside.splitlines() if row.startswith("| ❌"))

    def test_our_own_code_spans_stay(self) -> None:
        assert prose("`min_p` is_refused") == "`min_p` is&#95;refused"

    def test_it_fits_in_a_comment(self, every: list[Report]) -> None:
        said = markdown(every * 4)
        assert len(said) < LIMIT + 1000 and "do not fit here" in said

    def test_nothing_found(self) -> None:
        assert "no findings" in markdown([]) and "|" not in markdown([])


@pytest.mark.parametrize("style", ["sarif", "markdown", "github", "json"])
def test_formats_from_the_command_line(style: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.spec.yaml"
    path.write_bytes(dumped(overlaid({"/protocol/design/blocks": 5})))
    result = CliRunner().invoke(cli, ["check", "--format", style, str(path)])
    assert result.exit_code == 1 and "SL518" in result.stdout


def test_a_shape_error_hides_no_rule() -> None:
    data: dict[str, Any] = overlaid(
        {"/protocol/design/blocks": 5, "/pair/target/revision": "main", "/protocol/load/requests": "many"}
    )
    assert {"SL103", "SL201", "SL518"} <= {item.code for item in report(dumped(data)).diagnostics}


@pytest.mark.parametrize("rule", [rule for rule in rules().values() if "\nSource:" in rule.manual], ids=lambda rule: rule.code)
def test_findings_name_the_source_that_their_rule_rests_on(rule: Rule) -> None:
    paths = sorted((RULES / rule.code).glob("bad_*.yaml"))
    found = [
        item for path in paths for item in report(case_source(path), folder=path.parent).diagnostics if item.code == rule.code
    ]
    assert rule.source and all(item.source for item in found)
    assert found or rule.code in ("SL602", "SL615")


def test_good_spec_is_quiet_in_every_format() -> None:
    only = report(dumped(good()))
    assert {item.code for item in only.diagnostics} == {"SL601"}
    assert json.loads(sarif([only]))["runs"][0]["results"][0]["level"] == "note"
