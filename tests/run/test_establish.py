"""Was the pair established: every fault of the stand-in against the check that must see it, and tables worked out by hand."""

from __future__ import annotations

import copy
from functools import cache
from typing import Any

import pytest
from stand_in import Engine
from stand_in_run import load_of, release, spec_data, window_of

from specrun import conclude, effective
from specrun.establish import (
    Check,
    Prompts,
    Window,
    answers,
    configured,
    dead_tail,
    decode_steps,
    drafting,
    established,
    failures,
    placeholders,
    summarise,
    target_alone,
    voids,
)

DATA = spec_data()
SPECULATIVE = DATA["pair"]["speculative"]
CONFIGURED = "the engine reports the spec's method, draft and K"
PER_STEP = "drafts are made at every decode step"


@cache
def measured(arm: str, fault: str, *numbers: int) -> tuple[dict[str, Any], Window]:
    """Start facts and window of an arm that runs on the stand-in."""
    served = Engine(fault, numbers, dict(SPECULATIVE) if arm == "pair" else None)
    info, records, config = window_of(served, load_of(DATA), arm)
    words = ["--speculative-config", '{"method": "draft_model", "model": "draft"}'] if arm == "pair" else []
    start = {"arm": arm, "argv": words, "config": config, "from_log": {}, "fallback_lines": []}
    return start, summarise(info, records)


def outcome(pair_fault: str = "", target_fault: str = "", *numbers: int) -> tuple[dict[str, Check], list[Window]]:
    """All checks of a pair and a target with the given faults, by name."""
    target, pair = measured("target", target_fault, *numbers), measured("pair", pair_fault, *numbers)
    starts, windows = [target[0], pair[0]], [target[1], pair[1]]
    found = [*established(DATA, starts, windows), same_prompts(windows)]
    found.append(conclude.arms_differ(effective.differences(*starts, release().config_diff)))
    return {check.check: check for check in found}, windows


def test_a_healthy_pair_passes_every_check() -> None:
    checks, windows = outcome()
    assert {name: check.outcome for name, check in checks.items()} == dict.fromkeys(checks, "ok")
    assert len(checks) == 9
    assert voids(DATA, windows) == {}


@pytest.mark.parametrize(
    ("pair", "target", "failed", "words"),
    [
        ("no-counters", "", "drafts are made", "no draft counters in block 1 pair c4-varied"),
        ("no-usage", "no-usage", "requests succeed", "24 of 24"),
        ("lying-usage", "", "requests succeed", "usage says"),
        ("no-ids", "", "requests succeed", "no token in the answer"),
        ("cut", "", "requests succeed", "without [DONE]"),
        ("http-500", "", "requests succeed", "HTTP 500"),
        ("http-429", "", "requests succeed", "HTTP 429"),
        ("reordered", "", "requests succeed", "where the chunks hold"),
        ("duplicated", "", "requests succeed", "where the chunks hold"),
        ("lost", "", "requests succeed", "where the chunks hold"),
        ("", "http-500", "requests succeed", "target 8 of 24, pair 0 of 24"),
        ("no-drafts", "", "drafts are made", "not one draft"),
        ("too-few", "", PER_STEP, "draft tokens, 3 ×"),
        ("wrong-k", "", CONFIGURED, "num_speculative_tokens is 2, the spec says 3"),
        ("wrong-draft", "", CONFIGURED, "draft is 'another'"),
        ("not-configured", "", CONFIGURED, "no speculative_config"),
        ("", "target-drafts", "the target runs alone", "drafts were counted in block 1 target c4-varied"),
        ("other-prompt", "", "all arms saw the same prompts", "other prompt token ids"),
        ("other-config", "", "the arms differ by speculation alone", "/vllm_config/model_config/dtype"),
        ("short", "short", "requests succeed", "tokens instead of"),
    ],
)
def test_each_fault_fails_its_check(pair: str, target: str, failed: str, words: str) -> None:
    checks, _ = outcome(pair, target)
    assert failed in checks, list(checks)
    assert checks[failed].outcome == "failed"
    assert words in checks[failed].detail


@pytest.mark.parametrize("fault", ["two-engines", "no-text"])
def test_what_is_no_fault_passes(fault: str) -> None:
    checks, windows = outcome(fault, fault)
    assert [check for check in checks.values() if check.outcome == "failed"] == []
    assert voids(DATA, windows) == {}
    whole = measured("pair", "")[1].info["counters"]
    assert windows[1].info["counters"]["drafts"] == whole["drafts"]  # of both engines together
    assert windows[1].info["counters"]["accepted_per_position"] == whole["accepted_per_position"]


def test_zero_filled_drafts_are_seen_by_what_they_deliver() -> None:
    """Drafts equal decode steps and draft tokens equal K × drafts, as if all were well: evidence A1."""
    checks, _ = outcome("placeholders", "", 60)
    assert checks[PER_STEP].outcome == "ok"
    assert checks["drafts are not placeholders"].outcome == "failed"
    assert "no acceptance in the last" in checks["drafts are not placeholders"].detail
    none = outcome("placeholders", "", 0)[0]["drafts are not placeholders"]
    assert none.outcome == "failed" and "nothing accepted" in none.detail


@pytest.mark.parametrize("at", [2, 12, 23])
def test_counters_that_begin_anew_are_seen_wherever_they_do(at: int) -> None:
    """After an early reset every counter is above its first value again; the tokens that clients got are not."""
    checks, windows = outcome("reset", "", at)
    assert checks["drafts are made"].outcome == "failed"
    assert "fell inside block 1 pair c4-varied" in checks["drafts are made"].detail
    assert list(voids(DATA, windows).values()) == ["the server's counters fell inside the window of pair"]


def test_counters_that_fall_are_seen() -> None:
    info, records, _ = window_of(Engine("", (), dict(SPECULATIVE)), load_of(DATA), "pair")
    fallen = summarise(copy.deepcopy(info), records)
    fallen.info["counters"]["drafts"] -= 10_000
    fallen.info["counters"]["itl_count"] -= 10_000
    check = drafting("draft_model", 3, [fallen])
    assert check.outcome == "failed" and "fell inside block 1 pair c4-varied" in check.detail
    assert drafting("ngram", 3, [fallen]).outcome == "failed"
    assert voids(DATA, [fallen]) == {(("varied", 4), 1): "the server's counters fell inside the window of pair"}


def same_prompts(windows: list[Window]) -> Check:
    found = Prompts()
    found.add(windows)
    return found.check()


def window(arm: str = "pair", block: int = 1, requests: int = 100, errors: int = 0, **more: Any) -> Window:
    counters = {"drafts": 100.0, "draft_tokens": 300.0, "itl_count": 100.0} | more.pop("counters", {})
    info = {"arm": arm, "block": block, "workload": "varied", "concurrency": 1, "requests": requests, "counters": counters}
    pattern = more.pop("steps", [])
    told = {"steps": len(pattern), "dead": dead_tail(pattern)}
    return Window(info | more.pop("info", {}), errors=["gone"] * errors, **told, **more)


def steps(*pattern: tuple[int, int]) -> list[tuple[int, int]]:
    """Steps at rising context positions from runs (how many, accepted in each)."""
    flat = [accepted for count, accepted in pattern for _ in range(count)]
    return list(enumerate(flat, 10))


@pytest.mark.parametrize(
    ("pattern", "dead"),
    [
        ([(40, 1), (63, 0)], False),
        ([(40, 1), (64, 0)], True),
        ([(40, 1), (64, 0), (1, 1)], False),  # it came back: no tail
        ([(1, 1), (64, 0), (40, 1)], False),
        ([(63, 0)], False),  # too few to say anything
        ([(64, 0)], True),
        ([(400, 3), (64, 0)], True),
        ([(200, 1)], False),
    ],
)
def test_dead_tails(pattern: list[tuple[int, int]], dead: bool) -> None:
    assert (dead_tail(steps(*pattern)) is not None) is dead


@pytest.mark.parametrize(("tail", "dead"), [(64, False), (87, False), (88, True)])
def test_rare_acceptance_is_no_dead_tail_until_chance_is_out_of_question(tail: int, dead: bool) -> None:
    """One step of ten accepts: 0.9 ** 87 = 1.04e-4 and 0.9 ** 88 = 0.94e-4 stand on either side of 1e-4."""
    rare = [(9, 0), (1, 1)] * 30
    assert (dead_tail(steps(*rare, (tail, 0))) is not None) is dead


def test_acceptance_that_sinks_slowly_is_judged_by_its_last_rate() -> None:
    """500 steps that accept always, then 256 that accept once in 32: a tail of 64 is common there, (31/32) ** 64 = 0.13."""
    assert dead_tail(steps((500, 1), *[(31, 0), (1, 1)] * 8, (64, 0))) is None
    assert dead_tail(steps((500, 1), (64, 0))) is not None


def test_dead_tail_follows_the_context_not_the_order_of_arrival() -> None:
    shuffled = [(position, accepted) for position, accepted in steps((100, 1), (64, 0))][::-1]
    assert "from context position 109 on" in str(dead_tail(shuffled))


def test_an_accepted_zero_is_no_sign_of_a_draft() -> None:
    """Chunks after the first: two ids, one accepted that is 0; three, of the two accepted ones the second is 0; one."""
    row = {"tokens_in": 50, "ids": [9, 0, 8, 7, 0, 6, 5], "chunks": [[0.1, 1], [0.2, 2], [0.3, 3], [0.4, 1]]}
    assert list(decode_steps(row)) == [(51, 0), (53, 1), (56, 0)]
    assert list(decode_steps(row | {"ids": []})) == [(51, 1), (53, 2), (56, 0)]  # a server that returns no ids


def test_lookup_methods_have_no_placeholders() -> None:
    assert placeholders("ngram", [window(steps=steps((200, 0)))]).outcome == "skipped"
    assert placeholders("eagle3", [window(steps=steps((200, 0)))]).outcome == "failed"


@pytest.mark.parametrize(
    ("drafts", "tokens", "outcome"),
    [
        (100, 300, "ok"),
        (95, 285, "ok"),
        (94, 282, "failed"),  # fewer than 0.95 of the decode steps
        (100, 285, "ok"),  # the length edge: up to 5 % of the draft tokens
        (100, 284, "failed"),
        (100, 301, "failed"),
        (0, 0, "failed"),
    ],
)
def test_drafts_against_decode_steps(drafts: float, tokens: float, outcome: str) -> None:
    counters = {"drafts": drafts, "draft_tokens": tokens, "itl_count": 100.0}
    assert drafting("draft_model", 3, [window(counters=counters)]).outcome == outcome


def test_without_a_step_histogram_the_chunks_count() -> None:
    bare = {"itl_count": None, "drafts": 90.0, "draft_tokens": 270.0}
    assert drafting("mtp", 3, [window(counters=bare, steps=steps((100, 1)))]).outcome == "failed"
    assert drafting("mtp", 3, [window(counters=bare, steps=steps((94, 1)))]).outcome == "ok"


def test_lookup_methods_need_a_draft_in_each_start() -> None:
    some, none = {"drafts": 3.0}, {"drafts": 0.0}
    assert drafting("ngram", 4, [window(counters=none), window(counters=some)]).outcome == "ok"
    assert "none in block 1 pair" in drafting("ngram", 4, [window(counters=none), window(counters=some)]).detail
    check = drafting("suffix", 4, [window(counters=some), window(block=2, counters=none)])
    assert check.outcome == "failed" and "block 2" in check.detail


def test_no_window_is_no_pair() -> None:
    assert drafting("draft_model", 3, []).outcome == "failed"


@pytest.mark.parametrize(("errors", "outcome"), [(0, "ok"), (1, "ok"), (2, "failed")])
def test_one_per_cent_of_an_arm_may_fail(errors: int, outcome: str) -> None:
    assert failures([window(errors=errors), window("target")]).outcome == outcome
    assert failures([window(), window("target", errors=errors)]).outcome == outcome


def test_failures_are_counted_by_arm_over_all_windows() -> None:
    assert failures([window(errors=2), window(block=2)]).outcome == "ok"  # 2 of 200
    assert failures([window(errors=2), window("target", requests=10_000)]).outcome == "failed"


def test_answers_end_as_expected() -> None:
    mixed = [window(finish_reasons={"length": 9, "stop": 1})]
    assert answers("length", mixed).outcome == "failed"
    assert "1 ended with stop" in answers("length", mixed).detail
    assert answers("any", mixed).outcome == "ok"
    assert answers("any", [window(finish_reasons={"length": 1, "abort": 1})]).outcome == "failed"


def test_prompts_are_compared_within_block_and_cell() -> None:
    mine = window(prompts={0: "a", 1: "b"})
    assert same_prompts([mine, window("target", prompts={0: "a", 1: "b"})]).outcome == "ok"
    assert same_prompts([mine, window("target", prompts={0: "a", 1: "c"})]).outcome == "failed"
    assert same_prompts([mine, window("target", block=2, prompts={0: "x", 1: "y"})]).outcome == "ok"
    unknown = same_prompts([window(prompts={0: None})])
    assert unknown.outcome == "skipped"


def test_a_draft_path_with_odd_characters_is_the_same_draft() -> None:
    data = spec_data()
    start = {
        "arm": "pair",
        "argv": ['{"model": "/tmp/\\u00e9t\\u00e9", "x": 1}'],
        "config": {"speculative_config": dict(SPECULATIVE)},
    }
    start["config"]["speculative_config"]["model"] = "/tmp/été"  # type: ignore[index]
    assert configured(data, [start]).outcome == "ok"
    start["config"]["speculative_config"]["model"] = "/tmp/ete"  # type: ignore[index]
    assert configured(data, [start]).outcome == "failed"


def test_a_release_that_does_not_tell_its_configuration_is_not_held_against_the_pair() -> None:
    assert configured(DATA, [{"arm": "pair", "argv": [], "config": None}]).outcome == "skipped"


def test_speculation_configured_in_a_control_is_seen() -> None:
    start = {"arm": "aa", "config": {"speculative_config": {"method": "ngram"}}}
    assert "configured in aa" in target_alone([start], []).detail


def test_draft_counters_in_the_target_are_seen_where_no_configuration_is_reported() -> None:
    start = {"arm": "target", "config": None, "draft_counters": True}
    assert "draft counters in target" in target_alone([start], []).detail
    assert target_alone([start | {"draft_counters": False}], []).outcome == "ok"


def test_voids() -> None:
    tokens = {0: 5, 1: 7}
    good = [window("target", tokens=tokens), window(tokens=tokens)]
    cell = (("varied", 1), 1)
    assert voids(DATA, good) == {}
    assert voids(DATA, [*good, window("aa", tokens={0: 5, 1: 8})]) == {cell: "the arms' answers differ in length"}
    assert voids(DATA, [good[0], window(errors=1)]) == {cell: "1 failed requests in pair"}
    compiled = window(tokens=tokens, info={"compiled": True})
    assert "compiled inside the window of pair" in voids(DATA, [good[0], compiled])[cell]
    busy = window(tokens=tokens, info={"void": "the server was still busy"})
    assert voids(DATA, [good[0], busy]) == {cell: "the server was still busy (pair)"}
    other_block = window(block=2, errors=3)
    assert set(voids(DATA, [*good, other_block])) == {(("varied", 1), 2)}


def test_answers_that_end_by_themselves_may_differ_in_length() -> None:
    data = spec_data(("tokens: 12, spread: 0.5, stop: length", "tokens: 12, spread: 0.5, stop: natural"))
    assert voids(data, [window("target", tokens={0: 5}), window(tokens={0: 6})]) == {}


def test_a_short_answer_has_failed_unless_it_may_end_by_itself() -> None:
    info, records, _ = window_of(Engine(), load_of(DATA), "target")
    records[3] |= {"max_tokens": records[3]["max_tokens"] + 1, "finish_reason": "stop"}
    assert len(summarise(info, records).errors) == 1
    assert summarise(info, records, natural=True).errors == []
    assert 3 not in summarise(info, records).tokens
    assert summarise(info, records).finish_reasons == {"length": 23, "stop": 1}
