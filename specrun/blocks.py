"""The measuring part of a run: first starts, blocks of windows, and answers scored by target and draft alone."""

from __future__ import annotations

import asyncio
import json
import os
import re
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from speclint.credentials import redacted
from speclint.releases import Release
from speclint.workload import Draw, Prompt, block_prompts, is_private, requests_at, warmup_at, warmup_prompts
from specrun import device, draft, drive, host, manifest, matched, plan, record, scores, scrape, start
from specrun.arrival import OPEN, due_times
from specrun.errors import Refused
from specrun.launch import Server, ServerFailed, cause, server, socket_folder
from specrun.plan import Cell
from specrun.progress import Progress
from specrun.prompts import keep as keep_prompts
from specrun.run import Run, alone, kept_in, now

# A line that says the engine compiled something. Inside a measured window it makes the whole block be repeated once.
BUSY = "the server was still busy when its counters were read"
COMPILED = re.compile(r"JIT compilation during inference|Compiling a graph|torch\.compile takes|Capturing CUDA graphs")


def measure(run: Run, progress: Progress, blocks: int | None = None) -> None:
    """Every block that is not finished yet (or only the first `blocks`), after the unmeasured first start of each arm."""
    busy = device.held(run.data["pair"], run.plan["id"], run.plan["spec_file"])
    with kept_in(run.folder), alone(run.folder), busy, socket_folder(run.plan["id"]) as sockets:
        manifest.open_still(run.folder)
        session, began = _Session(run, sockets, progress), time.monotonic()
        if not (run.folder / "first.json").exists():
            session.first_starts()
        numbers = open_blocks(run, blocks)
        if numbers and (run.folder / scores.FOLDER).exists():
            set_aside(run.folder / scores.FOLDER)  # of fewer blocks: `--only-establish`, or a last block that was broken off
        session.blocks(numbers)
        session.remaining_scores()
        progress.line(beside(time.monotonic() - began, session.busy_s))


def set_aside(folder: Path) -> None:
    """Keep what an interrupted or repeated try left, marked void."""
    number = sum(1 for _ in folder.parent.glob(f"{folder.name}.void*")) + 1
    folder.rename(folder.with_name(f"{folder.name}.void{number}"))


def beside(wall_s: float, busy_s: float) -> str:
    """How much of the wall time went into anything but starting and stopping servers, warm-up and requests."""
    rest = wall_s - busy_s
    return f"{wall_s:.0f} s, of which {rest:.0f} s ({rest / wall_s:.1%}) beside starts and stops of servers, warm-up and requests"


def open_blocks(run: Run, last: int | None = None) -> list[int]:
    """Numbers of the blocks that are not finished yet, up to `last` (default: all)."""
    numbers = range(1, 1 + (last or int(run.data["protocol"]["design"]["blocks"])))
    return [block for block in numbers if not (run.block_folder(block) / "block.json").exists()]


def steps(run: Run, last: int | None = None) -> int:
    """Server starts and windows that are still to come up to block `last` (default: all), for the progress line."""
    first, blocks = int(not (run.folder / "first.json").exists()), len(open_blocks(run, last))
    starts = first + (blocks if plan.servers(run.data) == "restart" else min(blocks, 1))
    windows = (first + blocks) * len(plan.cell_order(run.data, 1))
    draft_alone = int(plan.draft_alone(run.data) and scores.due(run, "draft"))
    target_again = int(scores.due(run, "target") and not scored_on_the_way(run, last))
    return len(plan.arms(run.data)) * (starts + windows) + draft_alone + target_again


def scored_on_the_way(run: Run, last: int | None = None) -> bool:
    """Whether the target's last start of the run is still to come, up to block `last`, with answers of the pair to score."""
    to_come, left = open_blocks(run, last), open_blocks(run)
    resident = plan.servers(run.data) == "resident"
    return bool(to_come) and to_come == left and (resident or int(run.data["protocol"]["design"]["blocks"]) > 1)


@dataclass(slots=True)
class _Session:
    run: Run
    sockets: Path
    progress: Progress
    busy_s: float = 0.0

    @contextmanager
    def started(self, arm: str, folder: Path, label: str) -> Iterator[Server]:
        """One arm's server, with `start.json` and `server.log` in `folder`; the memory it ended with is added at the end."""
        run, socket = self.run, self.sockets / f"{arm}.sock"
        match = matching(run, arm)
        words = [*plan.argv(run.data, arm, run.spec_folder, run.plan["python"], socket), *match["flags"]]
        env = plan.environment(run.data) | match["env"]
        self.progress.step(f"{label}: starting {arm}")
        with server(words, env | plan.secrets(), socket, folder / "server.log", healthy=start.healthy) as running:
            found = asyncio.run(start.facts(running, run.release, self.minimal(), run.data["pair"]))
            found = redacted({"arm": arm, "time": now(), "argv": words, "env": env, **found})
            record.write_json(folder / "start.json", found)
            self.progress.finished()
            yield running
            found["memory_end_bytes"] = start.memory(running, run.data["pair"])
            record.write_json(folder / "start.json", found)
            if arm == "target" and scores.finished(run) and len(open_blocks(run)) < 2 and scores.due(run, "target"):
                self.scored("target", running)  # its last start: what it did is measured, and the pair's answers are there
        self.busy_s += running.ready_after_s + running.stopped_after_s

    def first_starts(self) -> None:
        """Start every arm once and drive it through every cell, unmeasured: fills compile caches and shows the pace.

        The pace of the target decides by how much first sends are staggered, the same in every arm and block.
        """
        pace: dict[str, float] = {}
        for arm in plan.arms(self.run.data):
            folder = self.fresh_folder(self.run.folder / "first" / arm)
            with self.started(arm, folder, "first start, unmeasured") as running:
                for cell in plan.cell_order(self.run.data, 1):
                    self.progress.step(f"first start, unmeasured: {arm} {cell.name}")
                    seconds = self.unmeasured(running, cell, "first")
                    self.progress.finished()
                    if arm == "target":
                        pace[cell.name] = seconds
        record.write_json(self.run.folder / "first.json", {"request_duration_s": pace})
        self.progress.milestone("first starts done")

    def remaining_scores(self) -> None:
        """Have answers scored by the servers that no block had running: the target, if need be, and the draft alone."""
        run, socket = self.run, self.sockets / "alone.sock"
        commands = {"target": plan.argv(run.data, "target", run.spec_folder, run.plan["python"], socket)}
        if plan.draft_alone(run.data):
            commands["draft"] = draft.command(run.data, run.spec_folder, run.plan["python"], socket)
        for name, words in commands.items():
            if not scores.due(run, name):
                continue
            self.progress.step(f"unmeasured: starting {name} alone")
            log, env = run.folder / scores.FOLDER / f"{name}.log", plan.environment(run.data) | plan.secrets()
            try:
                with server(words, env, socket, log, healthy=start.healthy) as running:
                    self.scored(name, running)
                self.busy_s += running.ready_after_s + running.stopped_after_s
            except ServerFailed as error:
                scores.spoiled(run, name, f"the {name} cannot be served alone: {error.message}")
            self.progress.finished()

    def scored(self, name: str, running: Server) -> None:
        """Score answers, unmeasured, on a server that has nothing else to do any more."""
        self.progress.step(f"unmeasured: {name} scores answers")
        began = time.monotonic()
        (scores.by_target if name == "target" else scores.by_draft)(self.run, running.socket)
        self.busy_s += time.monotonic() - began

    def unmeasured(self, running: Server, cell: Cell, salt: str) -> float:
        """Drive warm-up requests through a cell. Returns their mean duration in seconds, 0 in open loop."""
        load = self.load(cell, salt, 0)
        count = len(load.prompts)
        if not count:
            return 0.0
        with Path("/dev/null").open("w", encoding="utf-8") as nowhere:
            seconds = asyncio.run(drive.window(running.socket, load, nowhere, lambda _: None))
        self.busy_s += seconds
        self.still_alive(running)
        return seconds * min(load.concurrency, count) / count

    def load(self, cell: Cell, salt: str, block: int) -> drive.Load:
        """The load of one window: measured prompts of a block, or warm-up prompts if the block is 0."""
        run, protocol = self.run, self.run.data["protocol"]
        workload = run.workload(cell.workload)
        prompts = (
            block_prompts(workload, protocol, run.spec_folder, block)[: requests_at(protocol, cell.concurrency)]
            if block
            else warmup_prompts(workload, protocol, run.spec_folder, f"{salt} {cell.name}", warmup_at(protocol, cell.concurrency))
        )
        stop, request = workload["output"]["stop"], protocol["request"]
        if cell.concurrency == OPEN:
            due = due_times(protocol["arrival"], len(prompts), block or salt, cell.workload)
            return drive.Load(prompts, 0, request, protocol["sampling"], stop, due=due, private=is_private(workload))
        stagger = self.stagger(cell, cell.concurrency, block) if block else []
        return drive.Load(prompts, cell.concurrency, request, protocol["sampling"], stop, stagger, private=is_private(workload))

    def minimal(self) -> drive.Load:
        """The load of the minimal exchange, which is kept whole: a warm-up prompt, or our own where prompts are private."""
        load = self.load(run_cell(self.run, 1), "warmup", 0)
        return replace(load, prompts=[Prompt("One, two, three,", 8)]) if load.private else load

    def stagger(self, cell: Cell, slots: int, block: int) -> list[float]:
        """Seconds after which each slot sends first: seeded, over one service time of the target, equal in all arms."""
        pace = json.loads((self.run.folder / "first.json").read_text(encoding="utf-8"))["request_duration_s"][cell.name]
        draw = Draw("stagger", self.run.plan["digest"], block, cell.name)
        return [round(draw.unit() * pace, 6) for _ in range(slots)]

    def blocks(self, numbers: list[int]) -> None:
        with ExitStack() as resident:
            servers: dict[str, Server] = {}
            if numbers and plan.servers(self.run.data) == "resident":
                folder = self.fresh_folder(self.run.folder / "resident")
                for arm in plan.arms(self.run.data):
                    servers[arm] = resident.enter_context(self.started(arm, folder / arm, "resident"))
            for block in numbers:
                self.block(block, servers)

    def block(self, block: int, servers: dict[str, Server]) -> None:
        """One block; a compile inside a measured window repeats it whole, once. Both tries are kept, the second counts."""
        keep_prompts(self.run.folder, self.run.data, self.run.spec_folder, block)
        for attempt in (1, 2):
            folder = self.fresh_folder(self.run.block_folder(block))
            compiled = self.arms_of_block(block, attempt, folder, servers)
            if not compiled or attempt == 2:
                record.write_json(folder / "block.json", {"block": block, "try": attempt, "compiled": compiled})
                break
            self.progress.line(
                f"block {block}: the engine compiled inside {', '.join(compiled)}; the whole block is repeated once"
            )
        self.progress.milestone(f"block {block} of {self.run.data['protocol']['design']['blocks']} done")

    def fresh_folder(self, folder: Path) -> Path:
        """An empty folder of that name; what an interrupted or repeated try left is kept beside it, marked void."""
        if folder.exists():
            set_aside(folder)
        folder.mkdir(parents=True)
        return folder

    def arms_of_block(self, block: int, attempt: int, folder: Path, servers: dict[str, Server]) -> list[str]:
        """Every arm's windows of one block, in the block's order. Returns the windows in which the engine compiled."""
        compiled: list[str] = []
        for arm in plan.arm_order(self.run.data, block):
            with ExitStack() as stack:
                running = servers.get(arm) or stack.enter_context(self.started(arm, folder / arm, f"block {block}"))
                for cell in plan.cell_order(self.run.data, block):
                    if self.window(running, block, attempt, arm, cell, folder / arm / cell.name):
                        compiled.append(f"{arm} {cell.name}")
        return compiled

    def window(self, running: Server, block: int, attempt: int, arm: str, cell: Cell, folder: Path) -> bool:
        """One measured window. Returns whether the engine's log shows a compile inside it."""
        label = f"block {block}: {arm} {cell.name}"
        self.progress.step(label + " (warm-up)")
        folder.mkdir(parents=True, exist_ok=True)
        self.unmeasured(running, cell, f"block {block}")
        load = self.load(cell, "", block)
        self.progress.step(label)
        offset = running.log_size()
        with (folder / "records.jsonl").open("w", encoding="utf-8", buffering=1) as out:
            found = asyncio.run(_measured(running, load, self.run.release, out, self.progress))
            os.fsync(out.fileno())
        self.busy_s += found["seconds"]
        self.still_alive(running)
        compiled = bool(COMPILED.search(running.log_since(offset)))
        records = folder / "records.jsonl"
        head = {"block": block, "arm": arm, "try": attempt, "workload": cell.workload, "concurrency": cell.concurrency}
        tail = {"compiled": compiled, "records": {"path": records.name, "sha256": record.file_digest(records)}}
        record.write_json(folder / "window.json", head | {"requests": len(load.prompts)} | found | tail)
        self.progress.finished()
        return compiled

    def still_alive(self, running: Server) -> None:
        if not running.alive():
            raise ServerFailed(
                f"the server ended by itself with status {running.process.returncode}: {cause(running.log)}",
                f"the whole log: {running.log}; what was measured is kept: `specrun run --resume {self.run.folder.name}`",
            )


def matching(run: Run, arm: str) -> dict[str, Any]:
    """What `matched` is started with beside the target's own words, from the first starts of target and pair.

    Empty for the other arms. Raises Refused where speculation changed nothing that could be matched.
    """
    if arm != "matched":
        return {"flags": [], "env": {}, "unset": []}
    target, pair = (_first_start(run, name) for name in ("target", "pair"))
    found = matched.derive(target, pair, run.data["pair"].get("engine_args", {}), run.release)
    if not found["flags"] and not found["env"]:
        hint = "`aa` is what measures the noise; leave `matched` out of design.controls"
        raise Refused(f"nothing is left to match: pair and target run alike on this device {found['unset'] or ''}".strip(), hint)
    record.write_json(run.folder / "first" / "matched.json", found)
    return found


def _first_start(run: Run, arm: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((run.folder / "first" / arm / "start.json").read_text(encoding="utf-8"))
    return found


def run_cell(run: Run, block: int) -> Cell:
    """The first cell of a block: its warm-up prompts are used for the minimal exchange."""
    return plan.cell_order(run.data, block)[0]


async def _measured(running: Server, load: drive.Load, release: Release, out: Any, progress: Progress) -> dict[str, Any]:
    talk = start.Talk(running.socket)
    with start.answering(running):
        first = await talk.idle_page()
    machine, cpu, own = host.state(), host.cpu_seconds(running.pid), time.process_time()
    began = now()
    watch = drive.Watch()

    def count(sent: record.Record) -> None:
        watch.count(sent)
        progress.requests(watch.sends, len(load.prompts))

    async with drive.watched(watch):
        seconds = await drive.window(running.socket, load, out, count)
    own_cpu = time.process_time() - own
    spent = {role: round(s - cpu[role], 3) for role, s in host.cpu_seconds(running.pid).items()}
    with start.answering(running):
        last = await talk.idle_page()
    before, after = scrape.counters(first, release), scrape.counters(last, release)
    return {
        "started": began,
        "seconds": round(seconds, 6),
        "stagger": load.stagger,
        "void": BUSY if any(map(scrape.running, (first, last))) else watch.complaint(seconds),
        "client_late": watch.summary(seconds),
        "counters": scrape.difference(before, after),
        "client_cpu_s": round(own_cpu, 3),
        "server_cpu_s": spent,
        "host": machine,
    }
