"""Was the pair established? Pure functions of start facts, windows and records.

Every check is a row (check, outcome, detail). One failed check and the run is *not established*: its figures are kept,
and no criterion is judged. A slow pair is never called not established, and a pair that did not run is never called slow.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from specrun.oracle import INVENTED, measurement
from specrun.plan import Cell
from specrun.tally import failure

PLACEHOLDERS = "drafts are not placeholders"
EVERY_STEP = frozenset(("draft_model", "eagle", "eagle3", "mtp", "medusa", "mlp_speculator", "dflash", "dspark"))
LOOKUP = frozenset(("ngram", "ngram_gpu", "suffix"))
ALONE = frozenset(("target", "aa", "matched"))  # arms without speculation
DRAFTS_PER_STEP = 0.95
STRETCH = 64  # request-steps without acceptance after acceptance: drafts are placeholders
BY_CHANCE = 1e-4  # … unless a pair that accepts as rarely as this one did before would show it this often by chance
FAILED_SHARE = 0.01
COUNTED_SHARE = 0.999  # of the tokens delivered must be in the server's counter


@dataclass(frozen=True, slots=True)
class Check:
    check: str
    outcome: Literal["ok", "failed", "skipped"]
    detail: str


class Dead(NamedTuple):
    """Decode steps without acceptance at the end of a window's contexts: from which position on, how many, and in words."""

    position: int
    steps: int
    why: str


@dataclass(slots=True)
class Window:
    """What establishment needs of one window: its `window.json` and what one pass over its records leaves.

    `prompts` and `tokens`, by request, are compared within a block and then dropped (`forget`): a run holds those of one
    block at a time. `steps`, `delivered`: decode steps and tokens, by chunks. `dead`: where acceptance looks dead, see
    `dead_tail`. `sampled`: the records of the `wanted` requests, those that were scored.
    """

    info: dict[str, Any]
    finish_reasons: dict[str, int] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)
    prompts: dict[int, str | None] = field(default_factory=dict)
    tokens: dict[int, int | None] = field(default_factory=dict)
    steps: int = 0
    delivered: int = 0
    dead: Dead | None = None
    wanted: Collection[int] = ()
    sampled: dict[int, dict[str, Any]] = field(default_factory=dict)

    @property
    def label(self) -> str:
        i = self.info
        return f"block {i['block']} {i['arm']} {Cell(i['concurrency'], i['workload']).name}"

    @property
    def cell(self) -> tuple[str, int]:
        return self.info["workload"], self.info["concurrency"]

    def forget(self) -> None:
        """Drop what is held by request."""
        self.prompts, self.tokens = {}, {}


def summarise(info: dict[str, Any], records: Iterable[dict[str, Any]], natural: bool = False) -> Window:
    """One pass over a window's records.

    `natural`: answers may end by themselves; otherwise one shorter than its limit has failed, like one without usage.
    """
    window = Window(info)
    for _ in noting(window, records, natural):
        pass
    return window


def noting(window: Window, records: Iterable[dict[str, Any]], natural: bool = False) -> Iterator[dict[str, Any]]:
    """The same records, each noted in the window; the window is whole when they are used up."""
    steps: list[tuple[int, int]] = []
    for record in records:
        if not record["error"]:
            reason = str(record["finish_reason"])
            window.finish_reasons[reason] = window.finish_reasons.get(reason, 0) + 1
        window.delivered += sum(tokens for _, tokens in record["chunks"])
        if why := failure(record, natural):
            window.errors.append(why)
        else:
            window.prompts[record["index"]] = record["prompt_digest"]
            window.tokens[record["index"]] = record["tokens_out"]
            if window.info["arm"] not in ALONE:
                steps += decode_steps(record)
            window.steps += len(record["chunks"]) - 1
            if record["index"] in window.wanted:
                window.sampled[record["index"]] = record
        yield record
    window.dead = dead_tail(steps)


def decode_steps(record: dict[str, Any]) -> Iterator[tuple[int, int]]:
    """(context position in tokens, tokens accepted) of every decode step of a whole answer, by its chunks.

    An accepted id 0 counts for nothing: a blind draft is all zeros, and a target that answers one accepts it.
    """
    ids, at = record.get("ids"), record["chunks"][0][1]
    for _, count in record["chunks"][1:]:
        yield (record["tokens_in"] or 0) + at, sum(map(bool, ids[at : at + count - 1])) if ids else count - 1
        at += count


def family(method: str) -> Literal["every_step", "lookup"]:
    """Whether a method drafts at every decode step, or only where it finds something to copy."""
    return "lookup" if method in LOOKUP else "every_step"


def established(
    data: dict[str, Any],
    starts: list[dict[str, Any]],
    windows: list[Window],
    predicted: Mapping[str, Sequence[tuple[int, int]]] | None = None,
) -> list[Check]:
    """All checks of starts and windows, in the order of the report. `predicted`: see `placeholders`."""
    method, k = data["pair"]["speculative"]["method"], data["pair"]["speculative"].get("num_speculative_tokens")
    pair = [w for w in windows if w.info["arm"] == "pair"]
    alone = [w for w in windows if w.info["arm"] != "pair"]
    return [
        configured(data, [s for s in starts if s["arm"] == "pair"]),
        target_alone([s for s in starts if s["arm"] != "pair"], alone),
        no_fallback(starts),
        drafting(method, k, pair),
        placeholders(method, pair, predicted) if measurement(data) else Check(PLACEHOLDERS, "skipped", INVENTED),
        answers(data["protocol"]["request"].get("expect", {}).get("finish_reason", "any"), windows),
        failures(windows),
    ]


def configured(data: dict[str, Any], starts: list[dict[str, Any]]) -> Check:
    """The engine's own configuration names the spec's method, draft and number of draft tokens."""
    name = "the engine reports the spec's method, draft and K"
    wanted = data["pair"]["speculative"]
    wrong: list[str] = []
    seen = 0
    for start in starts:
        config = (start.get("config") or {}).get("speculative_config")
        if config is None:
            continue
        seen += 1
        for key in ("method", "num_speculative_tokens"):
            if key in wanted and config.get(key) != wanted[key] and not _renamed(key, wanted[key], config.get(key)):
                wrong.append(f"{key} is {config.get(key)!r}, the spec says {wanted[key]!r}")
        if "model" in wanted and wanted["method"] not in LOOKUP and not _same_model(start, config.get("model")):
            wrong.append(f"draft is {config.get('model')!r}")
    if not seen:
        if any(start.get("config") for start in starts):
            return Check(name, "failed", "the pair's configuration has no speculative_config")
        return Check(name, "skipped", "this release does not report its configuration")
    return (
        Check(name, "failed", "; ".join(sorted(set(wrong))))
        if wrong
        else Check(name, "ok", f"in {seen} starts: {_settings(wanted)}")
    )


def _renamed(key: str, wanted: Any, found: Any) -> bool:
    return key == "method" and found == "mtp" and str(wanted).endswith("_mtp")


def _same_model(start: dict[str, Any], found: Any) -> bool:
    return any(f'"model": {json.dumps(found)}' in word for word in start["argv"])


def _settings(wanted: dict[str, Any]) -> str:
    return ", ".join(f"{key}={wanted[key]}" for key in ("method", "model", "num_speculative_tokens") if key in wanted)


def target_alone(starts: list[dict[str, Any]], windows: list[Window]) -> Check:
    """No speculation in any arm but the pair: neither configured nor counted."""
    name = "the target runs alone"
    configured_too = [s["arm"] for s in starts if (s.get("config") or {}).get("speculative_config")]
    counted = [w.label for w in windows if w.info["counters"].get("drafts")]
    if configured_too:
        return Check(name, "failed", f"speculation is configured in {', '.join(sorted(set(configured_too)))}")
    with_counters = sorted({s["arm"] for s in starts if s.get("draft_counters")})
    if with_counters:  # releases that do not report their configuration show it here
        return Check(name, "failed", f"the server has draft counters in {', '.join(with_counters)}")
    if counted:
        return Check(name, "failed", f"drafts were counted in {_some(counted)}")
    return Check(name, "ok", f"no speculative_config in {len(starts)} starts, no drafts in {len(windows)} windows")


def no_fallback(starts: list[dict[str, Any]]) -> Check:
    """No line in any server's log that this release, on this device, classes as a fallback."""
    found = [f"{s['arm']}: {line}" for s in starts for line in s.get("fallback_lines", [])]
    name = "no fallback line in any log"
    return Check(name, "failed", _some(found)) if found else Check(name, "ok", f"{len(starts)} logs read")


def drafting(method: str, k: int | None, windows: list[Window]) -> Check:
    """Drafts were made: at every decode step, or, for lookup methods, at least once per start."""
    missing = [w.label for w in windows if w.info["counters"].get("drafts") is None]
    if missing:
        return Check("drafts are made", "failed", f"the server has no draft counters in {_some(missing)}")
    reset = [w.label for w in windows if began_anew(w)]
    if reset:
        return Check("drafts are made", "failed", f"the server's counters fell inside {_some(reset)}")
    if not any(w.info["counters"]["drafts"] for w in windows):
        return Check("drafts are made", "failed", f"not one draft in {len(windows)} windows")
    return _lookup_drafts(windows) if family(method) == "lookup" else _every_step_drafts(k, windows)


def began_anew(window: Window) -> bool:
    """Whether the server's counters began anew inside the window: one fell, or fewer tokens were generated than delivered."""
    counters = window.info["counters"]
    fell = any(isinstance(value, int | float) and value < 0 for value in counters.values())
    generated = counters.get("generation_tokens")
    return fell or (generated is not None and generated < COUNTED_SHARE * window.delivered)


def _lookup_drafts(windows: list[Window]) -> Check:
    name = "drafts are made"
    by_block: dict[int, float] = {}
    for w in windows:
        by_block[w.info["block"]] = by_block.get(w.info["block"], 0) + w.info["counters"]["drafts"]
    without = [f"block {b}" for b, drafts in sorted(by_block.items()) if not drafts]
    if without:
        return Check(name, "failed", f"not one draft in {', '.join(without)}")
    empty = [w.label for w in windows if not w.info["counters"]["drafts"]]
    total = int(sum(by_block.values()))
    return Check(name, "ok", f"{total} drafts" + (f"; none in {_some(empty)}, a finding about that workload" if empty else ""))


def _every_step_drafts(k: int | None, windows: list[Window]) -> Check:
    name = "drafts are made at every decode step"
    wrong: list[str] = []
    drafts = steps = 0.0
    for w in windows:
        c = w.info["counters"]
        made, taken = c["drafts"], c["itl_count"] if c.get("itl_count") is not None else w.steps
        drafts, steps = drafts + made, steps + taken
        if made < DRAFTS_PER_STEP * taken:
            wrong.append(f"{w.label}: {made:.0f} drafts in {taken:.0f} decode steps")
        elif k and not made * k * DRAFTS_PER_STEP <= c["draft_tokens"] <= made * k:
            wrong.append(f"{w.label}: {c['draft_tokens']:.0f} draft tokens, {k} × {made:.0f} drafts expected")
    if wrong:
        return Check(name, "failed", _some(wrong))
    return Check(name, "ok", f"{drafts:.0f} drafts in {steps:.0f} decode steps")


def placeholders(method: str, windows: list[Window], predicted: Mapping[str, Sequence[tuple[int, int]]] | None = None) -> Check:
    """Drafts counted are not drafts made: accepted tokens must not die along the context.

    Past the draft's own length vLLM feeds zero-filled drafts and counts them for ever. All decode steps of a window are put in
    order of context position: a tail of 64 steps or more without acceptance, after acceptance before it, fails, unless
    a pair with the acceptance seen before the tail would show such a tail by chance more than once in 10,000 windows, or
    one that accepts what the draft alone foretells there. `predicted`: by workload, context position and accepted tokens.
    """
    name = PLACEHOLDERS
    if family(method) == "lookup":
        return Check(name, "skipped", f"{method} copies from the context and has no draft model that could be blind")
    dead = [(w, w.dead) for w in windows if w.dead]
    known = predicted or {}
    wrong = [f"{w.label}: {tail.why}" for w, tail in dead if not foreseen(tail, known.get(w.info["workload"], ()))]
    if wrong:
        return Check(name, "failed", _some(wrong))
    if dead:
        return Check(name, "ok", f"the draft alone foretells it: {_some([f'{w.label}: {tail.why}' for w, tail in dead])}")
    return Check(name, "ok", f"acceptance lasts to the end of the context in {len(windows)} windows")


def dead_tail(steps: list[tuple[int, int]]) -> Dead | None:
    """From where on the accepted tokens of a window look dead; None if they do not."""
    if len(steps) < STRETCH:
        return None
    ordered = sorted(steps)
    accepted = [count > 0 for _, count in ordered]
    if not any(accepted):
        return Dead(0, len(steps), f"nothing accepted in {len(steps)} decode steps")
    last = len(accepted) - 1 - accepted[::-1].index(True)
    tail = len(accepted) - 1 - last
    rate = sum(accepted) / (last + 1)
    # The acceptance just before the tail is the fair rate: position alone makes acceptance sink slowly.
    recent = accepted[max(0, last + 1 - 4 * STRETCH) : last + 1]
    rate = min(rate, sum(recent) / len(recent))
    by_chance = math.exp(tail * math.log1p(-rate)) if rate < 1 else 0.0
    if tail < STRETCH or by_chance > BY_CHANCE:
        return None
    position = ordered[last][0]
    before = sum(accepted)
    why = f"no acceptance in the last {tail} decode steps, from context position {position} on, after {before} steps with"
    return Dead(position, tail, why)


def foreseen(dead: Dead, predicted: Sequence[tuple[int, int]]) -> bool:
    """Whether the draft, served alone, accepts as little there: such a tail is then no rarer than 1 in 10,000."""
    there = [accepted > 0 for position, accepted in predicted if position > dead.position]
    rate = (sum(there) + 1) / (len(there) + 2)
    return math.exp(dead.steps * math.log1p(-rate)) > BY_CHANCE


def answers(expected: str, windows: list[Window]) -> Check:
    """Every answer ended as the spec expects. One shorter than it was asked to be counts as failed, see `failures`."""
    name = "answers have the expected structure"
    counts: dict[str, int] = {}
    for w in windows:
        for reason, count in w.finish_reasons.items():
            counts[reason] = counts.get(reason, 0) + count
    allowed = {"any": {"length", "stop"}}.get(expected, {expected})
    wrong = [f"{count} ended with {reason}" for reason, count in sorted(counts.items()) if reason not in allowed]
    total = sum(counts.values())
    return Check(name, "failed", "; ".join(wrong)) if wrong else Check(name, "ok", f"{total} answers, finish reason {expected}")


@dataclass(slots=True)
class Prompts:
    """Whether the same request had the same prompt token ids in every arm of a block; told block by block."""

    compared: int = 0
    unknown: int = 0
    other: str = ""

    def add(self, windows: list[Window]) -> None:
        """Compare the windows of a block."""
        seen: dict[tuple[int, tuple[str, int], int], str] = {}
        for w in windows:
            for index, found in w.prompts.items():
                if found is None:
                    self.unknown += 1
                    continue
                self.compared += 1
                if seen.setdefault((w.info["block"], w.cell, index), found) != found:
                    self.other = self.other or f"{w.label}, request {index}: other prompt token ids than in another arm"

    def check(self) -> Check:
        name = "all arms saw the same prompts"
        if self.other:
            return Check(name, "failed", self.other)
        if not self.compared:
            return Check(name, "skipped", "the server returned no prompt token ids")
        without = f"; {self.unknown} answers without" if self.unknown else ""
        return Check(name, "ok", f"{self.compared} prompts by token ids{without}")


def failures(windows: list[Window]) -> Check:
    """At most 1 % of any arm's requests failed, were short or came without usage."""
    name = "requests succeed"
    rows: dict[str, list[int]] = {}
    for w in windows:
        row = rows.setdefault(w.info["arm"], [0, 0])
        row[0] += len(w.errors)
        row[1] += w.info["requests"]
    text = ", ".join(f"{arm} {failed} of {count}" for arm, (failed, count) in rows.items())
    example = next((f"; first: {w.label}: {w.errors[0]}" for w in windows if w.errors), "")
    bad = any(failed > FAILED_SHARE * count for failed, count in rows.values())
    return Check(name, "failed" if bad else "ok", f"failed: {text}{example}")


def voids(data: dict[str, Any], windows: list[Window]) -> dict[tuple[tuple[str, int], int], str]:
    """Cells to leave out, by ((workload, concurrency), block), for all arms, each with its reason."""
    out: dict[tuple[tuple[str, int], int], str] = {}
    groups: dict[tuple[tuple[str, int], int], list[Window]] = {}
    for w in windows:
        groups.setdefault((w.cell, w.info["block"]), []).append(w)
    for key, members in groups.items():
        if reason := _void_reason(data, key[0][0], members):
            out[key] = reason
    return out


def _void_reason(data: dict[str, Any], workload: str, members: list[Window]) -> str | None:
    for w in members:
        if w.errors:
            return f"{len(w.errors)} failed requests in {w.info['arm']}"
        if w.info.get("void"):
            return f"{w.info['void']} ({w.info['arm']})"
        if began_anew(w):
            return f"the server's counters fell inside the window of {w.info['arm']}"
        if w.info.get("compiled"):
            return f"the engine compiled inside the window of {w.info['arm']}, twice"
    output = next(w["output"] for w in data["protocol"]["workloads"] if w["id"] == workload)
    if output["stop"] == "natural":
        return None  # answers may differ in length; the judge holds their means against the tolerance
    return None if len({tuple(sorted(w.tokens.items())) for w in members}) == 1 else "the arms' answers differ in length"


def _some(items: list[str], most: int = 3) -> str:
    return "; ".join(items[:most]) + (f" and {len(items) - most} more" if len(items) > most else "")
