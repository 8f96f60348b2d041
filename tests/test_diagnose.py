from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from synthetic_run import window

from speclint.data import spec_schema
from specrun.agreement import Agreement, Answers, agreement, first_difference
from specrun.diagnose import diagnose
from specrun.evidence import Cell, Evidence
from specrun.findings import CODES, Setting, one_chain
from specrun.invariants import invariants
from specrun.measure import figures
from specrun.steps import request_ratio, split

CELL: Cell = ("varied", 2)
K = 3
GPU = Setting(K, "cuda")


def cell_of(blocks: int = 4, *, concurrency: int = 2, first_seed: int = 0, **pair: Any) -> dict[str, dict[int, Any]]:
    """Target with steps of 10 ms and a first token after 50 ms, and a pair that differs from it as told."""
    out: dict[str, dict[int, Any]] = {"target": {}, "pair": {}}
    for block in range(1, blocks + 1):
        seed = first_seed + block
        made, records = window(seed, concurrency=concurrency)
        out["target"][block] = figures(made, records)
        made, records = window(seed, concurrency=concurrency, k=K, **pair)
        out["pair"][block] = figures(made, records, k=K)
    return out


def run(cells: dict[Cell, dict[str, dict[int, Any]]], **other: Any) -> Evidence:
    return Evidence(cells, {}, list(cells), 0.95, **other)


def told(seen: Evidence, setting: Setting = GPU, answers: Any = ()) -> dict[str, str]:
    """Text by code, of a diagnosis that says nothing twice."""
    findings, _ = diagnose(seen, setting, answers)
    jsonschema.validate(findings, spec_schema()["$defs"]["result"]["properties"]["diagnosis"])
    assert {finding["code"] for finding in findings} <= CODES.keys()
    assert len({finding["code"] for finding in findings}) == len(findings)
    return {finding["code"]: finding["text"] for finding in findings}


def test_parts_by_hand() -> None:
    # T 10 and 25 ms, g 2: B = 2.5, q = 1.25; first token 2 of 10 s, then 3: R = 0.2 x 1.5 + 0.8 x 1.25 = 1.3
    target = {"step_time": 0.010, "duration_sum": 10.0, "ttft_sum": 2.0}
    part = split(target, {"step_time": 0.025, "tokens_per_step": 2.0, "ttft_sum": 3.0})
    assert part is not None
    assert (part.break_even, part.decode, part.first_share, part.first) == pytest.approx((2.5, 1.25, 0.2, 1.5))
    assert (part.request, part.of_first, part.of_decode) == pytest.approx((1.3, 0.1, 0.2))
    assert part.extra_step_s == pytest.approx(0.015)
    assert part.at_best(4) == pytest.approx(0.2 * 1.5 + 0.8 * 2.5 / 5)
    assert split(target, {"step_time": None, "tokens_per_step": 2.0, "ttft_sum": 3.0}) is None


def test_request_ratio_is_that_of_durations_at_equal_tokens() -> None:
    cell = cell_of(1, step_s=0.02)
    target, pair = cell["target"][1], cell["pair"][1]
    assert request_ratio(target, pair) == pytest.approx(pair["duration_sum"] / target["duration_sum"], rel=1e-12)
    assert request_ratio(target, {}) is None


def test_decode_faster() -> None:
    found = told(run({CELL: cell_of(step_s=0.015, accept=0.9)}))
    assert found.keys() == {"DX02", "DX05", "DX08", "DX23"}  # short answers, most drafts accepted
    assert found["DX02"].startswith(
        "varied at concurrency 2: decode is faster: 0.459 times the target's time per token (0.449 to 0.47 at"
    )
    assert "break-even length 1.5 tokens" in found["DX05"]
    assert re.search(r"reached 3.2\d \(mean accepted length by the counters 3.[34]\d\), at most 4 with K = 3", found["DX05"])
    assert "a step takes 15 ms, 5 ms more than the target's 10 ms, draft and verification together" in found["DX05"]
    assert "+0.00" in found["DX08"] or "-0.00" in found["DX08"]


def test_decode_slower_with_low_acceptance() -> None:
    found = told(run({CELL: cell_of(step_s=0.025, accept=0.3)}))
    assert found.keys() == {"DX03", "DX05", "DX08", "DX11"}
    assert "a gain with perfect drafts is not excluded" in found["DX05"]
    # acceptance (0.3 + 0.09 + 0.027) / 3 = 13.9 %; (B - 1) / K = 50 %
    assert "at this step cost 50" in found["DX11"] and "its training data, tokenizer and chat template" in found["DX11"]


def test_decode_that_these_blocks_do_not_decide() -> None:
    cell = cell_of(accept=0.5, step_s=0.0187)
    for block, factor in enumerate((0.86, 1.15, 0.88, 1.12), 1):
        cell["pair"][block] |= {name: cell["pair"][block][name] * factor for name in ("step_time", "step_sum")}
    assert "decode is undecided" in told(run({CELL: cell}), Setting(K, "cpu"))["DX04"]


def test_even_perfect_drafts_would_lose() -> None:
    found = told(run({CELL: cell_of(step_s=0.05, accept=0.6)}))
    assert found.keys() == {"DX03", "DX05", "DX06", "DX07", "DX08"}  # acceptance is not what is wrong: no DX11
    assert "not excluded" not in found["DX05"]
    assert "a step cannot yield more than 4" in found["DX06"]


def test_break_even_above_the_limit_in_the_middle_only_excludes_nothing() -> None:
    cell = cell_of(step_s=0.041, accept=0.6)
    for block, factor in enumerate((0.9, 1.1, 0.92, 1.08), 1):
        cell["pair"][block] |= {name: cell["pair"][block][name] * factor for name in ("step_time", "step_sum")}
    found = told(run({CELL: cell}), Setting(K, "cpu"))
    assert not {"DX06", "DX07"} & found.keys() and "not excluded" in found["DX05"]


def test_first_token_share() -> None:
    found = told(run({CELL: cell_of(step_s=0.01 * 2.176, first_s=0.15, accept=0.6)}))
    # decode about even (g is near 2.1); first token three times as long and near 14 % of the target's duration
    assert "+0.291 of first token, +0.027 of decode" in found["DX08"] and "3.02 times as long in the pair" in found["DX08"]


@pytest.mark.parametrize(
    ("name", "value", "broken"),
    [
        ("accepted_tokens", 10**6, "accepted within draft tokens"),
        ("draft_tokens", 10**6, "draft tokens within K x drafts"),
        ("mean_accepted_length", 4.01, "mean accepted length from 1 to K + 1"),
        ("acceptance_rate_counters_2", 0.99, "acceptance by position does not rise"),
        ("acceptance_rate_counters_3", 0.0, "accepted by position sums to accepted"),
        ("drafts", 10**5, "drafts within decode steps"),
        ("tokens_per_step", 4.1, "tokens per step"),
        ("output_tokens", 1300, "tokens past the limit from 0 to K a request"),
        ("chunk_tokens", 3, "chunk tokens are usage tokens"),
        ("decode_sum", 0.5, "client against histogram"),
        ("mean_in_flight", 1.9, "requests in flight"),
        ("ttft_sum", 9.0, "request ratio from its parts"),
    ],
)
def test_broken_invariant_withholds_the_diagnosis(name: str, value: float, broken: str) -> None:
    cell = cell_of(step_s=0.02)
    if name == "ttft_sum":  # a client clock that contradicts the histogram in the decode part
        cell["pair"][2]["decode_time_per_token"] *= 1.2
    else:
        cell["pair"][2][name] = value
    seen = run({CELL: cell})
    assert broken in [row.name for row in invariants(seen, CELL, GPU) if not row.holds]
    found = told(seen)
    assert found.keys() == {"DX01"}
    assert "block 2, pair" in found["DX01"]


@pytest.mark.parametrize(("name", "value", "broken"), [("tokens_per_step", 1.1, "tokens per step"), ("drafts", 1, "no drafts")])
def test_target_must_not_speculate(name: str, value: float, broken: str) -> None:
    cell = cell_of(step_s=0.02)
    cell["target"][1][name] = value
    assert f"block 1, target: {broken}" in told(run({CELL: cell}))["DX01"]


def test_clocks_may_differ_more_on_a_shared_cpu() -> None:
    cell = cell_of(step_s=0.02)
    for block in cell["pair"].values():
        block["decode_sum"] *= 1.15
        block["decode_time_per_token"] *= 1.15
    assert "DX01" in told(run({CELL: cell}))
    assert "DX03" in told(run({CELL: cell}), Setting(K, "cpu")) or "DX04" in told(run({CELL: cell}), Setting(K, "cpu"))


def test_healthy_windows_break_nothing() -> None:
    for concurrency in (1, 2, 4):
        cell = ("varied", concurrency)
        seen = run({cell: cell_of(6, concurrency=concurrency, first_seed=50 * concurrency)})
        rows = invariants(seen, cell, GPU)
        names = {(row.arm, row.name) for row in rows}
        assert len(names) == 17 and [row for row in rows if not row.holds] == []


@pytest.mark.parametrize("loss", ["step_time", "void"])
def test_too_few_blocks_withhold(loss: str) -> None:
    cell = cell_of(step_s=0.02)
    if loss == "step_time":
        cell["target"][1]["step_time"] = None
    voids = {(*CELL, 1): "2 requests failed"} if loss == "void" else {}
    assert told(run({CELL: cell}, voids=voids))["DX01"].endswith("3 blocks have step times, 4 are needed")


def test_workloads_that_part_and_the_level_where_the_sign_turns() -> None:
    fast, slow = cell_of(step_s=0.012, accept=0.9), cell_of(step_s=0.03, accept=0.2)
    codes = [finding for finding in diagnose(run({("a", 1): fast, ("b", 1): slow}), GPU)[0] if finding["code"] > "DX08"]
    (parting,) = [finding["text"] for finding in codes if finding["code"] == "DX09"]
    assert parting.startswith("at concurrency 1 the workloads part: a gains (0.") and "b loses (" in parting
    findings = diagnose(run({("a", 1): fast, ("a", 8): slow}), GPU)[0]
    (turn,) = [finding["text"] for finding in findings if finding["code"] == "DX10"]
    assert turn.startswith("a gains at concurrency 1 (") and turn.endswith("the sign turns between them")
    same = diagnose(run({("a", 1): slow, ("b", 1): slow, ("a", 8): slow}), GPU)[0]
    assert not {"DX09", "DX10"} & {finding["code"] for finding in same}
    undecided = cell_of()
    for block, factor in enumerate((0.5, 1.2, 0.4, 1.0), 1):
        undecided["pair"][block] |= {
            name: undecided["target"][block][name] * factor for name in ("ttft_sum", "decode_time_per_token")
        }
    beside = diagnose(run({("a", 1): fast, ("b", 1): undecided, ("a", 8): undecided}), GPU)[0]
    assert not {"DX09", "DX10"} & {finding["code"] for finding in beside}


def test_acceptance_falls_off_at_a_position() -> None:
    cell = cell_of(step_s=0.015, accept=0.9)
    for block in cell["pair"].values():
        block |= {"acceptance_rate_1": 0.586, "acceptance_rate_2": 0.287, "acceptance_rate_3": 0.041}
    assert "at draft position 3: 14.3% where" in told(run({CELL: cell}))["DX12"]
    for block in cell["pair"].values():
        block["acceptance_rate_3"] = 0.15
    assert "DX12" not in told(run({CELL: cell}))


def test_conditions() -> None:
    cell = cell_of(step_s=0.015, accept=0.9)
    for block in cell["pair"].values():
        block |= {"preemptions": 2, "front_end_load": 0.95}
    for block in cell["target"].values():
        block |= {"arrival_bunching": 1.0, "arrival_bunching_by_chance": 0.3}
    found = told(run({CELL: cell}))
    assert "8 preemptions in the pair, 0 in the target" in found["DX13"]
    assert "95% of a core in the pair" in found["DX15"] and "in the target" not in found["DX15"]
    assert "requests of the target come in lock-step" in found["DX16"]


def test_requests_that_wait_in_the_engine() -> None:
    cell = cell_of(step_s=0.015)
    starts = {"target": {1: {"kv_capacity_tokens": 4096}}, "pair": {1: {"kv_capacity_tokens": 3072}}}
    for arm, waits in (("target", 0.001), ("pair", 0.01)):
        for block in cell[arm].values():
            block["queue_time"] = waits
    seen = Evidence({CELL: cell}, starts, [CELL], 0.95)
    text = told(seen)["DX20"]
    assert "10 ms in the pair (20% of TTFT)" in text and "1 ms in the target (2% of TTFT)" in text
    assert text.endswith("it holds 3072 tokens in the pair, 4096 in the target")
    for block in cell["pair"].values():
        block["queue_time"] = 0.001
    assert "DX20" not in told(seen)


def test_acceptance_that_drops_with_the_load() -> None:
    cells = {("a", level): cell_of(step_s=0.015, accept=accept) for level, accept in ((8, 0.6), (2, 0.6), (32, 0.2))}
    for cell in cells.values():
        for block in cell["pair"].values():
            block["mean_in_flight"] = None  # every window was made with two slots
    found, _ = diagnose(run(cells), GPU)  # type: ignore[arg-type]
    (text,) = [finding["text"] for finding in found if finding["code"] == "DX21"]
    assert re.match(r"a: acceptance is \d\d\.\d% at concurrency 8 and \d\.\d% at concurrency 32: it should hardly depend", text)


@pytest.mark.parametrize(("before", "after"), [(0.6, 0.55), (0.0, 0.5), (0.5, 0.5)])
def test_acceptance_that_hardly_drops_is_not_told(before: float, after: float) -> None:
    cells = {("a", level): cell_of(step_s=0.015, accept=0.5) for level in (1, 2)}
    for level, rate in ((1, before), (2, after)):
        for block, row in cells["a", level]["pair"].items():
            row["acceptance_rate"] = rate * (1 + block / 1000)
    assert "DX21" not in {finding["code"] for finding in diagnose(run(cells), GPU)[0]}  # type: ignore[arg-type]


def test_acceptance_that_varies_as_much_as_it_drops_is_not_told() -> None:
    cells = {("a", level): cell_of(step_s=0.015, accept=0.5) for level in (1, 2)}
    for block, rate in enumerate((0.9, 0.1, 0.1, 0.1), 1):
        cells["a", 2]["pair"][block]["acceptance_rate"] = rate
    assert "DX21" not in {finding["code"] for finding in diagnose(run(cells), GPU)[0]}  # type: ignore[arg-type]


def test_first_position_that_hardly_ever_fits() -> None:
    found = told(run({CELL: cell_of(step_s=0.015, accept=0.005)}))
    assert "0.4% of first draft tokens are accepted: look first at the vocabularies" in found["DX22"] and "DX11" in found
    assert "DX22" not in told(run({CELL: cell_of(step_s=0.015, accept=0.1)}))


def test_of_invented_acceptance_only_costs_are_told() -> None:
    seen = run({CELL: cell_of(step_s=0.015, accept=0.005)})
    assert {"DX11", "DX22"} <= told(seen).keys()
    assert told(seen, replace(GPU, invented=True)).keys() == told(seen).keys() - {"DX11", "DX12", "DX22"} >= {"DX03", "DX05"}


def test_counters_that_count_past_the_ends() -> None:
    short = told(run({CELL: cell_of(step_s=0.015, accept=0.9, tokens=8)}))["DX23"]
    assert re.search(r"accepted \d+ tokens past the ends of answers, 2\d\.\d% of those delivered \(acceptance rate", short)
    assert "DX23" not in told(run({CELL: cell_of(step_s=0.015, accept=0.5)}))


def test_noise_floor_of_the_control() -> None:
    cell = cell_of(step_s=0.015)
    cell["aa"] = {block: dict(row) for block, row in cell["target"].items()}
    assert "DX24" not in told(run({CELL: cell}))  # no spread at all: nothing was measured twice
    for block, factor in enumerate((1.01, 0.99, 1.02, 1.0), 1):
        for name in ("ttft_sum", "decode_time_per_token"):
            cell["aa"][block][name] *= factor
    # sd of ln(1.01, 0.99, 1.02, 1.0) = 1.285 %; times sqrt(3 / 9.3484) and sqrt(3 / 0.21580)
    assert "varies by 1.28% from block to block (0.73% to 4.79% at 0.95), that of the pair by" in told(run({CELL: cell}))["DX24"]


def test_a_token_tree_need_not_fall_by_position() -> None:
    cell = cell_of(step_s=0.02)
    cell["pair"][2]["acceptance_rate_counters_2"] = 0.99
    assert "DX01" in told(run({CELL: cell})) and "DX01" not in told(run({CELL: cell}), replace(GPU, chain=False))
    assert one_chain({"method": "draft_model"}) and one_chain({"rejection_sample_method": "standard"})
    assert not one_chain({"speculative_token_tree": "[(0,)]"}) and not one_chain({"rejection_sample_method": "fly"})


def test_step_cost_over_the_numbers_of_a_sweep() -> None:
    cell = cell_of(step_s=0.02, accept=0.6)
    cell["k1"] = cell_of(step_s=0.014, accept=0.6)["pair"]
    text = told(run({CELL: cell}), replace(GPU, sweep={"pair": 3, "k1": 1}))["DX19"]
    assert "over K = 1, 3 a step takes 11 ms" in text and "(two points make the line)" in text
    assert "DX19" not in told(run({CELL: cell}), replace(GPU, sweep={"pair": 3}))


def test_matched_control_takes_its_share() -> None:
    cell = cell_of(step_s=0.03, accept=0.6)
    cell["matched"] = {}
    for block in range(1, 5):
        made, records = window(block, step_s=0.012)
        cell["matched"][block] = figures(made, records)
    text = told(run({CELL: cell}))["DX17"]
    numbers = [float(number) for number in re.findall(r"\d\.\d+", text)]
    assert numbers[0] == pytest.approx(numbers[1] * numbers[2], rel=0.01)
    assert 1.1 < numbers[1] < 1.2  # steps 1.2 times as long, first tokens as before
    cell["pair"][2]["ttft_sum"] = None  # pair / matched is unknown there: three blocks are too few
    assert "DX17" not in told(run({CELL: cell}))


def test_method_that_does_not_draft_at_every_step() -> None:
    cell = cell_of(step_s=0.03, accept=0.1)
    cell["pair"][3] |= {"drafts": 0, "draft_tokens": 0, "accepted_tokens": 0, "mean_accepted_length": None}
    for i in range(1, K + 1):
        cell["pair"][3][f"acceptance_rate_counters_{i}"] = None
    cell["pair"][3]["output_tokens"] = cell["pair"][3]["chunk_tokens"] = cell["pair"][3]["decode_steps"] + 32
    found = told(run({CELL: cell}), replace(GPU, drafts_every_step=False))
    assert found["DX18"].endswith("nothing was drafted in block 3: these answers gave nothing to look up")
    assert "75.0% of decode steps had a draft" in found["DX11"]


def test_answers_beside_their_floor() -> None:
    differing = Agreement(16, 13, (38, 43, 45))
    seen = run({CELL: cell_of(step_s=0.015, accept=0.9)})
    above = told(seen, answers=[Answers("varied", differing, Agreement(16, 8, (1,) * 8))])["DX14"]
    assert above.startswith("varied: 13 of 16 greedy answers are equal token by token, the others differ first at token 43")
    assert above.endswith("8 of 16, so batch shape alone does as much")
    near = told(seen, answers=[Answers("varied", differing, Agreement(16, 16, ()))])["DX14"]
    assert near.endswith("16 of 16, which may be chance (p 0.11)")
    alone = told(seen, answers=[Answers("varied", differing)])["DX14"]
    assert alone.endswith("first at token 43 (median)")
    wider = told(seen, answers=[Answers("varied", Agreement(40, 32, (9,) * 8), Agreement(16, 13, (9,) * 3))])["DX14"]
    assert wider.endswith("13 of 16, which may be chance (p 0.62)")  # 80 % against 81 %
    far = told(seen, answers=[Answers("varied", Agreement(16, 10, (1,) * 6), Agreement(16, 16, ()))])["DX14"]
    assert far.endswith("16 of 16, so that does not explain it (p 0.0088); compare the answers before any figure of speed")
    assert "DX14" not in told(seen, answers=[Answers("varied", Agreement(16, 16, ()))])


def test_agreement_is_by_token_ids() -> None:
    left = [{"index": 0, "ids": [1, 2, 3]}, {"index": 1, "ids": [1, 2, 3]}, {"index": 2, "ids": []}]
    right = [{"index": 1, "ids": [1, 9, 3]}, {"index": 0, "ids": [1, 2, 3]}, {"index": 2, "ids": [5]}]
    assert agreement(left, right) == Agreement(2, 1, (2,))
    assert first_difference([1, 2], [1, 2, 3]) == 3


def test_open_loop_tells_a_growing_queue_and_compares_no_steps() -> None:
    cell: Cell = ("varied", "open")
    cells = {cell: cell_of(step_s=0.015, accept=0.1)}
    for arm, growth in (("target", 1.2), ("pair", 2.4)):
        for row in cells[cell][arm].values():
            row |= {"in_flight_growth": growth, "mean_in_flight": 3 * growth}
    found = told(run(cells))
    assert {"DX05", "DX06", "DX07", "DX11"}.isdisjoint(found) and {"DX03", "DX08"} <= found.keys()
    assert found["DX25"].startswith("varied in open loop: requests in flight grew 2.4-fold in the pair from the first half")
    assert "on average 3.6 in the target, 7.2 in the pair" in found["DX25"]
    for row in cells[cell]["pair"].values():
        row["in_flight_growth"] = 1.9
    assert "DX25" not in told(run(cells))


def test_nothing_ever_recommends_more_draft_tokens() -> None:
    texts = [
        text
        for accept in (0.0, 0.05, 0.3, 0.9)
        for step_s in (0.012, 0.025, 0.06)
        for text in told(run({CELL: cell_of(step_s=step_s, accept=accept)})).values()
    ]
    assert texts and not [t for t in texts if any(w in t for w in ("increase", "larger K", "raise", "more draft tokens"))]


def test_every_code_has_a_page_and_a_test() -> None:
    source = Path(__file__).read_text(encoding="utf-8")
    assert [code for code in CODES if f'"{code}"' not in source] == []
