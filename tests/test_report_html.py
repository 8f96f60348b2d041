"""The page: nothing of a spec becomes markup, nothing is loaded, every figure is there with its numbers, for every reader."""

from __future__ import annotations

import base64
import copy
import hashlib
import math
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any

import pytest
from report_sample import Sample

from specrun.report.html import el, markup
from specrun.report.page import page
from specrun.report.plot import Scale, around, linear_ticks, log_ticks
from specrun.report.records import recorded
from specrun.report.style import STYLE

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(1)>\"'&\u202e\u200b\x00"
FIGURES = ("ratios", "distributions", "acceptance", "break-even", "operating-curve", "memory", "time-line")


class Seen(HTMLParser):
    """Tags with their attributes, in order, and the text of every element with an id."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def values(self, name: str) -> list[str]:
        return [value for _, attributes in self.tags for key, value in attributes.items() if key == name and value]

    def count(self, tag: str) -> int:
        return sum(name == tag for name, _ in self.tags)


@pytest.fixture(scope="module")
def made(reported: Sample) -> str:
    return page(reported.spec, reported.entry, recorded(reported.entry, reported.folder))


def part(text: str, name: str) -> str:
    found = re.search(rf'<section id="{name}".*?</section>', text, re.S)
    assert found, name
    return found[0]


def test_no_string_of_a_spec_becomes_markup(reported: Sample, made: str) -> None:
    spec, entry = copy.deepcopy((reported.spec, reported.entry))
    poison(spec)
    poison(entry)
    text = page(spec, entry)
    assert "&lt;script&gt;alert(1)" in text and not set(HOSTILE) & set("\u202e\u200b\x00") & set(text)
    seen = Seen(text)
    assert {tag for tag, _ in seen.tags} == {tag for tag, _ in Seen(page(reported.spec, reported.entry)).tags}
    assert seen.count("script") == seen.count("img") == seen.count("link") == 0
    names = {name for _, attributes in seen.tags for name in attributes}
    assert not [name for name in names if name.startswith("on") or name in ("src", "style", "srcset", "action")]
    assert all(target.startswith("#") for target in seen.values("href"))


def poison(value: Any, key: str = "") -> Any:
    """Hostile text in every place of a spec or entry that the schema leaves free."""
    fixed = ("metric", "verdict", "outcome", "arms", "better", "compare", "kind", "device", "profile", "started", "ended")
    named = ("workload", "id", "schema", "method", "check_id")
    if isinstance(value, dict):
        for name in value:
            value[name] = poison(value[name], name)
    elif isinstance(value, list) and key not in ("columns", "rows"):
        value[:] = [poison(item, key) for item in value]
    elif isinstance(value, str) and key not in (*fixed, *named):
        return value + HOSTILE
    return value


def test_the_policy_allows_this_style_and_nothing_else(made: str) -> None:
    (policy,) = [content for content in Seen(made).values("content") if "default-src" in content]
    style = re.search(r"<style>(.*?)</style>", made, re.S)
    assert style
    digest = base64.b64encode(hashlib.sha256(style[1].encode()).digest()).decode()
    assert policy == f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    assert not re.search(r"https?:|url\(|@import", made)


def test_every_figure_is_there_with_its_numbers(made: str) -> None:
    for name in FIGURES:
        inside = part(made, name)
        assert "<svg" in inside and "<figcaption>" in inside, name
        assert "<data value=" in inside or name == "operating-curve", name
    assert "From the records: the share of requests" in part(made, "distributions")
    assert "accepted draft tokens per decode step" in part(made, "acceptance")
    assert part(made, "time-line").count('class="mark arm-pair"') == 16


def test_without_records_the_page_says_so_and_draws_the_entry(reported: Sample) -> None:
    text = page(reported.spec, reported.entry)
    assert "From the entry, because the records" in part(text, "distributions") and "<svg" in part(text, "distributions")
    assert "not at hand" in part(text, "acceptance") and "not at hand" in part(text, "time-line")


def test_ratios_in_the_page_are_those_of_the_entry(reported: Sample, made: str) -> None:
    shown = {float(value) for value in re.findall(r'<data value="([^"]+)"', part(made, "ratios"))}
    judged = ("request_duration_p50", "ttft_p50", "tpot_p50", "output_throughput")
    rows = [row for row in reported.entry["ratios"] if row["metric"] in judged]
    assert len(rows) == 16 and shown == {row[key] for row in rows for key in ("value", "low", "high")}


def test_marks_stand_where_the_ratios_are(reported: Sample, made: str) -> None:
    drawn = [float(x) for x in re.findall(r'<circle cx="([\d.]+)" cy="11" r="4" class="mark arm-pair">', part(made, "ratios"))]
    judged = ("request_duration_p50", "ttft_p50", "tpot_p50", "output_throughput")
    values = [row["value"] for metric in judged for row in reported.entry["ratios"] if row["metric"] == metric]
    left, right = min(zip(values, drawn, strict=True)), max(zip(values, drawn, strict=True))
    per_log = (right[1] - left[1]) / math.log(right[0] / left[0])
    assert drawn == pytest.approx([left[1] + per_log * math.log(value / left[0]) for value in values], abs=0.1)


def test_prediction_stands_beside_what_was_measured(reported: Sample) -> None:
    entry = copy.deepcopy(reported.entry)
    row = {"workload": "varied", "requests": 8, "differing": 0, "predicted": 50, "made": 40, "contradicted": 0}
    entry["established"]["oracle"] = [row | {"predicted_at": [25, 10, 5], "made_at": [30, 10, 2]}]
    inside = part(page(reported.spec, entry), "acceptance")
    assert [float(x) for x in re.findall(r'<data value="([^"]+)"', inside)] == [0.5, 0.2, 0.1, 0.75, 0.25, 0.05]
    assert "predicted" in inside and 'class="line curve arm-limit"' in inside


def test_a_sweep_has_a_figure_of_its_own(reported: Sample) -> None:
    entry = copy.deepcopy(reported.entry)
    row = {"value": 0.9, "low": 0.8, "high": 1.01, "blocks": [0.9] * 4}
    rows = [{"k": 1} | row, {"k": 3} | row | {"value": None, "low": None, "high": None, "reason": "three blocks only"}]
    table = {"metric": "ttft_p50", "workload": "varied", "concurrency": 1, "rows": rows, "best": [1], "winner": None}
    entry["sweep"] = {"num_speculative_tokens": [1, 3], "rule": "the rule", "winner": None, "tables": [table]}
    inside = part(page(reported.spec, entry), "sweep")
    assert (
        "K = 1" in inside and "0.9 " in inside.replace("</data>", " ") and "three blocks only" in inside and "the rule" in inside
    )
    assert 'id="sweep"' not in page(reported.spec, reported.entry)


def test_not_established_is_said_first_and_never_called_slow(reported: Sample) -> None:
    entry = copy.deepcopy(reported.entry) | {"verdicts": [], "diagnosis": [], "approvals": []}
    entry["established"] = {
        "verdict": "not_established",
        "checks": [{"check": "drafts", "outcome": "failed", "detail": "none made"}],
    }
    text = page(reported.spec, entry)
    assert "The pair was not established." in text.partition("<main")[0] and "UNAPPROVED" in text
    assert "no criterion is judged" in part(text, "verdicts") and "none made" in part(text, "established")


def test_a_run_of_which_nothing_counts_has_no_empty_charts(reported: Sample) -> None:
    entry = copy.deepcopy(reported.entry)
    named = [entry["figures"]["columns"].index(name) for name in ("workload", "concurrency", "arm")]
    entry["figures"]["rows"] = [[x if i in named else None for i, x in enumerate(row)] for row in entry["figures"]["rows"]]
    for row in entry["ratios"]:
        row |= {"value": None, "low": None, "high": None, "blocks": [None] * 4, "reason": "void"}
    text = page(reported.spec, entry, recorded(entry, reported.folder))
    for name in ("ratios", "arms", "distributions", "break-even", "operating-curve"):
        assert "<svg" not in part(text, name) and "<p>No " in part(text, name).replace("<p>The server", "<p>No server"), name
    assert "<svg" in part(text, "time-line")


def test_readers_who_do_not_see_get_headings_names_and_tables(made: str) -> None:
    seen = Seen(made)
    ids = seen.values("id")
    assert len(ids) == len(set(ids)) and seen.count("h1") == 1
    assert all(target[1:] in ids for target in seen.values("href"))
    assert all(name in ids for name in seen.values("aria-labelledby"))
    assert seen.count("table") == seen.count("caption") and dict(seen.tags)["html"]["lang"] == "en"
    drawings = [attributes for tag, attributes in seen.tags if tag == "svg"]
    assert drawings and all(attributes["aria-hidden"] == "true" and attributes["focusable"] == "false" for attributes in drawings)
    scrolling = [attributes for _, attributes in seen.tags if attributes.get("class") == "scroll"]
    assert all(attributes["tabindex"] == "0" and attributes["aria-label"] for attributes in scrolling)


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_text_can_be_read_in_both_themes(theme: int) -> None:
    """WCAG 2: 4.5 for text, 3 for marks."""
    roots = re.findall(r":root\{([^}]*)\}", STYLE)
    colours = dict(re.findall(r"--([a-z]+):(#[0-9a-f]{3,6})", roots[theme]))
    for name in ("ink", "soft", "link", "good", "bad", "open"):
        assert contrast(colours[name], colours["bg"]) >= 4.5, name
        if name in ("good", "bad", "open"):
            assert contrast(colours[name], colours[name + "bg"]) >= 4.5, name
    for name in ("target", "pair", "aa", "matched", "other", "limit"):
        assert contrast(colours[name], colours["bg"]) >= 3, name


def contrast(one: str, other: str) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def luminance(colour: str) -> float:
    digits = colour[1:] if len(colour) == 7 else "".join(2 * digit for digit in colour[1:])
    parts = [int(digits[i : i + 2], 16) / 255 for i in (0, 2, 4)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_elements_escape_attributes_and_text() -> None:
    assert (
        str(el("p", "a<b", class_='"x"', hidden=True, title=None, x=1.234))
        == '<p class="&quot;x&quot;" hidden x="1.23">a&lt;b</p>'
    )
    assert markup([el("br"), "&", *pieces()]) == "<br>&amp;<i>one</i><i>two</i>"


def pieces() -> Iterator[Any]:
    yield el("i", "one")
    yield el("i", "two")


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (linear_ticks(0, 10), [0, 2, 4, 6, 8, 10]),
        (linear_ticks(0.05, 0.29), [0.05, 0.1, 0.15, 0.2, 0.25]),
        (log_ticks(0.5, 2.1), [0.5, 0.7, 1, 1.5, 2]),
        (log_ticks(0.02, 30), [0.1, 1, 10]),
        (log_ticks(0.88, 1.22), [0.9, 1, 1.1, 1.2]),
        (list(around([1, 3], pad=0.5)), [0, 4]),
        (list(around([5.0])), [4.5, 5.5]),
    ],
)
def test_axes(found: list[float], expected: list[float]) -> None:
    assert found == pytest.approx(expected)


def test_scales_keep_to_their_edges() -> None:
    scale = Scale(0.5, 2, 0, 100, log=True)
    assert [scale(x) for x in (0.1, 0.5, 1, 2, 9)] == pytest.approx([0, 0, 50, 100, 100])
    assert Scale(3, 3, 0, 10)(3) == 0
