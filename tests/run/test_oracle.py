"""The oracle: replays worked out by hand, lookup against its definition, and pairs that do not do what their parts say."""

from __future__ import annotations

import json
import random
import shutil
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from stand_in_run import made, spec_data

from specrun import blocks, entry, oracle, plan, predict, proofs, run, scores
from specrun.errors import Refused, SpecrunError
from specrun.establish import Dead, Window, dead_tail, foreseen, placeholders
from specrun.foretold import Comparison, Observed, Said, Way, compare
from specrun.launch import ServerFailed
from specrun.oracle import Lookup, Prediction, Room, Step
from specrun.plan import draft_alone
from specrun.progress import Progress

WIDE = Room(1000, 1000)
ANSWER = [10, 11, 12, 13, 14, 15, 16, 17, 18, 19]
FIRSTS = [10, 11, 12, 99, 14, 99, 16, 17, 18, 99]  # the draft agrees but at 3, 5 and 9


def steps(k: int, limit: int = 8, room: Room = WIDE, prompt: int = 20, firsts: Sequence[int] = FIRSTS) -> list[Step]:
    return list(oracle.replay(partial(oracle.drafted, firsts, k), prompt, ANSWER, limit, k, room))


@pytest.mark.parametrize(
    ("k", "expected"),
    [
        # at 1: 11 accepted, 12 follows; at 3: 13 follows; at 4: 14 accepted, 15 follows; at 6: 16 accepted, 17 follows
        (1, [Step(21, 1, 1, 2), Step(23, 1, 0, 1), Step(24, 1, 1, 2), Step(26, 1, 1, 2)]),
        # at 1: 11 12 accepted, 13 follows; at 4: 14, then 15 follows; at 6: 16 17 accepted and the limit falls on 17
        (2, [Step(21, 2, 2, 3), Step(24, 2, 1, 2), Step(26, 2, 2, 2)]),
        # as before, but at 6 also 18, past the limit: accepted and not delivered
        (3, [Step(21, 3, 2, 3), Step(24, 3, 1, 2), Step(26, 3, 3, 2)]),
    ],
)
def test_replay_by_hand(k: int, expected: list[Step]) -> None:
    assert steps(k) == expected


def test_counts_of_a_replay_by_hand() -> None:
    found = Prediction(3, [steps(3), steps(3, limit=1), steps(3, limit=2)])
    assert (found.steps, found.drafts, found.draft_tokens) == (4, 4, 12)
    assert found.accepted == [4, 3, 1]  # 2, 1 and 3 of the first request, 2 of the last, of which one is delivered
    assert found.acceptance_rate == pytest.approx(8 / 12)
    assert found.mean_accepted_length == pytest.approx(3.0)
    assert found.tokens_per_step == pytest.approx((7 + 1) / 4)


def test_a_request_of_one_token_has_no_step() -> None:
    none = Prediction(2, [steps(2, limit=1)])
    assert (none.steps, none.acceptance_rate, none.mean_accepted_length, none.tokens_per_step) == (0, None, None, None)


def test_a_draft_without_room_is_fed_zeros_for_ever() -> None:
    """vLLM drafts only while what a step has seen and K more fit; then zeros, which are counted."""
    found = steps(2, room=Room(1000, 26))
    # After the prompt 20 + 2 fit, and after the step at 21, 21 + 2 + 2 do; after the one at 24, 24 + 2 + 2 do not.
    assert [step.accepted for step in found] == [2, 1, 0, 0]
    assert [step.drafted for step in found] == [2, 2, 2, 2]
    assert [step.accepted for step in steps(2, room=Room(1000, 21))] == [0] * 7  # 20 + 2 do not fit from the start
    zeros = list(oracle.replay(partial(oracle.drafted, FIRSTS, 2), 20, [10, 0, 0, 13], 4, 2, Room(1000, 21)))
    assert zeros[0].accepted == 2  # a zero is accepted where the target says zero


def test_the_context_ends_before_the_draft_does() -> None:
    found = steps(3, limit=6, room=Room(26, 1000))
    assert [step.drafted for step in found] == [3, 1]  # 26 - 21 - 1 = 4 fit, then 26 - 24 - 1
    assert found[-1].delivered == 2


def test_what_the_draft_is_not_known_to_say_is_rejected() -> None:
    assert oracle.drafted([7, 8], 3, 1) == [8, oracle.UNKNOWN, oracle.UNKNOWN]
    assert [step.accepted for step in steps(3, firsts=FIRSTS[:3])] == [2, 0, 0, 0, 0]


def by_definition(context: list[int], k: int, lengths: Lookup) -> list[int]:
    """The longest n-gram that ends the context and stands earlier in it; of its places the earliest; what followed it."""
    for n in range(lengths.longest, lengths.shortest - 1, -1):
        places = [at for at in range(len(context) - n) if context[at : at + n] == context[len(context) - n :]]
        if places and n <= len(context):
            return context[places[0] + n :][:k]
    return []


@pytest.mark.parametrize("lengths", [Lookup(1, 1), Lookup(2, 4), Lookup(3, 3)])
def test_lookup_follows_its_definition(lengths: Lookup) -> None:
    chance = random.Random(5)
    found = 0
    for _ in range(60):
        tokens = [chance.randrange(3) for _ in range(chance.randrange(6, 40))]
        prompt = chance.randrange(1, 5)
        propose = oracle.lookup(tokens, prompt, 3, lengths)
        for at in range(len(tokens) - prompt):
            expected = by_definition(tokens[: prompt + at], 3, lengths)
            assert list(propose(at)) == expected
            found += bool(expected)
    assert found > 300


def test_lookup_drafts_no_further_than_the_context_goes() -> None:
    propose = oracle.lookup([1, 2, 3, 1, 2, 9, 9, 9], 5, 3, Lookup(2, 4))
    assert list(propose(0)) == [3, 1, 2]
    assert list(oracle.lookup([5, 5, 5, 7], 3, 3, Lookup(1, 2))(0)) == [5]  # the place overlaps the end: one token is left
    assert list(propose(1)) == []


def test_lookup_steps_without_a_draft_are_not_drafts() -> None:
    prompt, answer = [1, 2, 3, 4], [1, 2, 3, 4, 8, 9]
    propose = oracle.lookup([*prompt, *answer], 4, 2, Lookup(2, 3))
    found = list(oracle.replay(propose, 4, answer, 6, 2, WIDE))
    assert found == [Step(5, 0, 0, 1), Step(6, 2, 2, 3), Step(9, 0, 0, 1)]
    assert Prediction(2, [found]).drafts == 1 and Prediction(2, [found]).steps == 3


@pytest.mark.parametrize(
    ("speculative", "expected"),
    [({}, (5, 5)), ({"prompt_lookup_max": 3}, (3, 3)), ({"prompt_lookup_min": 2, "prompt_lookup_max": 4}, (2, 4))],
)
def test_lookup_lengths_have_the_engines_defaults(speculative: dict[str, int], expected: tuple[int, int]) -> None:
    assert oracle.lookup_of(speculative) == expected


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (("method: draft_model", "method: eagle3"), "no draft that can be served alone"),
        (("{mode: shared}", "{mode: heterogeneous}"), "another vocabulary"),
        (("temperature: 0.0", "temperature: 0.8"), "only greedy"),
        (("kind: measurement", "kind: cost_model"), "set, not found"),
        (("    num_speculative_tokens: 3", "    num_speculative_tokens: 3\n    parallel_drafting: true"), "parallel_drafting"),
    ],
)
def test_what_cannot_be_foretold_is_said(change: tuple[str, str], why: str) -> None:
    data = spec_data(change)
    assert why in str(oracle.unpredicted(data))
    assert not draft_alone(data)


def test_the_example_can_be_foretold() -> None:
    assert oracle.unpredicted(spec_data()) is None and draft_alone(spec_data())
    assert predict.ks(spec_data()) == [1, 2, 3, 5, 7]


# A pair that does what its parts say, and one fault after the other.


def said(tie: frozenset[int] = frozenset(), k: int = 3) -> Said:
    return Said(20, ANSWER, len(ANSWER), partial(oracle.drafted, FIRSTS, k), tie.__contains__)


def compared(chunks: list[int], ids: list[int] | None = None, of: Said | None = None, room: Room = WIDE) -> Comparison:
    return compare([(of or said(), Observed(ids or ANSWER, chunks))], 3, room)


def test_a_pair_as_foretold_contradicts_nothing() -> None:
    found = compared([1, 3, 2, 4])
    assert (found.contradicted, found.predicted, found.made, found.differing) == (0, 3, 3, 0)
    assert found.predicted_at == found.made_at == [3, 2, 1]
    assert found.foreseen == [(21, 2), (24, 1), (26, 3)]


@pytest.mark.parametrize(
    ("chunks", "contradicted"),
    [
        ([1, 2, 1, 2, 4], 1),  # at 1 the draft's 12 was rejected
        ([1, 4, 1, 4], 1),  # at 1 three were accepted, of which the draft says two; at 5 none was, as it says
        ([1, *[1] * 9], 6),  # nothing was accepted: no contradiction where the draft is wrong, at 3 and 5, or the answer ends
        ([1, 3, 1, 5], 1),  # at 4 the draft's 14 was rejected; what follows comes in two steps
    ],
)
def test_steps_that_the_draft_does_not_explain(chunks: list[int], contradicted: int) -> None:
    assert sum(chunks) == len(ANSWER)
    assert compared(chunks).contradicted == contradicted


@pytest.mark.parametrize(("chunks", "merged"), [([1, 3, 6], 1), ([1, 9], 2), ([4, 2, 4], 1), ([10], 3), ([4, 6], 2)])
def test_steps_that_share_a_chunk_are_told_apart(chunks: list[int], merged: int) -> None:
    found = compared(chunks)
    assert (found.contradicted, found.merged, found.made, found.predicted) == (0, merged, 3, 3)
    assert found.made_at == found.predicted_at


@pytest.mark.parametrize(("counted", "wrong"), [(5.0, False), (4.0, True), (None, True)])
def test_no_more_steps_share_a_chunk_than_the_server_counted(counted: float | None, wrong: bool) -> None:
    info = {"arm": "pair", "workload": "varied", "concurrency": 1, "counters": {"itl_count": counted, "drafts": None}}
    found = compare([(said(), Observed(ANSWER, [1, 9]))], 3, WIDE)
    assert found.merged == 2
    assert proofs.contradicts(spec_data(), "varied", found, [Window(info, steps=3)]) is wrong


@pytest.mark.parametrize(("dtype", "wrong"), [("float32", True), ("bfloat16", False)])
def test_rounding_may_contradict_a_little(dtype: str, wrong: bool) -> None:
    found = Comparison(3, made=100, contradicted=1)
    assert proofs.contradicts(spec_data(("float32", dtype)), "varied", found, []) is wrong
    found.contradicted += 1
    assert proofs.contradicts(spec_data(("float32", dtype)), "varied", found, []) is True


@pytest.mark.parametrize(("device", "most"), [("cpu", 1), ("cuda", 5)])
def test_a_gpu_rounds_more(device: str, most: int) -> None:
    data = spec_data(("device: cpu", f"device: {device}"), ("float32", "bfloat16"))
    assert not proofs.contradicts(data, "varied", Comparison(3, made=100, contradicted=most), [])
    assert proofs.contradicts(data, "varied", Comparison(3, made=100, contradicted=most + 1), [])
    assert not proofs.exact(spec_data(("device: cpu", "device: cuda")))


def test_a_preempted_request_may_make_a_step_without_a_draft() -> None:
    counters = {"itl_count": None, "drafts": None, "preemptions": 2}
    info = {"arm": "pair", "workload": "varied", "concurrency": 1, "counters": counters}
    assert not proofs.contradicts(spec_data(), "varied", Comparison(3, made=100, contradicted=2), [Window(info)])
    assert proofs.contradicts(spec_data(), "varied", Comparison(3, made=100, contradicted=3), [Window(info)])


def test_a_quantized_draft_or_cache_is_not_held_against_itself_alone() -> None:
    data = spec_data()
    assert proofs.quantized(data) is None
    data["pair"].setdefault("engine_args", {})["kv_cache_dtype"] = "fp8"
    assert "KV cache" in str(proofs.quantized(data))
    data["pair"]["speculative"]["quantization"] = "fp8"
    assert "quantized draft" in str(proofs.quantized(data))
    data["pair"]["speculative"] = {"method": "ngram", "num_speculative_tokens": 3}
    assert proofs.quantized(data) is None


def test_the_end_of_an_answer_may_cut_a_step() -> None:
    assert compared([1, 3, 2, 2], ANSWER[:8]).contradicted == 0  # at 6 the draft says 16 17 18; the limit left two


def test_near_ties_are_nobodys_fault() -> None:
    assert compared([1, 2, 1, 2, 4]).contradicted == 1
    assert compared([1, 2, 1, 2, 4], of=said(frozenset({2}))).contradicted == 0  # the draft's 12 hung on rounding
    assert compared([1, 4, 1, 4], of=said(frozenset({3}))).contradicted == 0


def test_answers_are_compared_up_to_their_first_difference() -> None:
    other = [*ANSWER[:5], 55, 56, 57, 58, 59]
    found = compared([1, 3, 2, 1, 3], other)
    assert (found.contradicted, found.differing, found.made) == (0, 1, 2)
    assert found.made_at == found.predicted_at
    assert compared([1, 4, 1, 1, 3], other).contradicted == 1


def test_more_accepted_than_drafted_is_explained_by_nothing() -> None:
    lookup = Said(20, ANSWER, len(ANSWER), lambda at: ANSWER[at : at + 1] if at == 1 else [])
    assert compared([1, 2, *[1] * 7], of=lookup).contradicted == 0
    assert compared([1, 3, *[1] * 6], of=lookup).contradicted == 0  # one step with the draft, one without, in one chunk
    assert Way(lookup, len(ANSWER), 3).allowed(1, 2) and not Way(lookup, len(ANSWER), 3).allowed(1, 3)


def test_what_lies_beyond_the_drafts_room_is_not_compared() -> None:
    found = compared([1, 3, *[1] * 6], room=Room(1000, 29))  # sure to be drafted: up to position 29 - 6 - 20 + 1
    assert (found.made, found.predicted, found.contradicted) == (1, 1, 0)


# Dead tails, with what the draft alone foretells.


def test_a_dead_tail_that_the_draft_foretells_is_no_placeholder() -> None:
    pattern = [*((position, 1) for position in range(100)), *((position, 0) for position in range(100, 300))]
    window = Window({"block": 1, "arm": "pair", "workload": "varied", "concurrency": 1}, dead=dead_tail(pattern))
    assert placeholders("draft_model", [window]).outcome == "failed"
    assert placeholders("draft_model", [window], {"varied": pattern}).outcome == "ok"
    assert placeholders("draft_model", [window], {"other": pattern}).outcome == "failed"
    alive = [(position, 1) for position in range(300)]
    assert placeholders("draft_model", [window], {"varied": alive}).outcome == "failed"


@pytest.mark.parametrize(("there", "accepted", "expected"), [(0, 0, False), (500, 0, True), (500, 5, True), (500, 100, False)])
def test_foreseen_by_chance_or_not(there: int, accepted: int, expected: bool) -> None:
    predicted = [(200 + i, int(i < accepted)) for i in range(there)]
    assert foreseen(Dead(100, 200, ""), predicted) is expected


# Whole runs on the stand-in server.


Concluded = tuple[run.Run, dict[str, Any], dict[str, Any]]


def concluded(folder: Path, *changes: tuple[str, str], fault: str = "") -> Concluded:
    of = made(folder, *changes, fault=fault, first=False)
    blocks.measure(of, Progress(0, quiet=True), 1)
    found = entry.finish(of)
    return of, found["established"], {check["check"]: check for check in found["established"]["checks"]}


MORE = ("requests: 6", "requests: 16")
FORETOLD = "drafts are those that target and draft alone foretell"
LIKELY = "the pair's answers are as likely under the target as its own"


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> Concluded:
    return concluded(tmp_path_factory.mktemp("healthy"), MORE)


def test_one_block_is_scored_by_a_target_and_a_draft_of_their_own(healthy: Concluded) -> None:
    of, established, checks = healthy
    assert (checks[FORETOLD]["outcome"], checks[LIKELY]["outcome"]) == ("ok", "ok")
    assert {path.name for path in (of.folder / scores.FOLDER).iterdir()} == {
        *"target.jsonl draft.jsonl target.log draft.log".split()
    }
    assert [row["workload"] for row in established["likelihood"]] == ["repetitive", "varied", "all"]
    for row in established["oracle"]:
        assert row["contradicted"] == 0 and row["made"] == row["predicted"] > 40
        assert row["made_at"] == row["predicted_at"]
    again = {**entry.recompute(of.folder)}["established"]
    assert again == established


def test_predict_foretells_the_steps_that_the_pair_made(healthy: Concluded) -> None:
    of, established, _ = healthy
    heard: list[str] = []
    told = predict.ask(of.data, of.spec_folder, of.plan["python"], heard.append)
    assert [line for line in heard if line.startswith("starting")] == ["starting target alone", "starting draft alone"]
    found = {name: predict.predictions(of.data, name, told) for name in told.answers}
    for row in established["oracle"]:
        foretold = next(one for one in found[row["workload"]] if one.k == 3)
        assert foretold.steps == foretold.drafts == row["made"]
        assert foretold.accepted[0] >= row["made_at"][0]  # past the limit too
    text = predict.text(of.data, found)
    assert "worth a run with K = 3 only if a step of the pair costs less than" in text
    assert [line.split()[1] for line in text.splitlines() if line.startswith("varied ")] == ["1", "2", "3", "5", "7"]


def test_what_is_not_predicted_is_refused_before_anything_starts() -> None:
    spec = Path(__file__).resolve().parents[2] / "examples" / "tiny-heterogeneous.spec.yaml"
    with pytest.raises(Refused, match="not predicted: the draft has another vocabulary"):
        predict.predict(spec, "/no/such/interpreter", lambda _: None)


@pytest.mark.parametrize(("error", "stays"), [(ServerFailed("gone"), True), (Refused("no"), False), (KeyboardInterrupt(), False)])
def test_logs_stay_only_of_a_server_that_failed(
    error: BaseException, stays: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(type(error)), predict.log_folder() as folder:
        assert folder.parent == tmp_path
        raise error
    assert folder.exists() is stays


def test_scores_of_other_answers_prove_nothing(healthy: Concluded, tmp_path: Path) -> None:
    of = run.Run(tmp_path / healthy[0].folder.name, healthy[0].plan)
    shutil.copytree(healthy[0].folder, of.folder)
    for name in ("target", "draft"):
        path = of.folder / scores.FOLDER / f"{name}.jsonl"
        head, *rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        path.write_text("\n".join(json.dumps(row) for row in [head, *(row | {"digest": "sha256:0"} for row in rows)]) + "\n")
    checks = {check["check"]: check["outcome"] for check in entry.recompute(of.folder)["established"]["checks"]}
    assert (checks[FORETOLD], checks[LIKELY]) == ("skipped", "skipped")


def test_a_draft_that_says_otherwise_is_not_established(tmp_path: Path) -> None:
    _, established, checks = concluded(tmp_path, MORE, fault="other-draft")
    assert established["verdict"] == "not_established"
    assert checks[FORETOLD]["outcome"] == "failed" and "contradict it" in checks[FORETOLD]["detail"]
    assert [name for name, check in checks.items() if check["outcome"] == "failed"] == [FORETOLD]


def test_answers_that_the_target_would_not_give_are_not_established(tmp_path: Path) -> None:
    _, established, checks = concluded(tmp_path, MORE, fault="unlikely")
    assert established["verdict"] == "not_established"
    assert checks[LIKELY]["outcome"] == "failed"
    assert "answers differ in likelihood" in checks[LIKELY]["detail"] and "in the mean" in checks[LIKELY]["detail"]
    assert checks[FORETOLD]["outcome"] == "skipped" and "too few" in checks[FORETOLD]["detail"]


def test_a_draft_that_cannot_be_served_leaves_a_reason(tmp_path: Path) -> None:
    of, established, checks = concluded(tmp_path, fault="exits@4")  # target, pair, target alone, draft alone
    assert established["verdict"] == "established"
    assert checks[FORETOLD]["outcome"] == "skipped" and "no such model here" in checks[FORETOLD]["detail"]
    assert not scores.due(of, "draft") and plan.server_starts(of.data) == 11


def test_scores_of_fewer_blocks_are_made_again(tmp_path: Path) -> None:
    """`--only-establish` scores block 1; a run that goes on from there scores all its blocks."""
    of = made(tmp_path, first=False)
    blocks.measure(of, Progress(0, quiet=True), 1)
    assert {key.block for _, key in scores.kept(of, "target").rows} == {1}
    blocks.measure(of, Progress(0, quiet=True), 2)
    assert {key.block for _, key in scores.kept(of, "target").rows} > {1}
    assert (of.folder / "scores.void1").is_dir()
    entry.finish(of)
    with pytest.raises(SpecrunError, match="is finished"):  # by another process, while this one looked at the engine
        blocks.measure(of, Progress(0, quiet=True))


def test_a_cost_model_is_not_scored(tmp_path: Path) -> None:
    of = made(tmp_path, ("kind: measurement", "kind: cost_model"))
    assert not scores.due(of, "target") and plan.server_starts(of.data) == 10
    found = proofs.proof(of.data, scores.kept(of, "target"), scores.kept(of, "draft"), [])
    assert [(check.check, check.outcome) for check in found.checks] == [(LIKELY, "skipped"), (FORETOLD, "skipped")]
    assert found.rows == {} and "cost model" in found.checks[0].detail


def test_a_sample_is_drawn_by_the_spec_and_takes_no_prompt_twice(tmp_path: Path) -> None:
    of = made(tmp_path, MORE)
    keys = scores.sample(of, [1, 2, 3], [1, 2], 64)
    assert keys == scores.sample(of, [1, 2, 3], [1, 2], 64)
    assert len(keys) == 96 and len({(key.block, key.workload, key.request) for key in keys}) == 96
    assert {key.block for key in keys} == {1, 2, 3} and {key.concurrency for key in keys} == {1, 2}
    few = scores.sample(of, [1, 2, 3], [1], 12)
    assert {key.block for key in few} == {1, 2, 3} and max(key.request for key in few) > 8  # not only the first ones
    (tmp_path / "same").mkdir()
    same = made(tmp_path / "same", MORE, ("prompts: fresh", "prompts: same"))
    again = scores.sample(same, [1, 2, 3], [1], 64)
    assert len(again) == 32 and len({(key.workload, key.request) for key in again}) == 32
