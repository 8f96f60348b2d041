"""Two results: what changed, and which differences are real. Intervals are worked out by hand."""

from __future__ import annotations

import copy
import json
import random
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from click.testing import CliRunner
from report_sample import Sample, sample, spec_file

from speclint.data import schemas_path
from specrun.against import Change, against, changed, differences, judged, spec_changes, welch
from specrun.against import Sample as Blocks
from specrun.cli import cli
from specrun.report.against import as_data, markdown, page, text
from specrun.report.tables import Result

SCHEMA = json.loads((schemas_path() / "report.schema.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def faster(tmp_path_factory: pytest.TempPathFactory) -> Sample:
    """The same spec, run again with a pair whose steps cost a third less."""
    return sample(tmp_path_factory.mktemp("faster") / "r2", run="r2", step=0.015, seed=77)


def result(one: Sample) -> Result:
    return Result(one.spec, one.entry)


def test_welch_by_hand() -> None:
    # Means 2.5 and 5, variances 5/3 and 20/3: standard error sqrt(25/12), 4.41 degrees of freedom, t(0.975; 4) = 2.7764.
    assert welch([1, 2, 3, 4], [2, 4, 6, 8], 0.95) == pytest.approx((2.5, 2.5 - 4.00745, 2.5 + 4.00745), abs=1e-4)
    # Equal spread and number: 6 degrees of freedom. Variances 1/3: standard error sqrt(1/6), t(0.975; 6) = 2.4469.
    assert welch([0, 0, 1, 1], [1, 1, 2, 2], 0.95) == pytest.approx((1, 1 - 0.99894, 1 + 0.99894), abs=1e-4)
    assert welch([1, 1], [3, 3], 0.95) == (2, 2, 2)


def blocks(before: list[float | None], after: list[float | None], metric: str = "ttft_p50", logs: bool = True) -> Blocks:
    rows = [{"value": 1.0, "low": None, "high": None, "blocks": values} for values in (before, after)]
    return Blocks(("varied", 1), metric, rows[0], rows[1], logs)


@pytest.mark.parametrize(
    ("found", "finding"),
    [
        (blocks([1.00, 1.02, 0.98, 1.01], [0.50, 0.51, 0.49, 0.52]), "better"),
        (blocks([1.00, 1.02, 0.98, 1.01], [2.00, 2.01, 1.97, 2.04]), "worse"),
        (blocks([1.00, 1.02, 0.98, 1.01], [2.00, 2.01, 1.97, 2.04], "output_throughput"), "better"),
        (blocks([1.00, 1.02, 0.98, 1.01], [1.04, 1.06, 1.02, 1.05]), "alone"),
        (blocks([1.00, 1.02, 0.98, 1.01], [0.99, 1.03, 1.00, 1.02]), "not_told_apart"),
        (blocks([1.00, 1.02, 0.98, None], [2.00, 2.01, 1.97, 2.04]), "not_compared"),
        (blocks([1.00, 1.02, 0.98, 0.0], [2.00, 2.01, 1.97, 2.04]), "not_compared"),
        (blocks([0.40, 0.41, 0.39, 0.40], [0.60, 0.61, 0.62, 0.60], "acceptance_rate", logs=False), "better"),
        (blocks([0.40, 0.41, 0.39, 0.0], [0.40, 0.42, 0.41, 0.1], "acceptance_rate", logs=False), "not_told_apart"),
    ],
)
def test_findings(found: Blocks, finding: str) -> None:
    assert judged(found, 0.95, 1 - 0.05 / 20)[1] == finding


def test_more_comparisons_ask_for_more() -> None:
    one = blocks([1.00, 1.02, 0.98, 1.01], [1.04, 1.06, 1.02, 1.05])
    assert [row.finding for row in differences([one], 0.95)] == ["worse"]
    assert {row.finding for row in differences([one] * 20, 0.95)} == {"alone"}


def test_the_change_is_a_ratio_of_ratios_or_a_difference_of_levels() -> None:
    change, _, _ = judged(blocks([1, 2, 1, 2], [2, 4, 2, 4]), 0.95, 0.95)
    assert change.value == pytest.approx(2) and change.low * change.high == pytest.approx(4, rel=1e-5)
    level, _, _ = judged(blocks([0.4, 0.5, 0.4, 0.5], [0.5, 0.6, 0.5, 0.6], "acceptance_rate", logs=False), 0.95, 0.95)
    assert level.value == pytest.approx(0.1)


def test_same_against_same_is_seldom_told_apart() -> None:
    """20 comparisons of four blocks with 10 % spread: a false `better` or `worse` in at most 5 % of results."""
    draw, wrong = random.Random(1), 0
    for _ in range(100):
        pairs = [
            ([draw.lognormvariate(0, 0.1) for _ in range(4)], [draw.lognormvariate(0, 0.1) for _ in range(4)]) for _ in range(20)
        ]
        wrong += any(judged(blocks(a, b), 0.95, 1 - 0.05 / 20)[1] in ("better", "worse") for a, b in pairs)
    assert wrong <= 11  # 5 expected at most; more than 11 with probability 0.004


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({"a": 1, "b": {"c": 2}}, {"a": 1, "b": {"c": 3}}, [Change("/b/c", 2, 3)]),
        ({"a": [1, 2]}, {"a": [1, 2, 3]}, [Change("/a", [1, 2], [1, 2, 3])]),
        (
            {"w": [{"id": "x", "n": 1}, {"id": "y", "n": 1}]},
            {"w": [{"id": "y", "n": 2}, {"id": "x", "n": 1}]},
            [Change("/w/y/n", 1, 2)],
        ),
        ({"a": 1}, {"b": 1}, [Change("/a", 1, None), Change("/b", None, 1)]),
        ({"g": [{"n": "one"}]}, {"g": [{"n": "two"}]}, [Change("/g/0/n", "one", "two")]),
        ({"a": {}}, {"a": None}, [Change("/a", {}, None)]),
        ({"a": True}, {"a": 1}, [Change("/a", True, 1)]),
        ({"a": 1}, {"a": 1}, []),
    ],
)
def test_changes(before: Any, after: Any, expected: list[Change]) -> None:
    assert changed(before, after) == expected


def test_one_setting_is_named_and_two_cannot_be_told_apart(reported: Sample) -> None:
    spec = copy.deepcopy(reported.spec)
    spec["pair"]["speculative"]["num_speculative_tokens"] = 5
    assert spec_changes(reported.spec, spec) == [Change("/pair/speculative/num_speculative_tokens", 3, 5)]
    assert against(Result(spec, reported.entry), result(reported)).cautions == []
    spec["pair"]["speculative"]["model"] = "models/another"
    (caution,) = against(Result(spec, reported.entry), result(reported)).cautions
    assert "differ in 2 settings" in caution
    spec["protocol"]["load"]["requests"] = 64
    assert any("/protocol/load/requests" in one for one in against(Result(spec, reported.entry), result(reported)).cautions)


def test_another_machine_is_named(reported: Sample) -> None:
    entry = copy.deepcopy(reported.entry)
    entry["host"] |= {"processor": "another", "memory_bytes": 1, "gpus": [{"name": "a GPU", "uuid_sha256": "x", "index": 0}]}
    found = against(Result(reported.spec, entry), result(reported))
    assert [change.path for change in found.ran] == ["/host/processor", "/host/gpus", "/host/gpus/0/name"]
    assert found.cautions == ["the spec is the same and the machine is not"]


def test_a_faster_pair_is_found_and_acceptance_is_not(reported: Sample, faster: Sample) -> None:
    found = against(result(faster), result(reported))
    kinds = {(row.cell, row.metric): row.finding for row in found.differences}
    assert len(kinds) == 18 and found.changes == [] and found.ran == []
    assert kinds[(("varied", 1), "tpot_p50")] == kinds[(("varied", 1), "output_throughput")] == "better"
    assert kinds[(("repetitive", 1), "acceptance_rate")] in ("not_told_apart", "alone")
    back = against(result(reported), result(faster))
    assert {row.finding for row in back.differences if row.metric == "tpot_p50"} == {"worse"}
    shift = next(row for row in found.shifts if (row.cell, row.arm, row.metric) == (("varied", 1), "pair", "step_time"))
    assert shift.after / shift.before == pytest.approx(15 / 22, rel=0.05)
    capacity = next(row for row in found.shifts if row.metric == "kv_capacity_tokens")
    assert (capacity.before, capacity.after) == (0.8, 0.8)


def test_nothing_is_compared_with_a_pair_that_was_not_established(reported: Sample, faster: Sample) -> None:
    entry = copy.deepcopy(faster.entry)
    entry["established"]["verdict"] = "not_established"
    found = against(Result(faster.spec, entry), result(reported))
    assert found.differences == [] and "not established" in found.cautions[-1]
    assert "Nothing is compared." in text(Result(faster.spec, entry), result(reported))


def test_every_form_says_it(reported: Sample, faster: Sample) -> None:
    for made in (
        text(result(faster), result(reported)),
        markdown(result(faster), result(reported)),
        page(result(faster), result(reported)),
    ):
        assert "r1" in made and "r2" in made and "better" in made and "99.72%" in made
    assert "<script" not in page(result(faster), result(reported)) and len(markdown(result(faster), result(reported))) < 65_536
    data = json.loads(json.dumps(as_data(result(faster), result(reported)), allow_nan=False))
    jsonschema.validate(data, SCHEMA)
    assert data["before"]["result"] == "r1" and len(data["differences"]) == 18


def test_the_command_finds_the_other_result(reported: Sample, faster: Sample, tmp_path: Path) -> None:
    path = spec_file(tmp_path, reported.spec, reported.entry, faster.entry)

    def run(*words: str | Path) -> Any:
        return CliRunner().invoke(cli, ["report", *map(str, words)], standalone_mode=False)

    assert run(path, "--against", path).output == text(result(faster), result(reported))
    assert "has no result before r1" in str(run(path, "--result", "0", "--against", path).exception)
    assert "both are result r2" in str(run(path, "--against", path, "--against-result", "1").exception)
