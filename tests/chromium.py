"""Chromium over its own debugging protocol: open a page, hear what it says and asks for, put questions to it."""

from __future__ import annotations

import asyncio
import itertools
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--remote-debugging-port=0",
)
WITHIN_S = 30


def program() -> str | None:
    """The browser that is installed here."""
    return next((found for name in NAMES if (found := shutil.which(name))), None)


class Page:
    """One tab: calls of the protocol, and the events that came meanwhile."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.socket, self.numbers = socket, itertools.count(1)
        self.events: list[dict[str, Any]] = []

    async def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        number = next(self.numbers)
        await self.socket.send_json({"id": number, "method": method, "params": parameters})
        while True:
            message = await asyncio.wait_for(self.socket.receive_json(), WITHIN_S)
            if message.get("id") == number:
                assert "error" not in message, (method, message["error"])
                found: dict[str, Any] = message["result"]
                return found
            self.events.append(message)

    async def until(self, method: str) -> None:
        while not any(event.get("method") == method for event in self.events):
            self.events.append(await asyncio.wait_for(self.socket.receive_json(), WITHIN_S))

    async def evaluate(self, expression: str) -> Any:
        found = await self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    async def open(self, path: Path) -> None:
        """Open a file and wait until it is loaded."""
        for domain in ("Page", "Network", "Log", "Runtime", "Security"):
            await self.call(f"{domain}.enable")
        await self.call("Page.navigate", url=path.as_uri())
        await self.until("Page.loadEventFired")

    def heard(self, *methods: str) -> list[dict[str, Any]]:
        return [event["params"] for event in self.events if event.get("method") in methods]


@asynccontextmanager
async def tab(browser: str) -> AsyncIterator[Page]:
    """An empty tab of a fresh browser, which ends with it and leaves nothing."""
    profile = Path(tempfile.mkdtemp(prefix="chromium-"))
    words = [browser, *FLAGS, f"--user-data-dir={profile}", "about:blank"]
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        port = await _port(profile / "DevToolsActivePort", process)
        async with aiohttp.ClientSession() as session:
            async with session.get(f"http://127.0.0.1:{port}/json") as answer:
                (target,) = [one for one in await answer.json() if one["type"] == "page"]
            async with session.ws_connect(target["webSocketDebuggerUrl"], max_msg_size=0) as socket:
                yield Page(socket)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        shutil.rmtree(profile, ignore_errors=True)


async def _port(path: Path, process: subprocess.Popen[bytes]) -> int:
    async with asyncio.timeout(WITHIN_S):
        while not path.exists() or "\n" not in path.read_text(encoding="utf-8"):
            assert process.poll() is None, "the browser ended by itself"
            await asyncio.sleep(0.05)
    return int(path.read_text(encoding="utf-8").splitlines()[0])
