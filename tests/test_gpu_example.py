"""The committed GPU results: signatures hold, records give the figures again, and the page quotes them as they stand."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from speclint import document
from specrun.entry import recompute
from specrun.pack import unpack
from specrun.verify import verify

ROOT = Path(__file__).parent.parent
GPU = ROOT / "examples/gpu"
PAGE = (ROOT / "docs/gpu-findings.md").read_text(encoding="utf-8")


def result_of(name: str) -> dict[str, Any]:
    found: dict[str, Any] = document.read(GPU / f"{name}.spec.yaml").data["results"][0]
    return found


@pytest.fixture(scope="module")
def entry() -> dict[str, Any]:
    return result_of("gpu-shared-k3")


@pytest.fixture(scope="module")
def deep() -> dict[str, Any]:
    """Of a run that was ended after 3 of 4 blocks."""
    return result_of("gpu-deep-k3")


@pytest.mark.parametrize("name", ["gpu-shared-k3", "gpu-deep-k3"])
def test_the_records_give_the_signed_figures(tmp_path: Path, name: str) -> None:
    entry = result_of(name)
    folder = unpack(GPU / f"{name}.run.tar.gz", tmp_path)
    assert folder.name == entry["id"]
    rows = {row.claim: row.outcome for row in verify(GPU / f"{name}.spec.yaml", records=tmp_path, recompute=recompute)}
    assert rows[f"result {entry['id']}: figures follow from the records"] == "ok"
    assert "failed" not in rows.values()


@pytest.mark.parametrize("metric", ["request_duration_p50", "step_time"])
def test_the_page_quotes_the_ratios(entry: dict[str, Any], metric: str) -> None:
    rows = [row for row in entry["ratios"] if row["metric"] == metric and row["concurrency"] == 1]
    assert len(rows) == 2
    for row in rows:
        assert f"{row['value']:.2f} " in PAGE
    if metric == "request_duration_p50":
        assert all(f"[{row['low']:.4g}, {row['high']:.4g}]" in " ".join(PAGE.split()) for row in rows)


def test_the_page_quotes_the_capacity(entry: dict[str, Any]) -> None:
    for arm in ("target", "pair"):
        assert f"{entry['arms'][arm]['capacity']['kv_capacity_tokens']:,} " in PAGE


def test_too_little_acceptance_is_less_than_would_break_even(entry: dict[str, Any]) -> None:
    told = [finding["text"] for finding in entry["diagnosis"] if finding["code"] == "DX11"]
    shares = [re.search(r"([\d.]+)% of drafted tokens .* cost ([\d.]+)% would break even", text) for text in told]
    assert shares and all(found and float(found[1]) < float(found[2]) for found in shares)


def test_met_and_not_met_are_among_the_verdicts(entry: dict[str, Any]) -> None:
    verdicts = {verdict["id"]: verdict["verdict"] for verdict in entry["verdicts"]}
    assert verdicts["faster-alone"] == "not_met" and verdicts["first-token"] == "met_one_start"


def test_the_page_quotes_the_deep_pair_block_by_block(deep: dict[str, Any]) -> None:
    rows = [row for row in deep["ratios"] if row["metric"] == "request_duration_p50"]
    assert len(rows) == 3 * 6 and {len(row["blocks"]) for row in rows} == {3}
    for cell in {(row["workload"], row["concurrency"]) for row in rows}:
        of_arms = {row["arms"]: row for row in rows if (row["workload"], row["concurrency"]) == cell}
        shown = [
            f"{of_arms[arms]['value']:.2f} ({', '.join(f'{value:.2f}' for value in of_arms[arms]['blocks'])})"
            for arms in ("pair/target", "matched/target", "pair/matched")
        ]
        assert f"| {cell[0]}, concurrency {cell[1]} | {' | '.join(shown)} |" in PAGE


def test_a_run_that_was_ended_early_judges_nothing(deep: dict[str, Any]) -> None:
    assert deep["established"]["verdict"] == "established"
    assert {verdict["verdict"] for verdict in deep["verdicts"]} == {"undecided"}
    assert any(sentence.startswith("Nothing is judged") for sentence in deep["scope"])
