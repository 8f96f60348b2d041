"""Which of a run's answers are scored, by whom, and where the scores are kept. Nothing here is measured.

scores/target.jsonl   log-probability under the target of each token of a sample of both arms' answers
scores/draft.jsonl    what the draft, served alone, would have drafted at each token of a sample of the target's answers

The first line of each says how long a context the server takes, or why nothing was scored.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import aiohttp

from speclint.workload import Draw, block_prompts, fresh, is_private, requests_at
from specrun import drive, plan, record, scoring
from specrun.errors import EnvironmentTrouble
from specrun.oracle import measurement
from specrun.tally import failure

if TYPE_CHECKING:
    from specrun.run import Run

FOLDER = "scores"
LIKELIHOOD, DRAFTS = 64, 32  # requests of each workload that are scored
LONGEST = 4096  # tokens; a server's memory is not laid out for the log-probabilities of longer prompts
SPOILED = (EnvironmentTrouble, OSError, ValueError, KeyError)  # servers that fail, refuse or answer in another shape

Row = dict[str, Any]


class Key(NamedTuple):
    """One request of a run."""

    block: int
    workload: str
    concurrency: int
    request: int


class Kept(NamedTuple):
    """A file of scores: its first line, and the others by arm and request."""

    head: Row
    rows: Mapping[tuple[str, Key], Row]


def finished(run: Run) -> list[int]:
    """Numbers of the blocks that are finished."""
    numbers = range(1, 1 + int(run.data["protocol"]["design"]["blocks"]))
    return [block for block in numbers if (run.block_folder(block) / "block.json").exists()]


def sample(run: Run, blocks: list[int], levels: list[int], count: int) -> list[Key]:
    """At most `count` requests of each workload, drawn by the spec, over blocks and in turn over levels of concurrency.

    No prompt is taken twice: two answers to one prompt are not two independent answers.
    """
    out: list[Key] = []
    sent = {level: requests_at(run.data["protocol"], level) for level in levels}
    for workload in run.data["protocol"]["workloads"]:
        indices = range(max(sent.values()))
        own = fresh(workload, run.data["protocol"], run.spec_folder)
        asked = [(b, i) for i in indices for b in (blocks if own else blocks[i % len(blocks) :][:1])]
        draw = Draw(FOLDER, run.plan["digest"], workload["id"])
        for number in range(min(count, len(asked))):
            place = number + draw.below(len(asked) - number)
            asked[number], asked[place] = asked[place], asked[number]
            block, index = asked[number]
            at = [level for level in levels if index < sent[level]]
            out.append(Key(block, workload["id"], at[number % len(at)], index))
    return out


def answers(run: Run, keys: Collection[Key], arm: str) -> dict[Key, Row]:
    """The records of these requests that hold a whole answer."""
    out = {}
    for key in {key._replace(request=-1) for key in keys}:
        wanted = {one.request for one in keys if one._replace(request=-1) == key}
        cell = plan.Cell(key.concurrency, key.workload)
        natural = run.workload(key.workload)["output"]["stop"] == "natural"
        for row in record.read(run.block_folder(key.block) / arm / cell.name / "records.jsonl"):
            if row["index"] in wanted and not failure(row, natural):
                out[key._replace(request=row["index"])] = row
    return out


def by_target(run: Run, socket: Path) -> None:
    """Have the target score a sample of both arms' answers, half at the lowest concurrency and half at the highest."""
    levels = sorted(run.data["protocol"]["load"]["concurrency"])
    keys = sample(run, finished(run), [levels[0], levels[-1]], LIKELIHOOD)
    _write(run, "target", socket, partial(_likelihoods, run, keys))


def by_draft(run: Run, socket: Path) -> None:
    """Have the draft, served alone, say what it would draft in a sample of the target's answers at the lowest concurrency."""
    levels = sorted(run.data["protocol"]["load"]["concurrency"])
    keys = sample(run, finished(run), levels[:1], DRAFTS)
    _write(run, "draft", socket, partial(_drafts, run, keys))


def spoiled(run: Run, name: str, why: str) -> None:
    """Note that nothing was scored, and why."""
    _save(run, name, [{"trouble": why}])


def due(run: Run, name: str) -> bool:
    """Whether this scoring is still to be tried; a cost model's answers prove nothing."""
    if not measurement(run.data):
        return False
    return not (run.folder / FOLDER / f"{name}.jsonl").exists()


def kept(run: Run, name: str) -> Kept:
    """What a scoring left. Its head has `trouble` if it left nothing."""
    try:
        text = (run.folder / FOLDER / f"{name}.jsonl").read_text(encoding="utf-8")
    except FileNotFoundError:
        return Kept({"trouble": "no answer was scored"}, {})
    head, *rows = map(json.loads, text.splitlines())
    return Kept(head, {(row["arm"], Key(*(row[name] for name in Key._fields))): row for row in rows})


def _write(run: Run, name: str, socket: Path, rows: Callable[[aiohttp.ClientSession], AsyncIterator[Row]]) -> None:
    async def collected(http: aiohttp.ClientSession) -> list[Row]:
        return [{"max_model_len": await scoring.max_model_len(http)}, *[row async for row in rows(http)]]

    try:
        found = asyncio.run(scoring.asking(socket, collected))
    except SPOILED as error:
        private = any(map(is_private, run.data["protocol"]["workloads"]))
        found = [{"trouble": drive.words_kept(str(error), private)}]
    _save(run, name, found)


def _save(run: Run, name: str, rows: list[Row]) -> None:
    path = run.folder / FOLDER / f"{name}.jsonl"
    path.parent.mkdir(exist_ok=True)
    record.write_text(path, "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows))


async def _likelihoods(run: Run, keys: list[Key], http: aiohttp.ClientSession) -> AsyncIterator[Row]:
    """Equal answers to one prompt are scored once. For lookup the prompt's ids are kept, unless prompts are private."""
    both, seen = {arm: answers(run, keys, arm) for arm in ("target", "pair")}, dict[tuple[str, str], list[float]]()
    for key in keys:
        rows = [(arm, found[key]) for arm, found in both.items() if key in found]
        if len(rows) < len(both) or max(_length(row) for _, row in rows) > LONGEST:
            continue
        prompt = await _prompt(run, key, rows[0][1], http)
        for arm, row in rows:
            known = row["prompt_digest"], row["digest"]
            if known not in seen:
                seen[known] = [round(c.logprob, 5) for c in await scoring.choices(http, prompt, row["ids"])]
            yield _named(key, arm, row) | {"logprobs": seen[known]} | _ids(run, key, arm, prompt)


async def _drafts(run: Run, keys: list[Key], http: aiohttp.ClientSession) -> AsyncIterator[Row]:
    longest = await scoring.max_model_len(http)
    for key, row in sorted(answers(run, keys, "target").items()):
        if (row["tokens_in"] or 0) >= longest:
            continue  # the draft is blind from the first token on
        prompt = await _prompt(run, key, row, http)
        seen = row["ids"][: max(0, min(longest - 1, LONGEST) - len(prompt))]
        said = await scoring.choices(http, prompt, seen, scoring.SECOND_BEST) if seen else []
        firsts, ahead = [c.first for c in said], [round(c.ahead, 5) for c in said]
        yield _named(key, "target", row) | {"prompt": len(prompt), "firsts": firsts, "ahead": ahead}


def _named(key: Key, arm: str, row: Row) -> Row:
    return {**key._asdict(), "arm": arm, "digest": row["digest"]}


def _ids(run: Run, key: Key, arm: str, prompt: list[int]) -> Row:
    lookup = run.data["pair"]["speculative"]["method"] == "ngram"
    kept = lookup and arm == "target" and not is_private(run.workload(key.workload))
    return {"prompt_ids": prompt} if kept else {}


def _length(row: Row) -> int:
    return int(row["tokens_in"] or 0) + len(row["ids"])


async def _prompt(run: Run, key: Key, row: Row, http: aiohttp.ClientSession) -> list[int]:
    """A request's prompt as the server tokenizes it now. Raises Refusal unless it is what the arms saw."""
    protocol, workload = run.data["protocol"], run.workload(key.workload)
    prompts = block_prompts(workload, protocol, run.spec_folder, key.block)
    load = drive.Load(prompts, 1, protocol["request"], protocol["sampling"], workload["output"]["stop"])
    found = (await scoring.answer(http, load, key.request, limit=1)).prompt
    if row["prompt_digest"] not in (None, record.ids_digest(found)):
        raise scoring.Refusal(f"the prompt of request {key.request} of {key.workload} has other token ids when asked for alone")
    return found
