"""The load generator against the stand-in: what each fault of a stream leaves in the records."""

from __future__ import annotations

import asyncio
import dataclasses
import io
import json
import selectors
import time
import tracemalloc
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stand_in import Engine
from stand_in_run import chat_load, driven, load_of, serving, spec_data, window_of

from speclint.workload import Prompt
from specrun import drive
from specrun.drive import complaint, take
from specrun.measure import figures
from specrun.record import Record, ids_digest

SPECULATIVE = {"method": "draft_model", "num_speculative_tokens": 3}
DATA = spec_data()


def engine(fault: str = "", *numbers: int) -> Engine:
    return Engine(fault, numbers, dict(SPECULATIVE))


def record(limit: int = 8) -> Record:
    return Record(0, 0, True, limit, 0.0, 0.0)


def test_records_are_what_the_server_says_it_did() -> None:
    served = engine()
    window, records, _ = window_of(served, load_of(DATA), "pair")
    assert [r["index"] for r in records] == list(range(24))
    assert [r["tokens_out"] for r in records] == [r["max_tokens"] for r in records] == [len(r["ids"]) for r in records]
    assert len({r["max_tokens"] for r in records}) > 4
    assert sum(r["tokens_out"] for r in records) == window["counters"]["generation_tokens"]
    assert sum(r["tokens_in"] for r in records) == window["counters"]["prompt_tokens"]
    assert sum(len(r["chunks"]) - 1 for r in records) == window["counters"]["itl_count"] == window["counters"]["drafts"]
    assert {n for r in records for _, n in r["chunks"]} == {1, 2, 3, 4}
    assert all(r["error"] is None and r["finish_reason"] == "length" for r in records)
    assert all(r["digest"] == ids_digest(r["ids"]) for r in records)


def test_times_are_in_order_and_a_slot_has_one_request_at_a_time() -> None:
    records = driven(engine(), load_of(DATA, concurrency=3))
    for r in records:
        times = [t for t, _ in r["chunks"]]
        assert r["due"] <= r["sent"] <= r["first"] == times[0] <= r["done"] == times[-1]
        assert times == sorted(times)
    for slot in range(3):
        mine = sorted((r for r in records if r["slot"] == slot), key=lambda r: r["sent"])
        assert [r["first_of_slot"] for r in mine] == [True] + [False] * (len(mine) - 1)
        assert all(before["done"] <= after["due"] for before, after in pairwise(mine))


def test_answers_do_not_depend_on_concurrency_or_arm() -> None:
    alone = driven(Engine(), load_of(DATA, concurrency=1))
    busy = driven(engine(), load_of(DATA, concurrency=8))
    assert [(r["digest"], r["prompt_digest"]) for r in alone] == [(r["digest"], r["prompt_digest"]) for r in busy]
    assert all(n == 1 for r in alone for _, n in r["chunks"])


def test_first_sends_wait_for_their_offset() -> None:
    load = dataclasses.replace(load_of(DATA, concurrency=3, requests=60), stagger=[0.06, 0.0, 0.03])
    due = {r["slot"]: r["due"] for r in driven(engine(), load) if r["first_of_slot"]}
    assert due[1] < 0.03 <= due[2] < 0.06 <= due[0]


def test_chat_opens_with_a_role_that_is_no_token() -> None:
    served = engine()
    records = driven(served, chat_load())
    assert all(r["error"] is None and r["tokens_out"] == 9 for r in records)
    assert all(r["chunks"][0][1] == 1 and r["first"] == r["chunks"][0][0] for r in records)
    assert len({r["prompt_digest"] for r in records}) == 4  # they stand beside the choices of the opening event
    assert None not in {r["prompt_digest"] for r in records}


@pytest.mark.parametrize(
    ("fault", "share", "words"),
    [
        ("no-usage", 1, "no usage in the answer"),
        ("lying-usage", 1, "usage says"),
        ("no-ids", 1, "no token in the answer"),
        ("cut", 1 / 4, "the stream ended without [DONE]"),
        ("http-500", 1 / 3, "HTTP 500: Internal Server Error"),
        ("duplicated", 1, "tokens where the chunks hold"),
        ("reordered", 1, "tokens where the chunks hold"),
        ("lost", 1, "tokens where the chunks hold"),
        ("http-429", 1 / 3, "HTTP 429: Too Many Requests"),
    ],
)
def test_a_fault_of_the_stream_is_the_error_of_its_record(fault: str, share: float, words: str) -> None:
    records = driven(engine(fault), load_of(DATA))
    wrong = [r["error"] for r in records if r["error"]]
    assert len(records) == 24
    assert len(wrong) == 24 * share
    assert all(words in error for error in wrong), wrong[0]


def test_chunks_without_text_are_tokens_all_the_same() -> None:
    assert all(
        r["error"] is None and sum(n for _, n in r["chunks"]) == r["tokens_out"] for r in driven(engine("no-text"), load_of(DATA))
    )


def test_a_server_that_is_gone_fails_each_request_and_no_more(tmp_path: Path) -> None:
    out = io.StringIO()
    asyncio.run(drive.window(tmp_path / "nobody", load_of(DATA, requests=5), out, lambda _: None))
    errors = [json.loads(line)["error"] for line in out.getvalue().splitlines()]
    assert len(errors) == 5 and all("Connector" in error for error in errors)


async def _stuck(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read(64)
    await asyncio.sleep(5)
    writer.close()


def test_every_request_has_a_deadline(tmp_path: Path) -> None:
    load = dataclasses.replace(load_of(DATA, 1, 1), deadline_s=0.2)

    async def ask() -> str:
        out = io.StringIO()
        server = await asyncio.start_unix_server(_stuck, str(tmp_path / "s"))
        await drive.window(tmp_path / "s", load, out, lambda _: None)
        server.close()
        return out.getvalue()

    began = time.monotonic()
    assert json.loads(asyncio.run(ask()))["error"] == "no complete answer within 0.2 s"
    assert time.monotonic() - began < 3


@pytest.mark.parametrize(
    "line", [b"data: [1, 2]\n\n", b'data: {"choices": [3]}\n\n', b"data: {not json\n\n", b'data: {"usage": [1]}\n\n']
)
def test_an_unreadable_event_is_the_error_of_its_record(line: bytes, tmp_path: Path) -> None:
    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n" % len(line) + line)
        await writer.drain()
        writer.close()

    async def ask() -> str:
        out = io.StringIO()
        server = await asyncio.start_unix_server(speak, str(tmp_path / "s"))
        await drive.window(tmp_path / "s", load_of(DATA, 1, 1), out, lambda _: None)
        server.close()
        return out.getvalue()

    assert "unreadable answer" in json.loads(asyncio.run(ask()))["error"]


def test_a_full_disk_ends_the_window() -> None:
    async def measure() -> None:
        with Path("/dev/full").open("w", buffering=1) as full:
            async with serving(engine()) as socket:
                await drive.window(socket, load_of(DATA, requests=4), full, lambda _: None)

    with pytest.raises(OSError, match="No space left"):
        asyncio.run(measure())


def test_requests_carry_the_specs_sampling_their_own_seed_and_limit() -> None:
    load = load_of(DATA)
    first, fifth = drive.body(load, 0), drive.body(load, 5)
    assert (first["seed"], fifth["seed"]) == (0, 5)
    assert fifth["max_tokens"] == load.prompts[5].max_tokens and fifth["prompt"] == load.prompts[5].content
    assert first["stream_options"] == {"include_usage": True, "continuous_usage_stats": True}
    assert first["ignore_eos"] is True and first["return_token_ids"] is True and first["temperature"] == 0.0
    extra = drive.Load(load.prompts, 1, {"endpoint": "completions", "extra_body": {"min_tokens": 3}}, load.sampling, "natural")
    assert drive.body(extra, 0)["min_tokens"] == 3 and drive.body(extra, 0)["ignore_eos"] is False
    assert drive.body(chat_load(), 0)["messages"] == [{"role": "user", "content": "question 0"}]
    assert "max_tokens" not in drive.body(chat_load(), 0)


def whole(ids: list[int], sizes: list[int]) -> list[dict[str, Any]]:
    """Events of a whole completion."""
    out: list[dict[str, Any]] = []
    sent = 0
    for size in sizes:
        part = ids[sent : sent + size]
        sent += size
        choice = {"token_ids": part, "finish_reason": "length" if sent == len(ids) else None}
        out.append({"choices": [choice], "usage": {"prompt_tokens": 3, "completion_tokens": sent}})
    return [*out, {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": sent}}]


@given(st.lists(st.integers(1, 4), min_size=1, max_size=8), st.data())
@settings(max_examples=150, deadline=None)
def test_events_in_any_order_never_raise_and_lost_or_doubled_ones_are_noticed(sizes: list[int], data: st.DataObject) -> None:
    events = whole(list(range(sum(sizes))), sizes)
    mixed = data.draw(st.lists(st.sampled_from(range(len(events))), max_size=2 * len(events)))
    found = record()
    for time_, number in enumerate(mixed):
        take(found, events[number], float(time_))
    times_seen = Counter(mixed)
    tokens_once = all(times_seen[i] == 1 for i in range(len(sizes)))
    if complaint(found) is None and found.tokens_out == sum(sizes):
        assert sum(n * times_seen[i] for i, n in enumerate(sizes)) == sum(sizes)
    if tokens_once and mixed and mixed[-1] == len(sizes):
        assert complaint(found) is None and sorted(found.ids) == list(range(sum(sizes)))
    if found.error is None and complaint(found) is None and tokens_once:
        assert found.ids == list(range(sum(sizes)))  # what came out of order is an error, whatever its sum


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "choices": st.none()
            | st.lists(
                st.fixed_dictionaries(
                    {}, optional={"token_ids": st.none() | st.lists(st.integers()), "finish_reason": st.none() | st.text()}
                )
            ),
            "usage": st.none()
            | st.fixed_dictionaries({}, optional={"completion_tokens": st.integers(), "prompt_tokens": st.none()}),
            "error": st.none() | st.text() | st.dictionaries(st.text(), st.text()),
            "prompt_token_ids": st.none() | st.lists(st.integers()),
        },
    )
)
@settings(max_examples=150, deadline=None)
def test_any_event_of_the_right_types_is_taken(event: dict[str, Any]) -> None:
    found = record()
    take(found, event, 1.0)
    assert found.error or not event.get("error")
    assert sum(n for _, n in found.chunks) == len(found.ids)


@pytest.mark.usefixtures("strict")
def test_a_client_that_gets_no_processor_says_so() -> None:
    async def starved() -> drive.Watch:
        watch = drive.Watch()
        async with drive.watched(watch):
            for _ in range(4):
                await asyncio.sleep(0.02)
                time.sleep(0.1)  # what a busy machine does to the client
            await asyncio.sleep(0.02)
        return watch

    watch = asyncio.run(starved())
    told = watch.complaint(0.5)
    assert told is not None and "no processor" in told
    assert watch.late_s > 0.3 and watch.worst_s > 0.08


@pytest.mark.usefixtures("strict")
def test_a_punctual_client_is_quiet() -> None:
    watch = drive.Watch(late_s=0.05, worst_s=0.05)
    assert watch.complaint(1.0) is None  # 5 % is still allowed
    assert watch.complaint(0.99) is not None


class Jumping(selectors.SelectSelector):
    """Waits by setting the clock forward, so that every time in a test is exact."""

    now = 0.0

    def select(self, timeout: float | None = None) -> Any:
        self.now += timeout or 0.0
        return super().select(0)


class Script:
    """In place of a session: every answer has its first token 0.1 s after the request, then two tokens each 0.05 s."""

    @asynccontextmanager
    async def post(self, path: str, data: bytes, **_: Any) -> AsyncIterator[Any]:
        yield SimpleNamespace(status=200, content=SimpleNamespace(iter_any=lambda: self.events(json.loads(data)["max_tokens"])))

    async def events(self, limit: int) -> AsyncIterator[bytes]:
        sizes = [1] + [2] * ((limit - 1) // 2)
        for number, event in enumerate(whole(list(range(limit)), sizes)):
            await asyncio.sleep(0.1 if number == 0 else 0.05 if number < len(sizes) else 0.0)
            line = f"data: {json.dumps(event)}\n\n".encode()
            yield line[:9]
            yield line[9:]
        yield b"data: [DONE]\n\n"


def scripted(load: drive.Load, monkeypatch: pytest.MonkeyPatch) -> tuple[float, list[dict[str, Any]]]:
    """Seconds of a window on the script, by a clock that jumps, and its records by index."""
    clock, out = Jumping(), io.StringIO()
    loop = asyncio.SelectorEventLoop(clock)
    monkeypatch.setattr(loop, "time", lambda: clock.now)
    with monkeypatch.context() as patch:
        patch.setattr(time, "perf_counter", lambda: clock.now)
        seconds = loop.run_until_complete(drive.send(Script(), load, out, lambda _: None))  # type: ignore[arg-type]
    loop.close()
    return seconds, sorted(map(json.loads, out.getvalue().splitlines()), key=lambda row: row["index"])


def scripted_load(limits: list[int], concurrency: int, **times: list[float]) -> drive.Load:
    sampling = {"temperature": 0.0, "seed": 0}
    prompts = [Prompt("one", limit) for limit in limits]
    return drive.Load(prompts, concurrency, {"endpoint": "completions"}, sampling, "length", **times)


def test_closed_loop_times_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """Slot 0 sends at 0 and slot 1 at 0.03; answers of 5, 3 and 7 tokens take 0.2, 0.15 and 0.25 s."""
    seconds, records = scripted(scripted_load([5, 3, 7, 3], 2, stagger=[0.0, 0.03]), monkeypatch)
    assert [(r["slot"], r["due"], r["sent"], r["first"], r["done"]) for r in records] == [
        (0, 0.0, 0.0, 0.1, 0.2),
        (1, 0.03, 0.03, 0.13, 0.18),
        (1, 0.18, 0.18, 0.28, 0.43),
        (0, 0.2, 0.2, 0.3, 0.35),
    ]
    assert records[0]["chunks"] == [[0.1, 1], [0.15, 2], [0.2, 2]]
    assert seconds == pytest.approx(0.43)
    assert [r["first_of_slot"] for r in records] == [True, True, False, False]
    window = {"concurrency": 2, "seconds": seconds, "counters": {}}
    found = figures(window, records)
    assert found["ttft_mean"] == pytest.approx(0.1) and found["tpot_mean"] == pytest.approx(0.025)
    assert found["request_duration_mean"] == pytest.approx((0.2 + 0.15 + 0.25 + 0.15) / 4)
    assert found["output_throughput_window"] == pytest.approx(18 / 0.43)
    assert found["output_throughput"] == pytest.approx(12 / 0.22)  # in (0.13, 0.35]: chunks of 2, 2, 2, 1, 1, 2, 2


def test_open_loop_times_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds, records = scripted(scripted_load([5, 3, 5], 0, due=[0.02, 0.05, 0.4]), monkeypatch)
    assert [(r["due"], r["sent"], r["first"], r["done"]) for r in records] == [
        (0.02, 0.02, 0.12, 0.22),
        (0.05, 0.05, 0.15, 0.2),
        (0.4, 0.4, 0.5, 0.6),
    ]
    assert seconds == pytest.approx(0.6)


def test_nothing_of_an_answer_is_held_once_it_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    async def long_answer(*of: Any) -> Record:
        await asyncio.sleep(0)
        return Record(of[2], of[3], of[4], 500, of[5], of[5], ids=list(range(10**6, 10**6 + 500)))

    def peak(count: int, **times: list[float]) -> int:
        load = scripted_load([500] * count, 4, **times)
        tracemalloc.reset_peak()
        before = tracemalloc.get_traced_memory()[0]
        with Path("/dev/null").open("w") as nowhere:
            asyncio.run(drive.send(None, load, nowhere, lambda _: None))  # type: ignore[arg-type]
        return tracemalloc.get_traced_memory()[1] - before

    monkeypatch.setattr(drive, "one", long_answer)
    tracemalloc.start()
    try:
        assert peak(200) < 400_000  # held, 200 such answers are 4 MB
        assert peak(200, due=[i / 10**6 for i in range(200)]) < 400_000
    finally:
        tracemalloc.stop()
