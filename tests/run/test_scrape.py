"""Metrics pages: sums over engines, absent is not zero, differences."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stand_in import Engine
from stand_in_run import release, serving

from specrun import scrape, start

PAGE = """\
# TYPE vllm:spec_decode_num_drafts counter
vllm:spec_decode_num_drafts_total{engine="0",model_name="m"} 5.0
vllm:spec_decode_num_drafts_total{engine="1",model_name="m"} 7.0
# TYPE vllm:spec_decode_num_accepted_tokens_per_pos counter
vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="0",position="10"} 1.0
vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="0",position="0"} 4.0
vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="1",position="0"} 2.0
# TYPE vllm:inter_token_latency_seconds histogram
vllm:inter_token_latency_seconds_bucket{le="0.01"} 3.0
vllm:inter_token_latency_seconds_bucket{le="+Inf"} 9.0
vllm:inter_token_latency_seconds_sum 0.5
vllm:inter_token_latency_seconds_count 9.0
vllm:num_requests_running{engine="0"} 1.0
vllm:num_requests_running{engine="1"} 2.0
vllm:num_requests_waiting{engine="0"} 4.0
"""
NUMBERS = st.none() | st.floats(0, 1e9)
COUNTERS = st.fixed_dictionaries(
    {"drafts": NUMBERS, "itl_sum": NUMBERS, "by": st.none() | st.lists(st.floats(0, 1e6), max_size=5)}
)


def test_counters_sum_over_engines_and_absent_is_none() -> None:
    found = scrape.counters(scrape.parse(PAGE), release())
    assert found["drafts"] == 12
    assert found["accepted_per_position"] == [6, *[0] * 9, 1]  # positions in order, none left out
    assert (found["itl_sum"], found["itl_count"]) == (0.5, 9)
    assert found["draft_tokens"] is None and found["prefix_hits"] is None and found["generation_tokens"] is None
    assert scrape.running(scrape.parse(PAGE)) == 7 and scrape.running({}) == 0


def test_every_role_is_read_from_a_whole_page() -> None:
    async def page() -> scrape.Page:
        async with serving(Engine(speculative={"num_speculative_tokens": 3})) as socket:
            return await start.Talk(socket).page()

    found = scrape.counters(asyncio.run(page()), release())
    assert {name for name, value in found.items() if value is None} == {"preemptions", "prefix_hits", "prefix_queries"}


def test_a_page_that_is_never_idle_is_given_all_the_same() -> None:
    async def page() -> scrape.Page:
        async with serving(Engine(running=1)) as socket:
            return await start.Talk(socket).idle_page(0.1)

    assert scrape.running(asyncio.run(page())) == 1


def test_difference_by_hand() -> None:
    before = {"drafts": 10.0, "new": None, "gone": 3.0, "by": [5.0, 1.0], "late": None}
    after = {"drafts": 17.0, "new": 4.0, "gone": None, "by": [9.0, 1.0], "late": [2.0]}
    assert scrape.difference(before, after) == {"drafts": 7.0, "new": 4.0, "gone": None, "by": [4.0, 0.0], "late": [2.0]}


def test_positions_that_come_or_go_within_a_window() -> None:
    assert scrape.difference({"by": [1.0]}, {"by": [2.0, 3.0]}) == {"by": [1.0, 3.0]}
    assert scrape.difference({"by": [1.0, 2.0]}, {"by": [2.0]}) == {"by": [1.0, -2.0]}


@given(COUNTERS, COUNTERS)
def test_difference_never_raises_and_adds_up(before: dict[str, Any], after: dict[str, Any]) -> None:
    found = scrape.difference(before, after)
    assert found.keys() == after.keys()
    for name in ("drafts", "itl_sum"):
        assert found[name] is None if after[name] is None else found[name] == after[name] - (before[name] or 0)
    assert (found["by"] is None) == (after["by"] is None)
    assert found["by"] is None or len(found["by"]) == max(len(after["by"]), len(before["by"] or []))


@given(COUNTERS)
def test_an_idle_window_counts_nothing(page: dict[str, Any]) -> None:
    found = scrape.difference(page, page)
    assert all(not value or not any(value) for value in found.values() if isinstance(value, list))
    assert all(not value for value in found.values() if not isinstance(value, list))


@pytest.mark.parametrize(
    ("labels", "tokens", "sequences", "size"),
    [
        (
            'kv_cache_size_tokens="419328",kv_cache_max_concurrency="409.5",kv_cache_memory_bytes="1073741824"',
            419328,
            409,
            1073741824,
        ),
        ('num_gpu_blocks="100",block_size="16"', 1600, None, None),
        ('kv_cache_size_tokens="None",num_gpu_blocks="10",block_size="128",kv_cache_max_concurrency="None"', 1280, None, None),
        ('num_gpu_blocks="None",block_size="16"', None, None, None),
    ],
)
def test_capacity(labels: str, tokens: int | None, sequences: int | None, size: int | None) -> None:
    page = scrape.parse(f"vllm:cache_config_info{{{labels}}} 1.0\n")
    assert scrape.capacity(page) == {"kv_capacity_tokens": tokens, "kv_capacity_sequences": sequences, "kv_cache_bytes": size}
    assert scrape.capacity({})["kv_capacity_tokens"] is None


@pytest.mark.parametrize(
    ("labels", "tokens", "sequences"),
    [
        (('kv_cache_size_tokens="1000",kv_cache_max_concurrency="1.5"',) * 2, 2000, 3),
        (('kv_cache_size_tokens="1000",num_gpu_blocks="20",block_size="16"', 'num_gpu_blocks="20",block_size="16"'), 320, None),
        (('num_gpu_blocks="20",block_size="16"',) * 2, 320, None),  # each row has the sum over engines already
    ],
)
def test_capacity_of_several_engines(labels: tuple[str, str], tokens: int, sequences: int | None) -> None:
    rows = (f'vllm:cache_config_info{{engine="{number}",{row}}} 1.0\n' for number, row in enumerate(labels))
    found = scrape.capacity(scrape.parse("".join(rows)))
    assert (found["kv_capacity_tokens"], found["kv_capacity_sequences"]) == (tokens, sequences)


def test_leaves_are_named_by_pointer() -> None:
    assert scrape.leaves({"a": {"b": 1, "c": []}, "d": [{"e": None}]}) == {"/a/b": 1, "/a/c": [], "/d/0/e": None}


def test_facts_that_only_the_log_holds() -> None:
    log = """INFO Using V1 Model Runner
Model Runner V2 requires Triton; using the V1 model runner instead
Model loading took 1.5 GiB
Model loading took 0.25 GiB
INFO Using FLASH_ATTN attention backend
WARNING CUDAGraphMode.FULL_AND_PIECEWISE is not supported with this backend; setting cudagraph_mode=PIECEWISE because attention
Available KV cache memory: 2.00 GiB
"""
    gib = 2**30
    assert start.log_facts(log) == {
        "runner": "V1",
        "attention_backend": "FLASH_ATTN",
        "cudagraph_mode": "PIECEWISE",
        "weights_bytes": int(1.75 * gib),
        "kv_cache_bytes": 2 * gib,
    }
    assert start.log_facts("") == {}
