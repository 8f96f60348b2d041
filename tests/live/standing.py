"""Real vLLM for runs that provoke a fault: servers that outlast a run, and the smallest run that shows one."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stand_in_run import engine_facts

from speclint import document
from specrun import launch, plan, record, run, session
from specrun.launch import Server
from specrun.run import Run

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
REQUESTS = 32
MOST = 3


@dataclass(slots=True)
class Standing:
    """Servers by command: a start takes half a minute, so one that a run leaves alive serves the next run too.

    Each holds 2.5 GiB: no more than `MOST` are kept, the one used last at the end.
    """

    folder: Path
    running: dict[str, tuple[Server, ExitStack]] = field(default_factory=dict)

    @contextmanager
    def server(self, argv: list[str], env: dict[str, str], socket: Path, log: Path, *, healthy: Any) -> Iterator[Server]:
        """In the place of `launch.server`; a server that died is started again."""
        command = json.dumps([argv[:-1], env])
        if command in self.running and not self.running[command][0].alive():
            self.end(command)
        self.running[command] = self.running.pop(command, None) or self.started(argv[:-1], env, healthy)
        found, _ = self.running[command]
        log.parent.mkdir(parents=True, exist_ok=True)
        log.symlink_to(found.log)
        yield found

    def started(self, words: list[str], env: dict[str, str], healthy: Any) -> tuple[Server, ExitStack]:
        while len(self.running) >= MOST:
            self.end(next(iter(self.running)))
        number = sum(1 for _ in self.folder.glob("*.log"))
        socket, log, stack = self.folder / f"{number}.sock", self.folder / f"{number}.log", ExitStack()
        return stack.enter_context(launch.server([*words, str(socket)], env, socket, log, healthy=healthy)), stack

    def end(self, command: str) -> None:
        self.running.pop(command)[1].close()

    def end_all(self) -> None:
        for command in list(self.running):
            self.end(command)

    def pair(self) -> Server:
        """The one that speculates and was used last."""
        return next(one for command, (one, _) in reversed(self.running.items()) if "--speculative-config" in command)


def smallest(**changes: dict[str, Any]) -> dict[str, Any]:
    """The draft example with one block of one cell; `changes` go into sections of pair and protocol, by name."""
    data: dict[str, Any] = document.read(EXAMPLES / "tiny-draft.spec.yaml").data
    protocol = data["protocol"]
    protocol["workloads"] = [one for one in protocol["workloads"] if one["id"] == "varied"]
    protocol["load"] |= {"concurrency": [4], "requests": REQUESTS}
    protocol["design"] |= {"blocks": 1, "warmup": 1}
    protocol["criteria"] = []
    for name, change in changes.items():
        place = data["pair"] if name in data["pair"] else protocol
        place[name] |= change
    return data


def prepared(folder: Path, data: dict[str, Any]) -> Run:
    """A run of it whose unmeasured first starts are over."""
    made = run.create(EXAMPLES / "tiny-draft.spec.yaml", data, [], engine_facts(), folder / "runs", sys.executable)
    pace = {cell.name: 0.05 for cell in plan.cell_order(data, 1)}
    record.write_json(made.folder / "first.json", {"request_duration_s": pace})
    return made


def established(made: Run) -> tuple[int, dict[str, tuple[str, str]]]:
    """Measure it: exit status of `--only-establish`, and outcome and words of every check."""
    status = session.measured(made, key=None, signer=None, quiet=True, only_establish=True)
    found = json.loads((made.folder / "establishment.json").read_text(encoding="utf-8"))
    return status, {row["check"]: (row["outcome"], row["detail"]) for row in found["checks"]}


def records(made: Run, arm: str, block: str = "b01") -> list[dict[str, Any]]:
    """The records of an arm's window, by index, as far as they were written."""
    path = made.folder / block / arm / "c4-varied" / "records.jsonl"
    return sorted(record.read(path), key=lambda row: int(row["index"]))
