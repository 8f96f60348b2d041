"""The load generator: closed or open loop, one record per request, written as each request ends.

Closed: each of c slots sends its next request when its last has ended. Open: a request leaves at its due time, whatever is
in flight. Prompts are taken in their order, so every arm sends the same list. Nothing of an answer is held once its record
is written. Tokens are the server's: `return_token_ids` gives the ids of every chunk, so tokens per chunk are exact and
chunk counts are never taken for token counts.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import aiohttp
import msgspec

from speclint.credentials import masked
from speclint.workload import Prompt
from specrun.plan import SERVED_NAME
from specrun.record import Record, ids_digest

REQUEST_WITHIN_S = 600.0
TICK_S, LATE_S = 0.005, 0.02
LATE_SHARE = 0.05  # of a window; more and its times are the client's, not the server's
PATHS = {"completions": "/v1/completions", "chat": "/v1/chat/completions"}


@dataclass(frozen=True, slots=True)
class Load:
    """One window's load; times are seconds after the window's start.

    `stagger`: when each slot sends its first request. `due`: open loop, when each request is sent; slots and concurrency
    then mean nothing. `private`: nothing that could repeat a prompt is kept.
    """

    prompts: list[Prompt]
    concurrency: int
    request: dict[str, Any]
    sampling: dict[str, Any]
    stop: str
    stagger: list[float] = field(default_factory=list)
    due: list[float] = field(default_factory=list)
    deadline_s: float = REQUEST_WITHIN_S
    private: bool = False


def body(load: Load, index: int) -> dict[str, Any]:
    """The JSON body of one request: the spec's sampling, its own seed and limit, and a stream with ids and usage."""
    prompt = load.prompts[index]
    out: dict[str, Any] = {"model": SERVED_NAME, "stream": True, "return_token_ids": True}
    out |= {"stream_options": {"include_usage": True, "continuous_usage_stats": True}}
    out |= load.sampling | {"seed": load.sampling["seed"] + index}
    out["ignore_eos"] = load.stop == "length"
    if load.request["endpoint"] == "chat":
        content = prompt.content
        out["messages"] = content if isinstance(content, list) else [{"role": "user", "content": content}]
        out["max_completion_tokens"] = prompt.max_tokens
    else:
        out["prompt"] = prompt.content
        out["max_tokens"] = prompt.max_tokens
    extra: dict[str, Any] = load.request.get("extra_body", {})
    return out | extra


@dataclass(slots=True)
class Watch:
    """How late the client itself was: a clock on its event loop that should tick every 5 ms, and late requests.

    A client that gets no processor stamps chunks late and in bunches: TTFT and TPOT are then its own, while sums of tokens
    stay right. `late_s` adds up the delays beyond 20 ms; `late_sends` counts requests that left as late.
    """

    late_s: float = 0.0
    worst_s: float = 0.0
    sends: int = 0
    late_sends: int = 0

    async def tick(self) -> None:
        while True:
            before = time.perf_counter()
            await asyncio.sleep(TICK_S)
            late = time.perf_counter() - before - TICK_S
            self.worst_s = max(self.worst_s, late)
            self.late_s += late if late > LATE_S else 0.0

    def count(self, record: Record) -> None:
        """Take note of how late a request was sent."""
        self.sends += 1
        self.late_sends += record.sent - record.due > LATE_S

    def summary(self, seconds: float) -> dict[str, float]:
        """What a window of that length leaves of it in `window.json`."""
        return {"share": round(self.late_s / seconds, 4), "worst_s": round(self.worst_s, 4), "late_sends": self.late_sends}

    def complaint(self, seconds: float) -> str | None:
        """Why a window of that length cannot be timed; None if it can."""
        share = self.late_s / seconds
        if share > LATE_SHARE:
            return f"the client got no processor for {share:.0%} of the window (up to {self.worst_s * 1000:.0f} ms at a time)"
        if self.late_sends > LATE_SHARE * self.sends:
            return f"{self.late_sends} of {self.sends} requests were sent more than {LATE_S * 1000:.0f} ms after they were due"
        return None


@asynccontextmanager
async def watched(watch: Watch) -> AsyncIterator[None]:
    """Watch the event loop's punctuality for the length of the block."""
    ticking = asyncio.create_task(watch.tick())
    try:
        yield
    finally:
        ticking.cancel()


@asynccontextmanager
async def session(socket: Path) -> AsyncIterator[aiohttp.ClientSession]:
    """An HTTP session over the server's Unix socket, with no limit on connections of its own."""
    connector = aiohttp.UnixConnector(path=str(socket), limit=0)
    async with aiohttp.ClientSession(connector=connector, base_url="http://specpair", read_bufsize=2**20) as http:
        yield http


class _Window(NamedTuple):
    http: aiohttp.ClientSession
    load: Load
    start: float
    out: TextIO
    progress: Callable[[Record], None]

    def now(self) -> float:
        return time.perf_counter() - self.start

    async def send(self, index: int, due: float, slot: int = 0, first_of_slot: bool = False) -> None:
        record = await one(self.http, self.load, index, slot, first_of_slot, due, self.start)
        self.out.write(record.line())
        self.progress(record)


async def window(socket: Path, load: Load, out: TextIO, progress: Callable[[Record], None]) -> float:
    """Send every prompt of the load and write one line per request. Returns the window's wall time in seconds."""
    async with session(socket) as http:
        return await send(http, load, out, progress)


async def send(http: aiohttp.ClientSession, load: Load, out: TextIO, progress: Callable[[Record], None]) -> float:
    """As `window`, over a session that is open already."""
    at = _Window(http, load, time.perf_counter(), out, progress)
    try:
        async with asyncio.TaskGroup() as tasks:
            await (_open_loop(at, tasks) if load.due else _closed_loop(at, tasks))
    except BaseExceptionGroup as failed:
        raise failed.exceptions[0] from None  # what ended the window; the other tasks were cancelled for it
    return at.now()


async def _open_loop(at: _Window, tasks: asyncio.TaskGroup) -> None:
    for index, due in enumerate(at.load.due):
        await asyncio.sleep(due - at.now())
        tasks.create_task(at.send(index, due))


async def _closed_loop(at: _Window, tasks: asyncio.TaskGroup) -> None:
    queue = iter(range(len(at.load.prompts)))  # one for all slots: prompts leave in their order
    for slot in range(at.load.concurrency):
        tasks.create_task(_slot(at, slot, queue))


async def _slot(at: _Window, slot: int, queue: Iterator[int]) -> None:
    if at.load.stagger:
        await asyncio.sleep(at.load.stagger[slot])
    due, first_of_slot = at.now(), True
    for index in queue:
        await at.send(index, due, slot, first_of_slot)
        due, first_of_slot = at.now(), False


async def one(
    http: aiohttp.ClientSession, load: Load, index: int, slot: int, first_of_slot: bool, due: float, start: float
) -> Record:
    """Send one request and read its stream. Whatever goes wrong with it is the record's `error`, never an exception."""
    record = Record(index, slot, first_of_slot, load.prompts[index].max_tokens, due, time.perf_counter() - start)
    payload = json.dumps(body(load, index)).encode()
    timeout = aiohttp.ClientTimeout(total=load.deadline_s)
    record.sent = time.perf_counter() - start
    try:
        headers = {"Content-Type": "application/json"}
        async with http.post(PATHS[load.request["endpoint"]], data=payload, headers=headers, timeout=timeout) as answer:
            if answer.status != 200:
                record.error = f"HTTP {answer.status}: {await answer.text()}"
            else:
                await _read(answer.content, record, start)
    except TimeoutError:
        record.error = f"no complete answer within {load.deadline_s:g} s"
    except (aiohttp.ClientError, OSError) as error:
        record.error = f"{type(error).__name__}: {error}"
    except (msgspec.DecodeError, ValueError, KeyError, TypeError, AttributeError) as error:
        record.error = f"unreadable answer: {type(error).__name__}: {error}"
    record.digest = ids_digest(record.ids)
    record.error = words_kept(record.error, load.private) if record.error else complaint(record)
    return record


def words_kept(error: str, private: bool) -> str:
    """What of an error may be kept: no credentials; where prompts are private not the server's words, which may quote them."""
    return masked(error.partition(":")[0] if private else error)[:300]


async def _read(stream: aiohttp.StreamReader, record: Record, start: float) -> None:
    ended = False
    async for line in _lines(stream):
        now = time.perf_counter() - start
        if not line.startswith(b"data:"):
            continue
        data = line[5:].strip()
        if data == b"[DONE]":
            ended = True
            continue
        take(record, msgspec.json.decode(data), now)
    if not ended:
        record.error = "the stream ended without [DONE]"


async def _lines(stream: aiohttp.StreamReader) -> AsyncIterator[bytes]:
    """Lines as they arrive: those of one read belong to one moment."""
    rest = b""
    async for part in stream.iter_any():
        *lines, rest = (rest + part).split(b"\n")
        for line in lines:
            yield line
    yield rest


def take(record: Record, event: dict[str, Any], now: float) -> None:
    """Add one event of the stream to the record. Role-only and usage-only events carry no tokens and set no time."""
    if event.get("error"):
        record.error = f"the server sent an error: {event['error']}"
        return
    choices = event.get("choices") or []
    for holder in (event, *choices):  # the prompt's ids stand beside the choices of a chat, inside those of a completion
        if holder.get("prompt_token_ids"):
            record.prompt_digest = ids_digest(holder["prompt_token_ids"])
    for choice in choices:
        ids = choice.get("token_ids") or []
        if ids:
            record.first = now if record.first is None else record.first
            record.done = now
            record.chunks.append((now, len(ids)))
            record.ids.extend(ids)
        record.finish_reason = choice.get("finish_reason") or record.finish_reason
    usage = event.get("usage")
    if usage:
        record.tokens_in, record.tokens_out = usage.get("prompt_tokens"), usage.get("completion_tokens")
        if choices and record.ids and record.tokens_out != len(record.ids):  # an event was lost, came twice or out of order
            told = f"usage says {record.tokens_out} tokens where the chunks hold {len(record.ids)}"
            record.error = record.error or told


def complaint(record: Record) -> str | None:
    """Why an answer that arrived is not a whole one; None if it is."""
    if record.tokens_out is None:
        return "no usage in the answer"
    if record.first is None:
        return "no token in the answer"
    if record.tokens_out != len(record.ids):
        return f"usage says {record.tokens_out} tokens, the chunks hold {len(record.ids)}"
    if record.finish_reason is None:
        return "no finish reason in the answer"
    return None
