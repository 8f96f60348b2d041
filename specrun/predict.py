"""`specrun predict`: what the drafts of a pair would come to, from the target alone and the draft alone.

The target answers the prompts of block 1 greedily; the draft, served alone, says what it would have drafted at every position;
replaying both gives drafts and acceptance for every K. Prompt lookup needs the answers only.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp
from tabulate import tabulate

from speclint.workload import block_prompts
from specrun import device, draft, drive, launch, oracle, plan, prepare, scoring, start
from specrun.errors import Refused
from specrun.oracle import Prediction, Propose, Room

USUAL = (1, 2, 3, 5, 7)  # values of K that are foretold beside the spec's own


class Answered(NamedTuple):
    """One request: its prompt's ids, the target's answer of `limit` tokens, and some more, to count what is accepted past it."""

    prompt: list[int]
    ids: list[int]
    limit: int


class Told(NamedTuple):
    """All that is known of a spec's answers: by workload, with the draft's first choice at every position of each."""

    answers: Mapping[str, Sequence[Answered]]
    firsts: Mapping[str, Sequence[Sequence[int]]]
    room: Room


def predict(path: Path, python: str, say: Callable[[str], None]) -> str:
    """Serve target and draft, one after the other, and give the table. Raises Refused where drafts cannot be foretold."""
    data = prepare.checked(path)
    if reason := oracle.unpredicted(data):
        raise Refused(f"not predicted: {reason}", "`specrun run --only-establish` measures one block of the pair itself")
    prepare.engine(data, launch.probe(python))
    prepare.artifacts(path, data)
    with device.held(data["pair"], "predict", str(path)):
        told = ask(data, path.resolve().parent, python, say)
    return text(data, {name: predictions(data, name, told) for name in told.answers})


def ks(data: Mapping[str, Any]) -> list[int]:
    """The values of K to tell of: the spec's sweep, or the usual ones, and its own."""
    own = int(data["pair"]["speculative"]["num_speculative_tokens"])
    return sorted({own, *data["protocol"].get("sweep", {}).get("num_speculative_tokens", USUAL)})


def ask(data: dict[str, Any], folder: Path, python: str, say: Callable[[str], None]) -> Told:
    """Serve the target, then the draft of a draft model, and ask both. Logs of a server that fails are kept."""
    with log_folder() as logs, launch.socket_folder(f"predict {logs.name}") as sockets:
        socket, env = sockets / "alone.sock", plan.environment(data) | plan.secrets()

        def served(name: str, words: list[str]) -> Any:
            say(f"starting {name} alone")
            return launch.server(words, env, socket, logs / f"{name}.log", healthy=start.healthy)

        with served("target", plan.argv(data, "target", folder, python, socket)):
            say("target: answering the prompts of block 1")
            answers, longest = asyncio.run(scoring.asking(socket, partial(answered, data, folder)))
        firsts, sight = dict[str, list[list[int]]](), longest
        if data["pair"]["speculative"]["method"] == "draft_model":
            with served("draft", draft.command(data, folder, python, socket)):
                say("draft: scoring the target's answers")
                firsts, own = asyncio.run(scoring.asking(socket, partial(first_choices, answers)))
                sight = min(own, longest)
    return Told(answers, firsts, Room(longest, sight))


@contextmanager
def log_folder() -> Iterator[Path]:
    """A folder for the servers' logs, which stays only if one of them failed: its error names the log."""
    folder = Path(tempfile.mkdtemp(prefix="specrun-predict-"))
    try:
        yield folder
    except launch.ServerFailed:
        raise
    except BaseException:
        shutil.rmtree(folder)
        raise
    shutil.rmtree(folder)


async def answered(data: dict[str, Any], folder: Path, http: aiohttp.ClientSession) -> tuple[dict[str, list[Answered]], int]:
    """Every workload's answers, at the spec's highest concurrency, and the target's longest context."""
    longest, more, busy = await scoring.max_model_len(http), ks(data)[-1], max(data["protocol"]["load"]["concurrency"])
    out, protocol = {}, data["protocol"]
    for workload in protocol["workloads"]:
        prompts = block_prompts(workload, protocol, folder, 1)
        load = drive.Load(prompts, busy, protocol["request"], protocol["sampling"], workload["output"]["stop"])

        async def one(index: int, load: drive.Load = load) -> Answered:
            found = await scoring.answer(http, load, index)
            ids = [*found.prompt, *found.ids]
            beyond = await scoring.continued(http, ids, room) if (room := min(more, longest - len(ids))) > 0 else []
            return Answered(found.prompt, [*found.ids, *beyond], len(found.ids))

        out[workload["id"]] = await scoring.each(range(len(prompts)), one, busy)
    return out, longest


async def first_choices(
    answers: Mapping[str, Sequence[Answered]], http: aiohttp.ClientSession
) -> tuple[dict[str, list[list[int]]], int]:
    """The draft's first choice at every position of every answer that it has room for, and its longest context."""
    longest = await scoring.max_model_len(http)

    async def one(of: Answered) -> list[int]:
        seen = of.ids[: max(0, longest - 1 - len(of.prompt))]
        return [choice.first for choice in await scoring.choices(http, of.prompt, seen, scoring.SECOND_BEST)] if seen else []

    return {name: await scoring.each(rows, one) for name, rows in answers.items()}, longest


def predictions(data: Mapping[str, Any], workload: str, told: Told) -> list[Prediction]:
    """One workload's prediction for every K."""
    answers = told.answers[workload]
    drafts = list(proposals(data, workload, told))
    return [
        Prediction(
            k,
            [
                list(oracle.replay(propose, len(one.prompt), one.ids, one.limit, k, told.room))
                for one, propose in zip(answers, drafts, strict=True)
            ],
        )
        for k in ks(data)
    ]


def proposals(data: Mapping[str, Any], workload: str, told: Told) -> Iterator[Propose]:
    """What would be drafted in each request of a workload, for the largest K."""
    most, speculative = ks(data)[-1], data["pair"]["speculative"]
    if speculative["method"] == "draft_model":
        yield from (partial(oracle.drafted, firsts, most) for firsts in told.firsts[workload])
    else:
        lengths = oracle.lookup_of(speculative)
        for one in told.answers[workload]:
            yield oracle.lookup([*one.prompt, *one.ids], len(one.prompt), most, lengths)


def text(data: Mapping[str, Any], found: Mapping[str, Sequence[Prediction]]) -> str:
    """The table for a reader, and what it means for a run."""
    speculative = data["pair"]["speculative"]
    own, lookups = int(speculative["num_speculative_tokens"]), speculative["method"] == "ngram"
    source = "the answers alone" if lookups else f"the target's answers and {speculative['model']} served alone"
    rows = [row(name, one) for name, several in found.items() for one in several]
    heads = ["workload", "K", "decode steps", "drafts", "draft tokens", "accepted", "acceptance rate", "by position"]
    return "\n".join(
        [
            f"{data['name']}: {speculative['method']} foretold from {source}, greedy, {requests(found)} requests of block 1",
            "",
            tabulate(rows, [*heads, "mean accepted length", "tokens per step"], disable_numparse=True),
            "",
            *(worth(name, several, own) for name, several in found.items()),
            "Counts are the engine's own: they take in draft tokens accepted past an answer's limit; tokens per step do not.",
        ]
    )


def requests(found: Mapping[str, Sequence[Prediction]]) -> int:
    return sum(len(several[0].requests) for several in found.values())


def row(workload: str, one: Prediction) -> list[str]:
    """A table row: one workload with one K."""
    by_position = " ".join(f"{count / one.drafts:.3f}" for count in one.accepted) if one.drafts else ""
    counts = [one.k, one.steps, one.drafts, one.draft_tokens, sum(one.accepted)]
    shares = [one.acceptance_rate, by_position, one.mean_accepted_length, one.tokens_per_step]
    return [workload, *map(str, counts), *(_shown(share) for share in shares)]


def _shown(value: float | str | None) -> str:
    return f"{value:.3f}" if isinstance(value, float) else value or ""


def worth(workload: str, several: Sequence[Prediction], own: int) -> str:
    """What a step of the pair may cost before K = `own`, and any other K, is not worth a run."""
    yields = {one.k: one.tokens_per_step for one in several}
    gain = yields[own]
    if gain is None:
        return f"{workload}: answers of one token have no decode step; speculation cannot help."
    best = max((k for k in yields), key=lambda k: (yields[k] or 0, -k))
    other = f"; K = {best} yields most, {yields[best]:.3g}" if best != own else ""
    cost = f"a step of the pair costs less than {gain:.3g} steps of the target"
    return f"{workload}: worth a run with K = {own} only if {cost}{other}."
