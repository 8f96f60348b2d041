"""Equal answer lengths beside the protocol's spread and staggered starts: what they do to TTFT and whole-window throughput.

    python benchmarks/equal_lengths.py [SPEC]      # starts the spec's target, then its pair, one at a time, and stops them

Both arms answer the same prompts with, in the mean, as many tokens; windows of both shapes take turns on one server. TTFT is told
in decode steps of its own window and throughput as whole window / steady: a busy machine moves these little. Intervals: 95 %.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from load_generator import SPEC, driven, load_of, serving

from speclint import document, releases
from speclint.releases import Release
from speclint.workload import Draw
from specrun import drive, scrape
from specrun.compare import interval_of
from specrun.evidence import PAIRED
from specrun.measure import Figures, figures

SHAPES = {"equal lengths, all at once": 0.0, "spread 0.5, staggered": 0.5}
BUNCHED = {"sends within a step of another": "arrival_bunching", "as many by chance": "arrival_bunching_by_chance"}
BENT = {
    "TTFT p50, in steps": ("ttft_p50", "step_time"),
    "throughput, window / steady": ("output_throughput_window", "output_throughput"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("spec", nargs="?", type=Path, default=SPEC)
    parser.add_argument("--windows", type=int, default=6, help="of each arm and shape")
    parser.add_argument("--requests", type=int, default=32)
    parser.add_argument("--concurrency", type=int, default=4)
    asked = parser.parse_args()
    data, folder = document.read(asked.spec).data, asked.spec.resolve().parent
    found: dict[str, list[dict[str, Figures]]] = {}
    for arm in PAIRED:
        with tempfile.TemporaryDirectory() as place, serving("vllm", data, folder, Path(place), arm) as served:
            found[arm] = list(windows(served.base, data, folder, asked))
    print(f"{asked.windows} windows of {asked.requests} requests an arm and shape, concurrency {asked.concurrency}")
    print("\n".join(table(found)))


def windows(base: str, data: dict[str, Any], folder: Path, asked: argparse.Namespace) -> Iterator[dict[str, Figures]]:
    """Figures of every shape, window by window, in turns; a first window is thrown away but for its pace."""
    release = releases.load(data["pair"]["engine"]["version"])
    assert release
    pace = asyncio.run(driven(base, load_of(data, folder, asked.requests, asked.concurrency)))[0]
    service = pace * asked.concurrency / asked.requests
    for number in range(1, asked.windows + 1):
        row: dict[str, Figures] = {}
        for shape in list(SHAPES)[:: 1 if number % 2 else -1]:
            load = load_of(data, folder, asked.requests, asked.concurrency, number, SHAPES[shape])
            if SHAPES[shape]:
                draw = Draw("stagger", number)
                load.stagger.extend(service * draw.unit() for _ in range(asked.concurrency))
            row[shape] = measured(base, load, release)
        print(number, {s: [row[s][m] for m in ("ttft_p50", "step_time", "arrival_bunching")] for s in row}, file=sys.stderr)
        yield row


def measured(base: str, load: drive.Load, release: Release) -> Figures:
    before = scrape.counters(page(base), release)
    seconds, records = asyncio.run(driven(base, load))
    counters = scrape.difference(before, scrape.counters(page(base), release))
    return figures({"concurrency": load.concurrency, "seconds": seconds, "counters": counters}, records)


def page(base: str) -> scrape.Page:
    with urllib.request.urlopen(f"{base}/metrics", timeout=10) as answer:
        return scrape.parse(answer.read().decode())


def table(found: dict[str, list[dict[str, Figures]]]) -> Iterator[str]:
    """A row per figure and arm, a column per shape, as a Markdown table; then pair / target."""
    yield "| | " + " | ".join(SHAPES) + " |"
    yield "|---|" + "---|" * len(SHAPES)
    for arm in PAIRED:
        for title, name in BUNCHED.items():
            means = [fmean(number(row[shape], name) for row in found[arm]) for shape in SHAPES]
            yield f"| {title}, {arm} | " + " | ".join(f"{mean:.2f}" for mean in means) + " |"
    for title, of in BENT.items():
        values = {arm: {shape: [_quotient(row[shape], of) for row in found[arm]] for shape in SHAPES} for arm in PAIRED}
        for arm in PAIRED:
            yield f"| {title}, {arm} | " + " | ".join(_interval(values[arm][shape]) for shape in SHAPES) + " |"
        both = [_divided(values["pair"][shape], values["target"][shape]) for shape in SHAPES]
        yield f"| {title}, pair / target | " + " | ".join(map(_interval, both)) + " |"


def _quotient(row: Figures, of: tuple[str, str]) -> float:
    return number(row, of[0]) / number(row, of[1])


def _divided(above: Sequence[float], below: Sequence[float]) -> list[float]:
    return [a / b for a, b in zip(above, below, strict=True)]


def _interval(values: Sequence[float]) -> str:
    value, low, high = interval_of(values, True, 0.95)
    return f"{value:.3f} [{low:.3f}, {high:.3f}]"


def number(row: Figures, name: str) -> float:
    value = row[name]
    assert value is not None, name
    return float(value)


if __name__ == "__main__":
    main()
