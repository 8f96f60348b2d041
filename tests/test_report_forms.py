"""Reports for programs and pull requests, and the command that makes all of them."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jsonschema
import pytest
from click.testing import CliRunner, Result
from report_sample import Sample, spec_file

from speclint.data import schemas_path
from specrun.cli import cli
from specrun.report.json_form import as_data
from specrun.report.junit import junit
from specrun.report.page import page
from specrun.report.records import recorded
from specrun.report.text import fitted, markdown, text

SCHEMA = json.loads((schemas_path() / "report.schema.json").read_text(encoding="utf-8"))
GITHUB = 65_536


def unproven(entry: dict[str, Any]) -> dict[str, Any]:
    found = copy.deepcopy(entry) | {"verdicts": [], "diagnosis": []}
    checks = [{"check": "drafts", "outcome": "failed", "detail": "none <made>"}]
    return found | {"established": {"verdict": "not_established", "checks": checks}}


def judged(entry: dict[str, Any], *outcomes: str) -> dict[str, Any]:
    """The entry with these verdicts, the rest met."""
    found = copy.deepcopy(entry)
    for index, verdict in enumerate(found["verdicts"]):
        verdict["verdict"] = outcomes[index] if index < len(outcomes) else "met"
    return found


def test_json_has_the_published_shape(reported: Sample) -> None:
    for entry, seen in (
        (reported.entry, recorded(reported.entry, reported.folder)),
        (reported.entry, None),
        (unproven(reported.entry), None),
    ):
        data = json.loads(json.dumps(as_data(reported.spec, entry, seen), allow_nan=False))
        jsonschema.validate(data, SCHEMA)
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(data | {"another": 1}, SCHEMA)


def test_json_says_what_the_entry_says(reported: Sample) -> None:
    data = as_data(reported.spec, reported.entry, recorded(reported.entry, reported.folder))
    assert data["criteria"][0]["cells"] == reported.entry["verdicts"][0]["cells"]
    assert [row["at_most"] for row in data["criteria"][:2]] == [0.95, 0.95] and data["criteria"][4]["compare"] == "ratio"
    columns, row = reported.entry["figures"]["columns"], reported.entry["figures"]["rows"][1]
    assert data["figures"][1]["arm"] == "pair"
    assert data["figures"][1]["figures"]["ttft_p50"] == row[columns.index("ttft_p50")]
    found = data["from_records"]["distributions"][0]
    assert found["requests"] == 128 and list(found["seconds"]) == ["p5", "p10", "p25", "p50", "p75", "p90", "p95"]


@pytest.mark.parametrize(
    ("outcomes", "outcome", "status"),
    [
        ((), "met", 0),
        (("undecided",), "undecided", 11),
        (("undecided", "not_met"), "not_met", 10),
        (("met_one_start",), "undecided", 11),
    ],
)
def test_outcome_and_exit_status_agree(reported: Sample, outcomes: tuple[str, ...], outcome: str, status: int) -> None:
    data = as_data(reported.spec, judged(reported.entry, *outcomes))
    assert (data["outcome"], data["exit_status"]) == (outcome, status)


def test_not_established_has_no_verdict(reported: Sample) -> None:
    data = as_data(reported.spec, unproven(reported.entry))
    assert (data["outcome"], data["exit_status"]) == ("not_established", 20)
    assert {row["verdict"] for row in data["criteria"]} == {None} and len(data["criteria"]) == 6


def cases(xml: str) -> dict[str, list[str]]:
    """Name of each case to the kinds of its outcome; the shape is that of the common JUnit schema."""
    suites = ElementTree.fromstring(xml)
    (suite,) = suites
    assert suites.tag == "testsuites" and suite.tag == "testsuite" and suite[0].tag == "properties"
    found = list(suite.iter("testcase"))
    counts = {"tests": len(found)}
    for name, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        counts[name] = len(suite.findall(f"testcase/{tag}"))
    assert {name: int(suite.attrib[name]) for name in counts} == counts
    assert {name: int(suites.attrib[name]) for name in ("tests", "failures", "errors")} == {
        name: counts[name] for name in ("tests", "failures", "errors")
    }
    assert all({"name", "classname", "time"} == set(case.attrib) and len(case) == 1 for case in found)
    assert all(case[0].tag == "system-out" or case[0].attrib["message"] for case in found)
    return {case.attrib["name"]: [child.tag for child in case] for case in found}


def test_junit_has_a_case_per_criterion(reported: Sample) -> None:
    entry = judged(reported.entry, "met", "not_met", "undecided", "met_one_start")
    assert list(cases(junit(reported.spec, entry)).values()) == [
        ["system-out"],
        ["failure"],
        ["skipped"],
        ["skipped"],
        ["system-out"],
        ["system-out"],
    ]
    xml = junit(reported.spec, unproven(reported.entry))
    assert set(map(tuple, cases(xml).values())) == {("error",)} and "drafts: none &lt;made&gt;" in xml


def test_junit_survives_what_xml_cannot_hold(reported: Sample) -> None:
    entry = judged(reported.entry, "not_met")
    entry["verdicts"][0]["reason"] = "a\x00b\x1b]]>&\ud800"
    xml = junit(reported.spec, entry)
    assert "a\ufffdb\ufffd]]&gt;&amp;\ufffd" in xml and cases(xml)
    xml.encode("utf-8")


def test_markdown_folds_the_long_part(reported: Sample) -> None:
    made = markdown(reported.spec, reported.entry)
    seen, _, folded = made.partition("<details>")
    assert seen.startswith("## tiny-draft-k3: ") and "| verdict" in seen and "Not evaluated: anything else." in seen
    assert "DX05" in folded and "output throughput" in folded and "DX05" not in seen
    assert made.count("<details>") == made.count("</details>") == 5


def test_markdown_cannot_be_steered_and_fits(reported: Sample) -> None:
    entry = copy.deepcopy(reported.entry)
    entry["scope"] = ["@everyone <b> #1 </details>"] + ["long " * 200] * 100
    entry["diagnosis"][0]["text"] = "@someone | [x](y)"
    made = markdown(reported.spec, entry)
    assert len(made) < GITHUB and "1 more parts do not fit" in made and "</details>" in made
    assert "@" not in made and "[x]" not in made and made.count("<details>") == made.count("</details>") == 4


def test_parts_that_do_not_fit_are_counted() -> None:
    assert fitted(["a", "b" * 50, "c"], 20).startswith("a\n\nc\n\n1 more parts do not fit")
    assert fitted(["a", "b"], 20) == "a\n\nb\n"


def run(*words: str | Path) -> Result:
    return CliRunner().invoke(cli, ["report", *map(str, words)], standalone_mode=False)


def test_the_command_writes_every_form(reported: Sample, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = spec_file(tmp_path, reported.spec, reported.entry)
    assert run(path).output == text(reported.spec, reported.entry)
    assert cases(run(path, "--format", "junit").output)
    with_records = run(path, "--format", "json", "--records", reported.folder.parent).output
    assert json.loads(with_records)["from_records"]["time_line"]
    assert run(path, "--format", "html", "-o", tmp_path / "page.html").output == ""
    assert (tmp_path / "page.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_records_beside_the_file_are_found(reported: Sample, tmp_path: Path) -> None:
    path = spec_file(reported.folder.parent.parent, reported.spec, reported.entry)
    assert json.loads(run(path, "--format", "json").output)["from_records"]["time_line"]
    path.unlink()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--records", "."], "--records goes with"),
        (["--against-result", "0"], "--against-result goes with --against"),
        (["--against", ".", "--format", "junit"], "no --format junit"),
        (["--format", "html", "--records", "."], "no figures from"),
        (["-o", "no/such/folder"], "cannot be written"),
        (["--result", "3"], "there is no number 3"),
    ],
)
def test_what_cannot_be_done_is_said(reported: Sample, tmp_path: Path, words: list[str], said: str) -> None:
    path = spec_file(tmp_path, reported.spec, reported.entry)
    found = run(path, *words)
    error = found.exception
    assert error and said in (getattr(error, "message", "") or str(error))


def test_a_result_of_another_state_of_the_spec_is_not_shown(reported: Sample, tmp_path: Path) -> None:
    path = spec_file(tmp_path, reported.spec, reported.entry)
    path.write_text(
        path.read_text(encoding="utf-8").replace("num_speculative_tokens: 3", "num_speculative_tokens: 2", 1), encoding="utf-8"
    )
    error = run(path).exception
    assert error and "is for another state of the spec" in str(error)


def test_a_cost_model_is_told_wherever_the_outcome_is(reported: Sample) -> None:
    protocol = {**reported.spec["protocol"], "kind": "cost_model"}
    invented, entry, words = {**reported.spec, "protocol": protocol}, reported.entry, "A cost model, not a measurement of a pair"
    assert words in markdown(invented, entry).partition("<details>")[0] and words not in markdown(reported.spec, entry)
    assert words in text(invented, entry).partition("Was the pair established?")[0] and words not in text(reported.spec, entry)
    assert words in junit(invented, entry) and words not in junit(reported.spec, entry)
    assert words in page(invented, entry, None) and words not in page(reported.spec, entry, None)
