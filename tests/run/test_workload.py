"""Prompts: decided by the spec alone, the same everywhere."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stand_in_run import spec_data

from speclint.workload import (
    Draw,
    WorkloadError,
    block_prompts,
    fresh,
    lengths,
    prompt_digests,
    prompts_digest,
    requests_at,
    unmatched,
    warmup_at,
    warmup_prompts,
)

DATA = spec_data()
PROTOCOL = DATA["protocol"]
REPETITIVE, VARIED = PROTOCOL["workloads"]
HERE = Path()


def filed(folder: Path, rows: list[Any], text: str | None = None) -> dict[str, Any]:
    """The varied workload with its prompts in a file."""
    source = (text if text is not None else "".join(json.dumps(row) + "\n" for row in rows)).encode()
    (folder / "p.jsonl").write_bytes(source)
    return VARIED | {"prompts": {"file": "p.jsonl", "sha256": hashlib.sha256(source).hexdigest()}}


@pytest.mark.parametrize("workload", [REPETITIVE, VARIED], ids=["repetitive", "varied"])
def test_generators_give_the_same_bytes_in_any_process(workload: dict[str, Any]) -> None:
    code = f"from pathlib import Path; from speclint.workload import *; print(prompt_digests({workload!r}, {PROTOCOL!r}, Path()))"
    env = {"PYTHONHASHSEED": "77", "PATH": os.environ["PATH"], "LC_ALL": "C"}
    told = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True, cwd=Path(__file__).parents[2]
    )
    assert told.stdout.strip() == str(prompt_digests(workload, PROTOCOL, HERE))


def test_digests_are_those_of_version_one() -> None:
    """A changed generator must get another version: locks in the world hold these."""
    assert [prompts_digest(block_prompts(w, PROTOCOL, HERE, 1))[:19] for w in (REPETITIVE, VARIED)] == PINNED
    first = Draw("a", 1)
    assert [first.below(1000) for _ in range(4)] == DRAWN


PINNED = ["sha256:25ad3b720a46", "sha256:ea46e365775b"]
DRAWN = [56, 737, 317, 404]


def test_blocks_have_their_own_prompts_unless_the_design_says_same() -> None:
    digests = prompt_digests(VARIED, PROTOCOL, HERE)
    assert len(digests) == len(set(digests)) == 4
    same = PROTOCOL | {"design": PROTOCOL["design"] | {"prompts": "same"}}
    assert len(set(prompt_digests(VARIED, same, HERE))) == 1


def test_seed_and_workload_decide() -> None:
    def contents(workload: dict[str, Any]) -> list[Any]:
        return [p.content for p in block_prompts(workload, PROTOCOL, HERE, 1)]

    assert contents(VARIED) != contents(VARIED | {"prompts": {"generator": "varied", "seed": 8}})
    assert contents(VARIED) != contents(VARIED | {"id": "other"})
    assert contents(VARIED) == contents(VARIED | {"output": {"tokens": 99, "stop": "length"}})


def test_repetitive_repeats_itself_more_than_varied() -> None:
    def repeated(workload: dict[str, Any]) -> float:
        """Share of five-character windows that occurred before in the same prompt."""
        shares = []
        for prompt in block_prompts(workload, PROTOCOL | {"load": {"requests": 40}}, HERE, 1):
            pieces = [str(prompt.content)[i : i + 5] for i in range(len(str(prompt.content)) - 4)]
            shares.append(1 - len(set(pieces)) / len(pieces))
        return sum(shares) / len(shares)

    assert repeated(REPETITIVE) > 2 * repeated(VARIED)


@given(st.integers(1, 4096), st.floats(0, 1), st.integers(0, 50))
def test_lengths_stay_within_the_spread(tokens: int, spread: float, seed: int) -> None:
    found = lengths({"tokens": tokens, "spread": spread}, 20, seed)
    assert len(found) == 20 and min(found) >= 1
    assert all(tokens * (1 - spread) - 0.5 <= n <= max(1, tokens * (1 + spread) + 0.5) for n in found)


def test_lengths_without_spread_are_equal_and_with_it_centred() -> None:
    assert set(lengths({"tokens": 32}, 10, "x")) == {32}
    many = lengths({"tokens": 100, "spread": 0.5}, 2000, "x")
    assert sum(many) / len(many) == pytest.approx(100, rel=0.03) and min(many) < 60 and max(many) > 140


def test_warmup_prompts_are_others_and_differ_by_cell() -> None:
    one = warmup_prompts(VARIED, PROTOCOL, HERE, "block 1 c1-varied", 2)
    assert len(one) == 2
    measured = {p.content for block in (1, 2, 3, 4) for p in block_prompts(VARIED, PROTOCOL, HERE, block)}
    assert not {p.content for p in one} & measured  # type: ignore[comparison-overlap]
    assert one != warmup_prompts(VARIED, PROTOCOL, HERE, "block 2 c1-varied", 2)


def test_a_long_file_is_cut_into_one_part_per_block(tmp_path: Path) -> None:
    rows = [{"prompt": f"p{i}"} for i in range(26)]  # 4 blocks of 6 and 2 for the warm-up
    assert not fresh(filed(tmp_path, rows[:25]), PROTOCOL, tmp_path)
    workload = filed(tmp_path, rows)
    assert fresh(workload, PROTOCOL, tmp_path)
    parts = [[p.content for p in block_prompts(workload, PROTOCOL, tmp_path, b)] for b in (1, 2, 3, 4)]
    assert [content for part in parts for content in part] == [row["prompt"] for row in rows[:24]]
    assert [p.content for p in warmup_prompts(workload, PROTOCOL, tmp_path, "c", 2)] == ["p25", "p24"]


def test_a_short_file_repeats_in_every_block(tmp_path: Path) -> None:
    workload = filed(tmp_path, [{"prompt": f"p{i}"} for i in range(4)])
    assert not fresh(workload, PROTOCOL, tmp_path)
    contents = [[p.content for p in block_prompts(workload, PROTOCOL, tmp_path, b)] for b in (1, 4)]
    assert contents == [["p0", "p1", "p2", "p3", "p0", "p1"]] * 2
    assert [p.content for p in warmup_prompts(workload, PROTOCOL, tmp_path, "c", 2)] == ["p3", "p2"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "holds no prompt"),
        ("\n \n", "holds no prompt"),
        ('{"prompt": "a"}\nnot json\n', ":2: not"),
        ('{"text": "a"}\n', ":1: not"),
        ("[1]\n", ":1: not"),
        ("5\n", ":1: not"),
        ('{"prompt": 5}\n', ":1: not"),
        ('{"messages": "hi"}\n', ":1: not"),
    ],
)
def test_a_file_that_holds_no_prompts_is_refused_by_line(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(WorkloadError, match=words):
        block_prompts(filed(tmp_path, [], text), PROTOCOL, tmp_path, 1)


def test_a_changed_or_missing_file_is_refused(tmp_path: Path) -> None:
    workload = filed(tmp_path, [{"prompt": "a"}])
    (tmp_path / "p.jsonl").write_text('{"prompt": "b"}\n', encoding="utf-8")
    with pytest.raises(WorkloadError, match="the spec says"):
        block_prompts(workload, PROTOCOL, tmp_path, 1)
    (tmp_path / "p.jsonl").unlink()
    with pytest.raises(WorkloadError, match="cannot be read"):
        block_prompts(workload, PROTOCOL, tmp_path, 1)


def test_chat_messages_are_no_prompts_for_completions(tmp_path: Path) -> None:
    workload = filed(tmp_path, [{"messages": [{"role": "user", "content": "hello"}]}])
    with pytest.raises(WorkloadError, match="holds chat messages, the spec's endpoint is completions"):
        block_prompts(workload, PROTOCOL, tmp_path, 1)
    chat = PROTOCOL | {"request": {"endpoint": "chat"}}
    assert block_prompts(workload, chat, tmp_path, 1)[0].content == [{"role": "user", "content": "hello"}]


def test_a_list_gives_each_level_its_own_number_and_one_number_is_for_all() -> None:
    load, design = {"concurrency": [8, 1], "requests": [64, 16]}, {"blocks": 4, "warmup": [16, 2]}
    listed: dict[str, Any] = {"load": load, "design": design}
    assert [requests_at(listed, level) for level in (8, 1, "open")] == [64, 16, 64]
    assert [warmup_at(listed, level) for level in (8, 1, "open")] == [16, 2, 16]
    one: dict[str, Any] = {"load": {"concurrency": [8, 1], "requests": 64}, "design": {"warmup": 16}}
    assert [requests_at(one, level) for level in (8, 1, "open")] == [64, 64, 64] and warmup_at(one, 1) == 16
    assert unmatched(listed) == unmatched(one) == ""
    assert unmatched({"load": load | {"requests": [8]}, "design": design}) == "load.requests has 1 for 2"
    with pytest.raises(ValueError, match="shorter"):
        requests_at({"load": {"concurrency": [1, 2], "requests": [8]}}, 1)


def test_a_block_has_the_prompts_of_its_fullest_window(tmp_path: Path) -> None:
    listed = PROTOCOL | {"load": PROTOCOL["load"] | {"requests": [2, 6]}}
    assert block_prompts(VARIED, listed, HERE, 1) == block_prompts(VARIED, PROTOCOL, HERE, 1)
    design = PROTOCOL["design"] | {"warmup": [1, 2]}
    rows = [{"prompt": f"p{i}"} for i in range(26)]
    assert fresh(filed(tmp_path, rows), listed | {"design": design}, tmp_path)
    assert not fresh(filed(tmp_path, rows[:25]), listed | {"design": design}, tmp_path)
