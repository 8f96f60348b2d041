"""Prompts kept with the run: readable where the spec lets them be, by digest where not, and held against the lock."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from stand_in_run import spec_data

from speclint.canonical import digest
from speclint.workload import block_prompts, prompt_digests
from specrun import prompts
from specrun.errors import EnvironmentTrouble
from specrun.verify import Row, _prompts

PRIVATE = ("{generator: varied, seed: 7}", "{generator: varied, seed: 7, private: true}")


def kept(folder: Path, *changes: tuple[str, str]) -> dict[str, Any]:
    """A locked spec whose prompts of all blocks are kept in the folder."""
    data = spec_data(*changes)
    protocol = data["protocol"]
    locked = {w["id"]: {"blocks": prompt_digests(w, protocol, folder)} for w in protocol["workloads"]}
    for block in (1, 2, 3, 4):
        prompts.keep(folder, data, folder, block)
    return data | {"lock": {"workloads": locked}}


def said(folder: Path, data: dict[str, Any]) -> Row:
    return _prompts("prompts", data, folder)


def test_prompts_are_kept_once_a_block_and_are_those_of_the_lock(tmp_path: Path) -> None:
    data = kept(tmp_path)
    names = sorted(path.name for path in (tmp_path / "prompts").iterdir())
    assert names == [f"b0{block}-{workload}.jsonl" for block in (1, 2, 3, 4) for workload in ("repetitive", "varied")]
    rows = [json.loads(line) for line in prompts.kept_in(tmp_path, "varied", 2).read_text().splitlines()]
    sent = block_prompts(data["protocol"]["workloads"][1], data["protocol"], tmp_path, 2)
    assert [(row["content"], row["max_tokens"]) for row in rows] == sent
    assert said(tmp_path, data) == Row("prompts", "ok", "8 files")


@pytest.mark.parametrize("text", ["", '{"content": "x", "max_tokens": 3}\n', "[]\n", "{\n", '{"sha256": "x", "max_tokens": 3}\n'])
def test_prompts_that_are_not_those_of_the_lock_are_named(tmp_path: Path, text: str) -> None:
    data = kept(tmp_path)
    prompts.kept_in(tmp_path, "varied", 2).write_text(text)
    assert said(tmp_path, data) == Row("prompts", "failed", "prompts/b02-varied.jsonl is not what the lock has")


def test_of_private_prompts_only_digests_are_kept(tmp_path: Path) -> None:
    data = kept(tmp_path, PRIVATE)
    sent = block_prompts(data["protocol"]["workloads"][1], data["protocol"], tmp_path, 1)
    rows = [json.loads(line) for line in prompts.kept_in(tmp_path, "varied", 1).read_text().splitlines()]
    assert rows == [{"sha256": digest(one.content), "max_tokens": one.max_tokens} for one in sent]
    assert said(tmp_path, data) == Row("prompts", "ok", "8 files; not checked, because private: varied")
    prompts.kept_in(tmp_path, "repetitive", 4).write_text("")
    assert said(tmp_path, data).outcome == "failed"


def test_a_prompt_file_that_went_away_is_said(tmp_path: Path) -> None:
    data = spec_data(("{generator: varied, seed: 7}", f"{{file: gone.jsonl, sha256: {'0' * 64}}}"))
    with pytest.raises(EnvironmentTrouble, match=r"prompt file .*gone\.jsonl cannot be read"):
        prompts.keep(tmp_path, data, tmp_path, 1)


def test_what_cannot_be_compared_is_said(tmp_path: Path) -> None:
    data = kept(tmp_path)
    assert said(tmp_path / "elsewhere", data).detail == "the run has kept none"
    del data["lock"]
    assert said(tmp_path, data) == Row("prompts", "not_checked", "the file has no lock")
    private = kept(tmp_path, PRIVATE, ("{generator: repetitive, seed: 7}", "{generator: repetitive, seed: 7, private: true}"))
    assert said(tmp_path, private) == Row("prompts", "not_checked", "they are private")
