"""What a fresh server says of itself: configuration, capacity, memory, and one minimal exchange."""

from __future__ import annotations

import asyncio
import http.client
import json
import re
import socket as sockets
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp

from speclint.credentials import masked, redacted
from speclint.releases import Release
from speclint.workload import Prompt
from specrun import device, drive, host, scrape
from specrun.launch import Server, ServerFailed, cause

ASK_WITHIN_S = 60.0
GIB = 2**30
# Facts that only the log holds. Unit of sizes: GiB, as vLLM prints them.
LOG_FACTS = {
    "runner": re.compile(r"[Uu]sing (?:the )?(V[12]) [Mm]odel [Rr]unner"),
    "attention_backend": re.compile(r"Using (?:AttentionBackendEnum\.)?(\w+) (?:attention )?backend"),
    "cudagraph_mode": re.compile(r"setting cudagraph_mode=(\w+)"),  # by the worker, after what /server_info shows
    "weights_gib": re.compile(r"Model loading took ([\d.]+) GiB"),
    "graphs_gib": re.compile(r"Graph capturing finished in .* took ([\d.]+) GiB"),
    "kv_cache_gib": re.compile(r"Available KV cache memory: ([\d.]+) GiB"),
}


@contextmanager
def answering(server: Server) -> Iterator[None]:
    """Turn a connection that breaks inside the block into ServerFailed, with the log's own words."""
    try:
        yield
    except (OSError, aiohttp.ClientError) as error:
        with suppress(subprocess.TimeoutExpired):
            server.process.wait(2)  # a dying server closes its socket before it ends
        ended = "" if server.alive() else f"it ended with status {server.process.returncode}: "
        raise ServerFailed(
            f"the server stopped answering ({type(error).__name__}); {ended}{cause(server.log)}", f"the whole log: {server.log}"
        ) from error


@dataclass(frozen=True, slots=True)
class Talk:
    """Requests to the server's own endpoints, each with a deadline."""

    socket: Path

    async def get(self, path: str) -> str:
        timeout = aiohttp.ClientTimeout(total=ASK_WITHIN_S)
        async with drive.session(self.socket) as client, client.get(path, timeout=timeout) as answer:
            answer.raise_for_status()
            return await answer.text()

    async def page(self) -> scrape.Page:
        return scrape.parse(await self.get("/metrics"))

    async def idle_page(self, within_s: float = 30.0) -> scrape.Page:
        """The metrics page once no request runs or waits."""
        deadline = time.monotonic() + within_s
        while True:
            page = await self.page()
            if not scrape.running(page) or time.monotonic() > deadline:
                return page
            await asyncio.sleep(0.05)


def healthy(socket: Path) -> bool:
    """Whether GET /health answers 200 right now."""
    connection = sockets.socket(sockets.AF_UNIX, sockets.SOCK_STREAM)
    connection.settimeout(5)
    try:
        connection.connect(str(socket))
        connection.sendall(b"GET /health HTTP/1.1\r\nHost: specpair\r\nConnection: close\r\n\r\n")
        answer = http.client.HTTPResponse(connection)
        answer.begin()
        return answer.status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


async def effective_config(socket: Path) -> dict[str, Any] | None:
    """The configuration as the engine reports it, credentials redacted; None where the release has no such endpoint."""
    try:
        text = await Talk(socket).get("/server_info?config_format=json")
    except aiohttp.ClientResponseError as error:
        if error.status == 404:
            return None
        raise
    found = redacted(json.loads(text))
    config: dict[str, Any] = found.get("vllm_config", found)
    return config


def log_facts(text: str) -> dict[str, Any]:
    """Runner, attention backend and memory split, as far as the log names them; weights are summed over target and draft."""
    found: dict[str, Any] = {}
    for name, pattern in LOG_FACTS.items():
        matches = pattern.findall(text)
        if matches and name.endswith("_gib"):
            sizes = [float(match) for match in matches]
            found[name.removesuffix("_gib") + "_bytes"] = int((sum(sizes) if name == "weights_gib" else sizes[-1]) * GIB)
        elif matches:
            found[name] = matches[-1]
    return found


async def minimal_exchange(server: Server, load: drive.Load) -> dict[str, Any]:
    """One short request, not streamed, with its whole answer: proof that this start served this model."""
    short = drive.Load([Prompt(load.prompts[0].content, 8)], 1, load.request, load.sampling, load.stop)
    request = drive.body(short, 0) | {"stream": False}
    request.pop("stream_options")
    path = drive.PATHS[load.request["endpoint"]]
    timeout = aiohttp.ClientTimeout(total=drive.REQUEST_WITHIN_S)
    async with drive.session(server.socket) as client, client.post(path, json=request, timeout=timeout) as answer:
        text = await answer.text()
        if answer.status != 200:
            why = cause(server.log) if answer.status >= 500 else masked(text)[:300]  # a dead engine's answer names no cause
            raise ServerFailed(f"the first request was refused with HTTP {answer.status}: {why}", f"the whole log: {server.log}")
    return {"path": path, "request": request, "response": json.loads(text)}


async def facts(server: Server, release: Release, load: drive.Load, pair: dict[str, Any]) -> dict[str, Any]:
    """What a start of a spec's pair leaves: see docs/protocol.md."""
    with answering(server):
        exchange = await minimal_exchange(server, load)
        page = await Talk(server.socket).idle_page()
        config = await effective_config(server.socket)
    log = server.log_since(0)
    return {
        "ready_after_s": round(server.ready_after_s, 3),
        "config": config,
        "capacity": scrape.capacity(page),
        "from_log": log_facts(log),
        "memory_bytes": memory(server, pair),
        "draft_counters": scrape.counters(page, release)["drafts"] is not None,
        "minimal": exchange,
    }


def memory(server: Server, pair: dict[str, Any]) -> int | None:
    """Bytes the server holds now: memory in use on its own GPUs, or the resident memory of its processes on a CPU."""
    on_gpu = pair["placement"]["device"] == "cuda"
    return host.device_memory_used(device.gpus(pair)) if on_gpu else host.resident_memory(server.pid)
