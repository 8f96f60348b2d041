"""Asking a server for the ids of a prompt, for an answer, and for what its model says of given tokens."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import aiohttp

from speclint.credentials import masked
from specrun import drive
from specrun.errors import EnvironmentTrouble
from specrun.plan import SERVED_NAME

T = TypeVar("T")
R = TypeVar("R")
SECOND_BEST = 2


class Answer(NamedTuple):
    """Token ids of a request's prompt and answer, and why it ended."""

    prompt: list[int]
    ids: list[int]
    finish_reason: str | None


class Choice(NamedTuple):
    """What a model says at one position: its first choice, the log-probability of the token that stands there (nats), and
    how far the first choice is ahead of that token, or of the second if it is that token."""

    first: int
    logprob: float
    ahead: float


class Refusal(EnvironmentTrouble):
    """The server did not answer a scoring request as it should."""


async def post(http: aiohttp.ClientSession, path: str, body: dict[str, Any]) -> dict[str, Any]:
    """The JSON answer to a request. Raises Refusal with the server's own words."""
    timeout = aiohttp.ClientTimeout(total=drive.REQUEST_WITHIN_S)
    try:
        async with http.post(path, json=body, timeout=timeout) as response:
            text = await response.text()
    except (OSError, aiohttp.ClientError, TimeoutError) as error:
        raise Refusal(f"the server stopped answering ({type(error).__name__})") from error
    if response.status != 200:
        raise Refusal(f"the server refused a request with HTTP {response.status}: {masked(text)[:300]}")
    found: dict[str, Any] = json.loads(text)
    return found


async def answer(http: aiohttp.ClientSession, load: drive.Load, index: int, limit: int | None = None) -> Answer:
    """The whole answer to one request of a load, not streamed; at most `limit` tokens of it."""
    request = drive.body(load, index) | {"stream": False}
    del request["stream_options"]
    if limit is not None:
        request["max_completion_tokens" if "messages" in request else "max_tokens"] = limit
        request.pop("min_tokens", None)
    found = await post(http, drive.PATHS[load.request["endpoint"]], request)
    choice = found["choices"][0]
    prompt = found.get("prompt_token_ids") or choice.get("prompt_token_ids")  # chat, completions
    if not prompt or not choice.get("token_ids"):
        raise Refusal("the server returns no token ids", "its release is too old to be asked for them")
    return Answer(prompt, choice["token_ids"], choice["finish_reason"])


async def continued(http: aiohttp.ClientSession, ids: Sequence[int], count: int) -> list[int]:
    """`count` more greedy tokens after the given ones, past any end of text."""
    greedy = {"temperature": 0.0, "ignore_eos": True, "return_token_ids": True}
    found = await post(http, drive.PATHS["completions"], _of(ids) | greedy | {"max_tokens": count})
    more: list[int] = found["choices"][0]["token_ids"]
    return more


async def choices(http: aiohttp.ClientSession, prompt: Sequence[int], ids: Sequence[int], best: int = 0) -> list[Choice]:
    """What the model says at every position of an answer, given all tokens before it.

    `best`: 0 for the answer's own tokens only, 2 for the first choice and its lead as well.
    """
    request = _of([*prompt, *ids]) | {"max_tokens": 1, "temperature": 0.0, "prompt_logprobs": best}
    found = await post(http, drive.PATHS["completions"], request)
    rows = found["choices"][0].get("prompt_logprobs") or []
    if len(rows) != len(prompt) + len(ids):
        raise Refusal(f"the server gave {len(rows)} log-probabilities for {len(prompt) + len(ids)} tokens")
    return [_choice(row, token) for row, token in zip(rows[len(prompt) :], ids, strict=True)]


def _of(ids: Sequence[int]) -> dict[str, Any]:
    return {"model": SERVED_NAME, "prompt": list(ids)}


def _choice(row: dict[str, dict[str, float]], token: int) -> Choice:
    ranked = sorted(row, key=lambda one: (-row[one]["logprob"], row[one]["rank"]))
    own, top = row[str(token)]["logprob"], row[ranked[0]]["logprob"]
    other = own if int(ranked[0]) != token else row[ranked[1]]["logprob"] if len(ranked) > 1 else own
    return Choice(int(ranked[0]), own, top - other)


async def max_model_len(http: aiohttp.ClientSession) -> int:
    """The longest context that the server takes, in tokens."""
    async with http.get("/v1/models") as response:
        found: int = (await response.json())["data"][0]["max_model_len"]
        return found


async def each(items: Sequence[T], ask: Callable[[T], Awaitable[R]], at_once: int = 1) -> list[R]:
    """The results of asking about every item, in order, `at_once` in flight."""
    waiting, out = iter(enumerate(items)), dict[int, R]()

    async def slot() -> None:
        for index, item in waiting:
            out[index] = await ask(item)

    await asyncio.gather(*(slot() for _ in islice(items, at_once)))
    return [out[index] for index in range(len(items))]


async def asking(socket: Path, ask: Callable[[aiohttp.ClientSession], Awaitable[R]]) -> R:
    """Run `ask` with a session to the server at the socket."""
    async with drive.session(socket) as http:
        return await ask(http)
