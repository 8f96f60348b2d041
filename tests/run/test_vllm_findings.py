"""What went wrong on real vLLM with every usual sign green, where no other test has it: see the table in docs/protocol.md."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest
from stand_in import Engine
from stand_in_run import load_of, release, serving, spec_data, window_of

from speclint.workload import Prompt
from specrun import blocks, conclude, drive, effective, record, start
from specrun.errors import Refused
from specrun.measure import figures
from specrun.run import Run

TESTS = Path(__file__).resolve().parents[1]
DOCUMENT = TESTS.parent / "docs" / "protocol.md"
SPECULATIVE = {"method": "draft_model", "num_speculative_tokens": 3}
# A healthy start of a pair on a CPU prints all of them.
HEALTHY = """\
WARNING [model_runner.py:10] Model Runner V2 requires Triton; using the V1 model runner instead.
WARNING [speculative.py:900] min_p and logit_bias parameters won't work with speculative decoding.
WARNING [vllm.py:700] max_num_scheduled_tokens is set to 2048 based on the speculative decoding settings. This may be suboptimal.
WARNING [cpu.py:120] Speculative decoding on CPU without Intel OpenMP has a significant performance loss.
"""


def named_tests() -> list[tuple[Path, str]]:
    """File and words of every test that the table names."""
    rows = [line for line in DOCUMENT.read_text(encoding="utf-8").splitlines() if re.match(r"\| A\d+ \|", line)]
    assert {row.split(" | ")[0] for row in rows} == {f"| A{number}" for number in range(1, 11)}
    named = [part for row in rows for part in row.rstrip("| ").rpartition(" | ")[2].split(";")]
    split = [re.fullmatch(r"\s*`([^`]+)`\s*(.*)", part) for part in named]
    return [(TESTS / found[1], word.strip()) for found in split if found for word in found[2].split(",")]


@pytest.mark.parametrize(("path", "words"), named_tests(), ids=lambda value: getattr(value, "name", value))
def test_the_table_names_tests_that_exist(path: Path, words: str) -> None:
    assert path.is_dir() if not words and path.suffix != ".py" else re.search(rf"def test_\w*{words}", path.read_text())


def prepared(folder: Path, device: str = "cpu") -> Run:
    """A run folder with one finished block and nothing in it."""
    record.write_json(folder / "b01" / "block.json", {"block": 1})
    return Run(folder, {"spec": spec_data(("placement: {device: cpu}", f"placement: {{device: {device}}}"))})


def written(folder: Path, arm: str, cell: str, answers: list[list[int]]) -> None:
    path = folder / "b01" / arm / cell / "records.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text("".join(json.dumps({"index": i, "ids": ids}) + "\n" for i, ids in enumerate(answers)))


def test_greedy_answers_are_held_against_another_batch_shape_not_against_a_repeat(tmp_path: Path) -> None:
    """A3: in bfloat16 the target at concurrency 1 agrees with itself, and with itself at 8 in half of the answers."""
    made = prepared(tmp_path)
    alone = [[i, 1, 2, 3] for i in range(16)]
    pair = [ids if i < 13 else [i, 1, 9, 3] for i, ids in enumerate(alone)]
    batched = [ids if i < 8 else [i, 8, 2, 3] for i, ids in enumerate(alone)]
    for workload in ("repetitive", "varied"):
        written(tmp_path, "target", f"c1-{workload}", alone)
        written(tmp_path, "pair", f"c1-{workload}", pair)
        written(tmp_path, "target", f"c2-{workload}", batched)
    found = conclude.answers(made, {})[1]
    assert (found.workload, found.pair.equal, found.pair.compared) == ("varied", 13, 16)
    assert found.pair.first_differences == (3, 3, 3)
    assert found.floor is not None and found.floor.equal == 8


def test_acceptance_is_of_what_was_delivered_not_of_what_was_counted() -> None:
    """A4: counters count past a request's limit; an answer of two tokens can deliver no accepted token."""
    load = load_of(spec_data())
    short = drive.Load([Prompt(p.content, 2) for p in load.prompts], 4, load.request, load.sampling, "length")
    info, records, _ = window_of(Engine("", (), dict(SPECULATIVE)), short, "pair")
    found = figures(info, records, k=3)
    assert info["counters"]["drafts"] == 24 and info["counters"]["accepted_tokens"] > 10
    assert found["acceptance_rate"] is None and float(found["acceptance_rate_counters"] or 0) > 0.1
    assert found["tokens_per_step"] == 1.0 < float(found["mean_accepted_length"] or 0)


def test_two_starts_of_one_command_differ_in_nothing_and_tell_no_secret() -> None:
    """A6: instance ids, names of shared memory and addresses of functions change; tokens stand in the configuration."""

    async def config() -> Any:
        async with serving(Engine("", (), dict(SPECULATIVE))) as socket:
            return await start.effective_config(socket)

    starts = [{"arm": "pair", "block": block, "config": asyncio.run(config())} for block in (0, 1)]
    assert starts[0]["config"] != starts[1]["config"]
    assert effective.drift(starts, release().config_diff) == []
    assert "hf_secret" not in json.dumps(starts) and "SHM_BUFFER" not in json.dumps(starts)


def test_a_matched_arm_that_would_be_the_target_under_another_name_is_refused(tmp_path: Path) -> None:
    """A7: on a CPU target and pair run alike."""
    made = prepared(tmp_path)
    alike = {"config": {"scheduler_config": {"max_num_batched_tokens": 2048, "max_num_scheduled_tokens": None}}}
    pair = {"config": {"scheduler_config": {"max_num_batched_tokens": 2048, "max_num_scheduled_tokens": 2048}}}
    for arm, facts in (("target", alike), ("pair", pair)):
        record.write_json(tmp_path / "first" / arm / "start.json", facts | {"from_log": {"runner": "V1"}})
    with pytest.raises(Refused, match="nothing is left to match"):
        blocks.matching(made, "matched")


def test_what_every_healthy_start_prints_is_no_fallback(tmp_path: Path) -> None:
    """A10: the same first line on a GPU host says that Triton is missing there."""
    log = tmp_path / "server.log"
    log.write_text(HEALTHY)
    assert list(conclude.fallback_lines(prepared(tmp_path), log)) == []
    (told,) = conclude.fallback_lines(prepared(tmp_path, "cuda"), log)
    assert "requires Triton" in told
