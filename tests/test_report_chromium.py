"""The page in a real browser: it loads alone and silently, holds the file's numbers, and fits screen, phone, dark and paper."""

from __future__ import annotations

import asyncio
import base64
from pathlib import Path
from typing import Any

import pytest
from chromium import Page, program, tab
from report_sample import Sample

from specrun.report.page import page
from specrun.report.records import recorded

BROWSER = program()
pytestmark = pytest.mark.skipif(BROWSER is None, reason="no Chromium is installed")
VALUES = "(id) => [...document.getElementById(id).querySelectorAll('data')].map(d => [d.value, d.textContent])"
OVERFLOW = "document.scrollingElement.scrollWidth - document.scrollingElement.clientWidth"
TINY = (
    "[...document.querySelectorAll('svg text')].map(t => t.getBoundingClientRect())"
    ".filter(r => r.width && Math.max(r.width, r.height) < 10).length"
)


def asked(path: Path) -> dict[str, Any]:
    """Everything that the tests want to know, from one browser."""

    async def ask() -> dict[str, Any]:
        assert BROWSER
        async with tab(BROWSER) as shown:
            await shown.open(path)
            return await answers(shown)

    return asyncio.run(ask())


async def answers(shown: Page) -> dict[str, Any]:
    found = {
        "title": await shown.evaluate("document.title"),
        "verdicts": await shown.evaluate(f"({VALUES})('verdict-table')"),
        "arms": await shown.evaluate(f"({VALUES})('arm-figures')"),
        "headings": await shown.evaluate("[...document.querySelectorAll('h1,h2')].map(h => h.textContent)"),
        "said": shown.heard("Log.entryAdded", "Runtime.consoleAPICalled", "Runtime.exceptionThrown"),
        "script": await shown.evaluate(
            "(() => { const s = document.createElement('script'); s.textContent = 'window.didRun = 1'; "
            "document.body.append(s); s.remove(); return window.didRun ?? 0 })()"
        ),
        "tree": (await shown.call("Accessibility.getFullAXTree"))["nodes"],
    }
    for name, width, scheme in (("desk", 1100, "light"), ("phone", 390, "dark")):
        await shown.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        await shown.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        colour = await shown.evaluate("getComputedStyle(document.body).backgroundColor")
        found[name] = {"overflow": await shown.evaluate(OVERFLOW), "tiny": await shown.evaluate(TINY), "ground": colour}
    await shown.call("Emulation.setEmulatedMedia", media="", features=[])
    await shown.evaluate("document.body.focus()")
    focused = []
    for _ in range(4):
        for kind in ("keyDown", "keyUp"):
            await shown.call("Input.dispatchKeyEvent", type=kind, key="Tab", code="Tab", windowsVirtualKeyCode=9)
        focused.append(await shown.evaluate("document.activeElement.textContent"))
    found["focused"] = focused
    found["pdf"] = base64.b64decode((await shown.call("Page.printToPDF", printBackground=True))["data"])
    found["requests"] = [event["request"]["url"] for event in shown.heard("Network.requestWillBeSent")]
    return found


@pytest.fixture(scope="module")
def seen(reported: Sample, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(page(reported.spec, reported.entry, recorded(reported.entry, reported.folder)), encoding="utf-8")
    return asked(path) | {"path": path}


def test_it_loads_alone_and_silently(seen: dict[str, Any]) -> None:
    assert seen["requests"] == [seen["path"].as_uri()]
    assert seen["said"] == [] and seen["script"] == 0  # a script that came into the page would not run


def test_numbers_are_those_of_the_file(reported: Sample, seen: dict[str, Any]) -> None:
    cells = [cell for verdict in reported.entry["verdicts"] for cell in verdict["cells"]]
    expected = [cell[key] for cell in cells for key in (("value",) if cell["low"] == cell["high"] else ("value", "low", "high"))]
    assert [float(value) for value, _ in seen["verdicts"]] == expected
    assert all(f"{float(value):.4g}" == shown for value, shown in seen["verdicts"])
    columns, rows = reported.entry["figures"]["columns"], reported.entry["figures"]["rows"]
    throughput = {row[columns.index("output_throughput")] for row in rows}
    assert throughput <= {float(value) for value, _ in seen["arms"]}
    assert seen["headings"][:2] == ["tiny-draft-k3", "Verdicts"] and seen["title"] == "tiny-draft-k3: result r1"


@pytest.mark.parametrize(("name", "ground"), [("desk", "rgb(255, 255, 255)"), ("phone", "rgb(18, 22, 27)")])
def test_it_fits_the_screen_and_can_be_read(seen: dict[str, Any], name: str, ground: str) -> None:
    assert seen[name] == {"overflow": 0, "tiny": 0, "ground": ground}


def test_keyboard_and_screen_reader_get_through(seen: dict[str, Any]) -> None:
    assert seen["focused"] == ["Skip to the verdicts", "Verdicts", "Was the pair established?", "Pair against target"]
    roles = [node["role"]["value"] for node in seen["tree"] if not node.get("ignored")]
    named = [node["name"]["value"] for node in seen["tree"] if not node.get("ignored") and node["role"]["value"] == "table"]
    assert {"banner", "navigation", "main", "heading", "table", "rowheader", "columnheader"} <= set(roles)
    assert roles.count("table") >= 12 and all(named) and "image" not in roles


def test_it_can_be_printed(seen: dict[str, Any]) -> None:
    pages = seen["pdf"].count(b"/Type /Page\n")
    assert seen["pdf"].startswith(b"%PDF-") and 5 <= pages <= 15
