"""What the records of a run add to its entry, for figures: distributions, acceptance along the answer, and the time line.

The entry is signed, the records are named in it by digest: records that are not those are never drawn.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from speclint.canonical import digest
from specrun import conclude, manifest, record, run
from specrun.arrival import OPEN, place
from specrun.errors import Refused
from specrun.evidence import Cell
from specrun.measure import MERGED_CHUNKS
from specrun.report.tables import Entry, ratio_rows
from specrun.run import Run
from specrun.tally import failure


class Span(NamedTuple):
    """A stretch of the run, in seconds since it began.

    `kind`: `start` of a server or measured `window`. `note`: why it is marked; empty if it is not.
    """

    row: str
    arm: str
    kind: str
    begin: float
    end: float
    what: str
    note: str


class Steps(NamedTuple):
    """Decode steps and the draft tokens accepted in them."""

    steps: int = 0
    accepted: int = 0

    def plus(self, other: Steps) -> Steps:
        return Steps(self.steps + other.steps, self.accepted + other.accepted)


Map = dict[tuple[int, int], Steps]  # (context length, answer position), each rounded down to its bin


@dataclass(slots=True)
class Recorded:
    """`durations`, `ttfts`: seconds by cell and arm, ascending. `positions`: acceptance by draft position and cell.

    `maps`: accepted tokens by context length and answer position, in tokens, per workload. `merged`: windows they leave out.
    """

    durations: dict[tuple[Cell, str], list[float]] = field(default_factory=lambda: defaultdict(list))
    ttfts: dict[tuple[Cell, str], list[float]] = field(default_factory=lambda: defaultdict(list))
    positions: dict[Cell, list[float]] = field(default_factory=dict)
    maps: dict[str, Map] = field(default_factory=lambda: defaultdict(dict))
    merged: int = 0
    spans: list[Span] = field(default_factory=list)


def found(entry: Entry, near: Path) -> Path | None:
    """The run folder of an entry where runs usually are: in `runs/` here or beside the file; None if it is another's."""
    folders = (place / "runs" / str(entry["id"]) for place in (Path(), near))
    return next((folder for folder in folders if not strange(entry, folder)), None)


def named(entry: Entry, records: Path) -> Path:
    """The run folder of an entry: `records` itself or the folder of that id in it. Raises Refused if it is not the signed one."""
    folders = (records, records / str(entry["id"]))
    folder = next((folder for folder in folders if (folder / "plan.json").exists()), folders[-1])
    if why := strange(entry, folder):
        raise Refused(f"no figures from {folder}: {why}", "name the folder of this run, or leave --records out")
    return folder


def strange(entry: Entry, folder: Path) -> str:
    """Why a folder does not hold the records that the entry names; nothing if it does."""
    try:
        files = manifest.read(folder)
    except (OSError, ValueError, KeyError, TypeError):
        return f"it has no readable {manifest.NAME}"
    if digest(files) != entry["records"]["manifest"]:
        return "its files are not those of this result"
    return "; ".join(manifest.differences(folder, files)[:3])


def recorded(entry: Entry, folder: Path) -> Recorded:
    """One pass over every window of a run folder that the judge counted."""
    made, out = run.load(folder), Recorded()
    positions: dict[Cell, list[list[float]]] = defaultdict(list)
    numbers = conclude.blocks(made)
    for info, path in conclude.read_windows(made):
        cell = (info["workload"], info["concurrency"])
        if not counts(entry, cell, numbers.index(info["block"])):
            continue
        steps: Map = {}
        figures = conclude.window_figures(made, info, _noted(out, made, info, path, steps))
        if info["arm"] == "pair":
            positions[cell].append(list(_rates(figures)))
            _add(out, info["workload"], steps, merged=_merged(figures))
    out.positions = {cell: [median(column) for column in zip(*rows, strict=True)] for cell, rows in positions.items()}
    for values in (*out.durations.values(), *out.ttfts.values()):
        values.sort()
    out.spans = list(spans(made))
    return out


def counts(entry: Entry, cell: Cell, index: int) -> bool:
    """Whether the judge counted a cell in the block of this index: a block without a mean duration was void."""
    row = ratio_rows(entry).get((*cell, "request_duration_mean"))
    return row is None or index >= len(row["blocks"]) or row["blocks"][index] is not None


def _rates(figures: Mapping[str, float | int | None]) -> Iterator[float]:
    """Acceptance by draft position: of delivered tokens where the method drafts at every step, else by the counters."""
    name = "acceptance_rate_" if "acceptance_rate_1" in figures else "acceptance_rate_counters_"
    position = 1
    while (rate := figures.get(f"{name}{position}")) is not None:
        yield rate
        position += 1


def _merged(figures: Mapping[str, float | int | None]) -> bool:
    """Whether the server merged steps into one chunk, so that chunks no longer show the steps."""
    steps, shown = figures.get("decode_steps"), figures.get("chunk_steps") or 0
    return steps is not None and abs(shown - steps) > MERGED_CHUNKS * steps


def _add(out: Recorded, workload: str, steps: Map, merged: bool) -> None:
    if merged:
        out.merged += 1
        return
    known = out.maps[workload]
    for at, own in steps.items():
        known[at] = known.get(at, Steps()).plus(own)


def _noted(out: Recorded, made: Run, info: dict[str, Any], path: Path, steps: Map) -> Iterator[dict[str, Any]]:
    """The records of a window, noted on their way to the figures."""
    key = (info["workload"], info["concurrency"]), info["arm"]
    natural = conclude.natural(made, info)
    k = made.data["pair"]["speculative"].get("num_speculative_tokens") or 1
    for request in record.read(path):
        if not failure(request, natural):
            began = request["due"] if info["concurrency"] == OPEN else request["sent"]
            out.durations[key].append(request["done"] - began)
            if not request["first_of_slot"]:
                out.ttfts[key].append(request["first"] - began)
            for position, accepted in uncut_steps(request, k):
                at = binned((request["tokens_in"] or 0) + position), binned(position)
                steps[at] = steps.get(at, Steps()).plus(Steps(1, accepted))
        yield request


def uncut_steps(request: Mapping[str, Any], k: int) -> Iterator[tuple[int, int]]:
    """(answer position, accepted tokens) of every decode step that the end of its answer could not cut short.

    The rule is that of the acceptance rate (`tally.py`): a step that begins with fewer than k + 1 tokens left to the limit
    may have accepted more than it delivered, and so may the last step of an answer that stopped by itself.
    """
    sizes = [count for _, count in request["chunks"] if count]
    position = sizes[0] if sizes else 0
    for count in sizes[1:-1] if request["finish_reason"] == "stop" else sizes[1:]:
        if request["max_tokens"] - position <= k:
            return
        yield position, count - 1
        position += count


def binned(tokens: int) -> int:
    """Lower end of the bin of a position: 0, 8, 16, 32, 64, … tokens."""
    return 0 if tokens < 8 else 1 << (tokens.bit_length() - 1)


def spans(made: Run) -> Iterator[Span]:
    """Server starts and windows of the whole run, also of tries that do not count."""
    began = _seconds(made.plan["started"])
    for path in sorted(made.folder.glob("*/**/start.json")):
        start = json.loads(path.read_text(encoding="utf-8"))
        ready = _seconds(start["time"]) - began
        yield Span(_row(path, made), start["arm"], "start", ready - start["ready_after_s"], ready, "server start", "")
    for path in sorted(made.folder.glob("b*/*/*/window.json")):
        info = json.loads(path.read_text(encoding="utf-8"))
        begin = _seconds(info["started"]) - began
        what = f"{info['workload']} {place(info['concurrency'], 'concurrency ')}"
        yield Span(_row(path, made), info["arm"], "window", begin, begin + info["seconds"], what, _mark(path, info, made))


def _row(path: Path, made: Run) -> str:
    top = path.relative_to(made.folder).parts[0].partition(".")[0]
    return f"block {int(top[1:])}" if top[1:].isdigit() else "first starts" if top == "first" else top


def _mark(path: Path, info: Mapping[str, Any], made: Run) -> str:
    if ".void" in path.relative_to(made.folder).parts[0]:
        return "block repeated or interrupted: this try does not count"
    return str(info.get("void") or ("the engine compiled inside it" if info.get("compiled") else ""))


def _seconds(time: str) -> float:
    return datetime.fromisoformat(time).timestamp()
