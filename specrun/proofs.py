"""What a run's scores prove, from the scores that were kept and the records of the same requests. Pure functions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from speclint.canonical import rounded
from specrun import foretold, oracle
from specrun.establish import Check, Window
from specrun.foretold import Comparison, Observed, Said
from specrun.likelihood import COARSE, Gap, Pair, enough, gaps, per_token
from specrun.oracle import Room
from specrun.scores import Kept, Key, Row

EXACT = ("float32", "float")
NEAR = {True: 0.001, False: 0.25}  # nats: a draft's lead below which rounding decides; by whether the arithmetic is exact
MARGIN = {"exact": 0.0, "cpu": 0.01, "cuda": 0.05}  # of the decode steps that may contradict all the same; cuda: unmeasured
FEWEST = 64  # decode steps; fewer prove nothing

Records = Mapping[tuple[str, Key], Row]


@dataclass(frozen=True, slots=True)
class Proof:
    """What the scores say: checks, the numbers that go with them into the entry, and the steps that the draft foretells."""

    checks: list[Check]
    rows: dict[str, list[dict[str, Any]]]
    foreseen: Mapping[str, Sequence[tuple[int, int]]]


def proof(data: Mapping[str, Any], target: Kept, draft: Kept, windows: Sequence[Window]) -> Proof:
    """Hold a run's scores against the records of the same requests. `windows` must hold these records."""
    found = records(windows)
    gaps_found = likelihoods(target, found)
    unknown = unforetold(data, target, draft)
    compared = {} if unknown else comparisons(data, target, draft, found)
    checks = [likely(data, target, gaps_found), as_foretold(data, unknown, compared, windows)]
    rows = {"likelihood": likelihood_rows(gaps_found), "oracle": oracle_rows(compared)}
    rows = {name: several for name, several in rows.items() if several}
    return Proof(checks, rows, {workload: one.foreseen for workload, one in compared.items()})


def likely(data: Mapping[str, Any], scores: Kept, found: Mapping[str, Gap]) -> Check:
    """The target finds the pair's answers as likely as its own, but for the spread of its own."""
    name = "the pair's answers are as likely under the target as its own"
    if not oracle.measurement(data):
        return Check(name, "skipped", "a cost model's answers are not the target's")
    if not found:
        return Check(name, "skipped", scores.head.get("trouble", "no request has a whole answer in both arms"))
    wrong = [f"{workload or 'all'}, {gap.why}: {_gap(gap)}" for workload, gap in found.items() if gap.why]
    if wrong:
        return Check(name, "failed", f"answers differ in likelihood: {'; '.join(wrong)}")
    every = found.get("", next(iter(found.values())))
    if every.differing and every.shows is None:
        return Check(name, "skipped", f"{every.answers} requests are too few to tell, {enough()} are needed: {_gap(every)}")
    shows = f"a gap of {every.shows:.2g} nats would show" if every.shows else "no gap would show"
    if every.shows and every.shows > COARSE:
        return Check(name, "skipped", f"among {every.answers} answers that vary so, {shows} and no smaller one: {_gap(every)}")
    return Check(name, "ok", f"{_gap(every)}; {every.differing} answers differ; {shows}")


def _gap(gap: Gap) -> str:
    pair, target = f"{gap.pair:.4g} (sd {gap.pair_spread:.3g})", f"{gap.target:.4g} (sd {gap.target_spread:.3g})"
    return f"mean log-probability a token {pair} in {gap.answers} answers of the pair, {target} in the target's"


def unforetold(data: Mapping[str, Any], target: Kept, draft: Kept) -> str | None:
    """Why the pair's steps cannot be foretold in this run; None if they can."""
    source = draft if data["pair"]["speculative"]["method"] == "draft_model" else target
    trouble: str | None = oracle.unpredicted(data) or quantized(data) or source.head.get("trouble")
    return trouble or (None if source.rows else "no answer was scored")


def quantized(data: Mapping[str, Any]) -> str | None:
    """Why the draft alone computes otherwise than in the pair: scales of a quantized draft or cache depend on the batch."""
    pair, locked = data["pair"], ((data.get("lock") or {}).get("draft") or {}).get("config") or {}
    if pair["speculative"]["method"] != "draft_model":
        return None
    if pair["speculative"].get("quantization") or locked.get("quantization"):
        return "a quantized draft computes otherwise in another batch"
    caches = (pair["speculative"].get("kv_cache_dtype"), pair.get("engine_args", {}).get("kv_cache_dtype"))
    return "a quantized KV cache computes otherwise in another batch" if any(c not in (None, "auto") for c in caches) else None


def as_foretold(
    data: Mapping[str, Any], unknown: str | None, found: Mapping[str, Comparison], windows: Sequence[Window]
) -> Check:
    """Every step of the pair accepted what the draft, or lookup, alone makes of the target's answers."""
    name = "drafts are those that target and draft alone foretell"
    if unknown or not found:
        return Check(name, "skipped", unknown or "no prompt's ids were kept")
    told = {workload: f"{workload}: {_steps(one)}" for workload, one in found.items()}
    wrong = [told[workload] for workload, one in found.items() if contradicts(data, workload, one, windows)]
    if wrong:
        return Check(name, "failed", "; ".join(wrong))
    if (steps := sum(one.made for one in found.values())) < FEWEST:
        return Check(name, "skipped", f"{steps} decode steps in which the arms' answers agree are too few to tell")
    return Check(name, "ok", "; ".join(told.values()))


def _steps(one: Comparison) -> str:
    made, told = ("/".join(map(str, counts)) for counts in (one.made_at, one.predicted_at))
    return (
        f"{one.made} decode steps, {one.predicted} foretold, accepted by position {made}, foretold {told}, "
        f"{one.contradicted} contradict it, {one.merged} came with another in a chunk, in {one.requests} requests"
    )


def contradicts(data: Mapping[str, Any], workload: str, one: Comparison, windows: Sequence[Window]) -> bool:
    """Whether more contradicts the prediction than rounding explains. More merged steps than the server's own count of steps
    leaves to be merged contradict it too."""
    lowest = min(data["protocol"]["load"]["concurrency"])
    mine = [w for w in windows if w.info["arm"] == "pair" and w.cell == (workload, lowest)]
    merged = sum(max(0, _taken(w) - w.steps) for w in mine)
    preempted = sum(w.info["counters"].get("preemptions") or 0 for w in mine)  # each resumes with a step that has no draft
    margin = MARGIN["exact" if exact(data) else data["pair"]["placement"]["device"]]
    return one.contradicted + max(0, one.merged - merged) > margin * one.made + preempted


def _taken(window: Window) -> int:
    """Decode steps by the server's own count; of releases without one, those with a draft."""
    counters = window.info["counters"]
    return int(counters.get("itl_count") or counters.get("drafts") or 0)


def wanted(*kept: Kept) -> dict[tuple[int, str, str, int], set[int]]:
    """Indices of the scored requests by block, arm, workload and concurrency: in both arms, whichever was scored."""
    out: dict[tuple[int, str, str, int], set[int]] = defaultdict(set)
    for _, key in (one for scores in kept for one in scores.rows):
        for arm in ("target", "pair"):
            out[key.block, arm, key.workload, key.concurrency].add(key.request)
    return dict(out)


def records(windows: Iterable[Window]) -> Records:
    """The records of scored requests, by arm and request."""
    return {
        (w.info["arm"], Key(w.info["block"], w.info["workload"], w.info["concurrency"], index)): row
        for w in windows
        for index, row in w.sampled.items()
    }


def likelihoods(scores: Kept, found: Records) -> dict[str, Gap]:
    """By workload, how likely both arms' answers are under the target; under the empty name all together."""
    pairs: dict[str, list[Pair]] = defaultdict(list)
    for arm, key in sorted(scores.rows):
        ours, theirs = _of(scores, found, "target", key), _of(scores, found, "pair", key)
        if arm == "target" and ours and theirs:
            pairs[key.workload].append(_pair(ours, theirs))
    return gaps(pairs)


def _pair(target: Row, pair: Row) -> Pair:
    return Pair(per_token(target["logprobs"]), per_token(pair["logprobs"]), target["digest"] == pair["digest"])


def _of(scores: Kept, found: Records, arm: str, key: Key) -> Row | None:
    """The scores of one answer, if they are of the answer that the records hold."""
    row, own = scores.rows.get((arm, key)), found.get((arm, key))
    return row if row and own and row["digest"] == own["digest"] else None


def comparisons(data: Mapping[str, Any], target: Kept, draft: Kept, found: Records) -> dict[str, Comparison]:
    """By workload, the steps of the pair against those that its parts foretell, at the lowest concurrency."""
    speculative, lowest = data["pair"]["speculative"], min(data["protocol"]["load"]["concurrency"])
    k, drafts = int(speculative["num_speculative_tokens"]), speculative["method"] == "draft_model"
    source = draft if drafts else target
    longest, say = int(source.head["max_model_len"]), _drafted if drafts else _looked_up
    room = Room(int(target.head.get("max_model_len", longest)), longest)
    requests: dict[str, list[tuple[Said, Observed]]] = defaultdict(list)
    for key in sorted(key for arm, key in source.rows if arm == "target" and key.concurrency == lowest):
        row, pair = _of(source, found, "target", key), found.get(("pair", key))
        said = say(data, row, found["target", key]["ids"], k) if row else None
        if said and pair:
            requests[key.workload].append((said, _observed(pair)))
    return {workload: foretold.compare(several, k, room) for workload, several in requests.items()}


def _drafted(data: Mapping[str, Any], row: Row, ids: list[int], k: int) -> Said:
    near, ahead = NEAR[exact(data)], row["ahead"]
    propose = partial(oracle.drafted, row["firsts"], k)
    return Said(row["prompt"], ids, len(row["firsts"]), propose, lambda at: ahead[at] < near)


def _looked_up(data: Mapping[str, Any], row: Row, ids: list[int], k: int) -> Said | None:
    prompt, lengths = row.get("prompt_ids"), oracle.lookup_of(data["pair"]["speculative"])
    if prompt is None:
        return None
    return Said(len(prompt), ids, len(ids), oracle.lookup([*prompt, *ids], len(prompt), k, lengths))


def _observed(row: Row) -> Observed:
    return Observed(row["ids"], [count for _, count in row["chunks"]])


def exact(data: Mapping[str, Any]) -> bool:
    """Whether the models compute so finely that predicted and made drafts must be equal."""
    return data["pair"]["target"].get("dtype") in EXACT and data["pair"]["placement"]["device"] == "cpu"


def likelihood_rows(found: Mapping[str, Gap]) -> list[dict[str, Any]]:
    """The gaps as they stand in a result entry."""
    return [{"workload": name or "all"} | {k: _short(v) for k, v in asdict(gap).items()} for name, gap in found.items()]


def oracle_rows(found: Mapping[str, Comparison]) -> list[dict[str, Any]]:
    """The comparisons as they stand in a result entry."""
    shown = ("requests", "differing", "predicted", "made", "merged", "contradicted", "predicted_at", "made_at")
    return [{"workload": name} | {field: getattr(one, field) for field in shown} for name, one in found.items()]


def _short(value: Any) -> Any:
    return rounded(value) if isinstance(value, float) else value
