"""Prompts of a spec's workloads: two generators and prompt files.

Everything here is text and integers, decided by the spec alone: the same spec gives the same bytes on every machine and
Python release (draws come from SHA-256 of seed and counter, not from `random`). The lock holds one digest per block, so
a changed generator cannot pass unnoticed. The linter needs these digests and the runner needs the prompts, which is why
the module lies on the linter's side.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from speclint.canonical import digest

T = TypeVar("T")


class WorkloadError(Exception):
    """A prompt file that is missing, unreadable or not what the spec says."""


class Prompt(NamedTuple):
    """One request's input: text or chat messages, and the answer's limit in tokens."""

    content: str | list[dict[str, Any]]
    max_tokens: int


class Draw:
    """Integers drawn by seed: SHA-256 of the seed and a counter, 8 bytes each."""

    def __init__(self, *seed: object) -> None:
        self._seed = json.dumps(seed).encode()
        self._count = 0

    def below(self, n: int) -> int:
        """An integer in [0, n); the bias of the modulo is below n / 2**64."""
        self._count += 1
        raw = hashlib.sha256(self._seed + self._count.to_bytes(8, "big")).digest()
        return int.from_bytes(raw[:8], "big") % n

    def one_of(self, items: Sequence[T]) -> T:
        return items[self.below(len(items))]

    def unit(self) -> float:
        """A number in [0, 1) with 53 bits."""
        return self.below(1 << 53) / (1 << 53)


NAMES = (
    "alpha beta gamma delta width height count index total offset buffer cursor header footer parent child left right "
    "source target first last limit state queue token reader writer client server socket event timer record field"
).split()
VERBS = "load save read write open close find parse build check merge split apply reset update remove insert".split()
MODULES = ("os", "re", "sys", "json", "time", "socket", "struct", "threading")
LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")
SUBJECTS = (
    "a cache that evicts the entry used least recently",
    "the difference between a process and a thread",
    "how a binary search tree stays balanced",
    "a function that merges two sorted lists",
    "why floating point addition is not associative",
    "the history of the printing press in three sentences",
    "a recipe for bread with four ingredients",
    "a letter that declines an invitation politely",
    "how tides depend on the moon",
    "a test plan for a payment form",
    "the rules of a simple card game",
    "an SQL query that finds duplicate rows",
    "what happens when a web page is requested",
    "a shell script that rotates log files",
    "the causes of inflation in plain words",
    "how vaccines train the immune system",
)
FORMS = ("Explain", "Describe briefly", "Write down", "Give an example of", "Outline", "Argue about", "Summarise")
AUDIENCES = ("a beginner", "an engineer", "a child of ten", "a reviewer", "someone in a hurry", "a translator")


def _entries(draw: Draw) -> str:
    name, key = draw.one_of(NAMES), draw.one_of(NAMES)
    lines = [f'    {{"{key}": {i}, "name": "{name}_{i}", "enabled": True}},' for i in range(4 + draw.below(5))]
    return f"{name.upper()} = [\n" + "\n".join(lines) + "\n"


def _log(draw: Draw) -> str:
    level, name, verb = draw.one_of(LEVELS), draw.one_of(NAMES), draw.one_of(VERBS)
    start = draw.below(50)
    lines = [f"{level}: {verb} {name} {start + i} of {start + 40} done" for i in range(4 + draw.below(5))]
    return "\n".join(lines) + "\n"


def _assignments(draw: Draw) -> str:
    head = f"def __init__(self, {draw.one_of(NAMES)}):\n"
    names = [draw.one_of(NAMES) for _ in range(5 + draw.below(4))]
    return head + "".join(f"        self.{n} = {n}\n" for n in names)


def _copy(draw: Draw) -> str:
    verb, name = draw.one_of(VERBS), draw.one_of(NAMES)
    body = f"    def {verb}_{name}(self, {name}):\n        return self.{name}.{verb}({name})\n\n"
    return "class Old:\n" + body * 2 + "class New:\n" + body + f"    def {verb}_{name}"


def _repetitive(draw: Draw) -> str:
    return draw.one_of((_entries, _log, _assignments, _copy))(draw)


def _function(draw: Draw) -> str:
    verb, a, b, c = draw.one_of(VERBS), draw.one_of(NAMES), draw.one_of(NAMES), draw.one_of(NAMES)
    lines = [f"def {verb}_{a}({a}, {b}=None):", f'    """{verb.title()} the {a} of each {b}, {c} first.']
    for _ in range(draw.below(5)):
        lines.append(f"    The {draw.one_of(NAMES)} is {draw.one_of(VERBS)} before the {draw.one_of(NAMES)} is known.")
    return "\n".join([*lines, '    """', "    "])


def _question(draw: Draw) -> str:
    text = f"{draw.one_of(FORMS)} {draw.one_of(SUBJECTS)} for {draw.one_of(AUDIENCES)}."
    for _ in range(draw.below(5)):
        form, subject, name = draw.one_of(FORMS).lower(), draw.one_of(SUBJECTS), draw.one_of(NAMES)
        text += f" Then {form} {subject}, and say how the {name} matters."
    return text + "\n"


def _module(draw: Draw) -> str:
    imports = sorted({draw.one_of(MODULES) for _ in range(3)})
    names = [draw.one_of(NAMES) for _ in range(3)]
    lines = [f"import {n}" for n in imports]
    lines += ["", f"class {names[0].title()}{names[1].title()}:", f'    """A {names[0]} with a {names[1]}."""', ""]
    for _ in range(draw.below(4)):
        lines.append(f"    {draw.one_of(NAMES)} = {draw.one_of(('None', '0', 'True', '[]', '{}'))}")
    return "\n".join([*lines, f"    def {draw.one_of(VERBS)}(self, {names[2]}):", "        "])


def _varied(draw: Draw) -> str:
    return draw.one_of((_function, _question, _module))(draw)


GENERATORS: dict[str, tuple[str, Callable[[Draw], str]]] = {
    "repetitive": ("repetitive/1", _repetitive),
    "varied": ("varied/1", _varied),
}


def generator_version(workload: dict[str, Any]) -> str:
    """Name and version of the workload's generator, or `file`."""
    name = workload["prompts"].get("generator")
    return GENERATORS[name][0] if name else "file"


def is_private(workload: dict[str, Any]) -> bool:
    """Whether only digests of the workload's prompts may be kept with a run."""
    return bool(workload["prompts"].get("private", False))


def lengths(output: dict[str, Any], count: int, *seed: object) -> list[int]:
    """`max_tokens` of each prompt: drawn from tokens × (1 ± spread), at least 1. Unit: tokens."""
    draw, middle, spread = Draw("length", *seed), int(output["tokens"]), float(output.get("spread", 0))
    return [max(1, round(middle * (1 + spread * (2 * draw.unit() - 1)))) for _ in range(count)]


def read_file(workload: dict[str, Any], protocol: dict[str, Any], folder: Path) -> list[str | list[dict[str, Any]]]:
    """Prompts of a JSON Lines file, in file order. Raises WorkloadError if it is missing, not as described or chat messages."""
    path = folder / workload["prompts"]["file"]
    try:
        source = path.read_bytes()
    except OSError as error:
        raise WorkloadError(f"prompt file {path} cannot be read: {error.strerror}") from error
    found = hashlib.sha256(source).hexdigest()
    if found != workload["prompts"]["sha256"]:
        raise WorkloadError(f"prompt file {path} has sha256 {found}, the spec says {workload['prompts']['sha256']}")
    rows = [_line(path, number, line) for number, line in enumerate(source.splitlines(), 1) if line.strip()]
    if not rows:
        raise WorkloadError(f"prompt file {path} holds no prompt")
    if protocol["request"]["endpoint"] == "completions" and any(isinstance(row, list) for row in rows):
        raise WorkloadError(f"prompt file {path} holds chat messages, the spec's endpoint is completions; write endpoint: chat")
    return rows


def _line(path: Path, number: int, line: bytes) -> str | list[dict[str, Any]]:
    try:
        row = json.loads(line)
        content: str | list[dict[str, Any]] = row["messages"] if "messages" in row else row["prompt"]
        if not isinstance(content, list if "messages" in row else str):
            raise TypeError(content)
    except (ValueError, KeyError, TypeError) as error:
        raise WorkloadError(f'{path}:{number}: not {{"prompt": "text"}} or {{"messages": […]}}') from error
    return content


def unmatched(protocol: dict[str, Any]) -> str:
    """Which list of numbers has not one for every level of concurrency; empty if there is none such."""
    levels = len(protocol["load"]["concurrency"])
    lists = {"load.requests": protocol["load"]["requests"], "design.warmup": protocol["design"]["warmup"]}
    wrong = (f"{name} has {len(row)} for {levels}" for name, row in lists.items() if isinstance(row, list) and len(row) != levels)
    return next(wrong, "")


def requests_at(protocol: dict[str, Any], level: int | str) -> int:
    """Measured requests of a window at a level of concurrency; in open loop as many as the level with most has.

    Raises ValueError if `load.requests` is a list without a number for every level.
    """
    return _at(protocol, protocol["load"]["requests"], level)


def warmup_at(protocol: dict[str, Any], level: int | str) -> int:
    """Unmeasured requests before a window at a level of concurrency; in open loop as before the level with most.

    Raises ValueError if `design.warmup` is a list without a number for every level.
    """
    return _at(protocol, protocol["design"]["warmup"], level)


def most_requests(protocol: dict[str, Any]) -> int:
    """Prompts of one workload and block: what the window with most requests sends."""
    return max(_numbers(protocol["load"]["requests"]))


def _numbers(wanted: int | list[int]) -> list[int]:
    return [wanted] if isinstance(wanted, int) else wanted


def _at(protocol: dict[str, Any], wanted: int | list[int], level: int | str) -> int:
    if isinstance(wanted, int):
        return wanted
    of_levels: dict[int | str, int] = dict(zip(protocol["load"]["concurrency"], wanted, strict=True))
    return of_levels.get(level, max(wanted))


def fresh(workload: dict[str, Any], protocol: dict[str, Any], folder: Path) -> bool:
    """Whether every block has its own prompts; a file must be long enough for a part per block and the warm-up."""
    if protocol["design"].get("prompts", "fresh") == "same":
        return False
    if "generator" in workload["prompts"]:
        return True
    design = protocol["design"]
    needed = int(design["blocks"]) * most_requests(protocol) + max(_numbers(design["warmup"]))
    return len(read_file(workload, protocol, folder)) >= needed


def block_prompts(workload: dict[str, Any], protocol: dict[str, Any], folder: Path, block: int) -> list[Prompt]:
    """The measured prompts of one block (from 1), the same for every arm: a level with fewer requests sends the first of them."""
    count = most_requests(protocol)
    number = block if fresh(workload, protocol, folder) else 0
    seed = workload["prompts"].get("seed", 0)
    if "generator" in workload["prompts"]:
        make = GENERATORS[workload["prompts"]["generator"]][1]
        contents: list[Any] = [make(Draw(workload["id"], seed, number, i)) for i in range(count)]
    else:
        rows = read_file(workload, protocol, folder)
        start = (number - 1) * count if number else 0
        contents = [rows[(start + i) % len(rows)] for i in range(count)]
    limits = lengths(workload["output"], count, workload["id"], seed, number)
    return [Prompt(content, limit) for content, limit in zip(contents, limits, strict=True)]


def warmup_prompts(workload: dict[str, Any], protocol: dict[str, Any], folder: Path, cell: str, count: int) -> list[Prompt]:
    """`count` unmeasured prompts before a cell; a generator draws others than any block's."""
    seed = workload["prompts"].get("seed", 0)
    if "generator" in workload["prompts"]:
        make = GENERATORS[workload["prompts"]["generator"]][1]
        contents: list[Any] = [make(Draw(workload["id"], seed, "warmup", cell, i)) for i in range(count)]
    else:
        rows = read_file(workload, protocol, folder)
        contents = [rows[-1 - i % len(rows)] for i in range(count)]
    limits = lengths(workload["output"], count, workload["id"], seed, "warmup")
    return [Prompt(content, limit) for content, limit in zip(contents, limits, strict=True)]


def prompts_digest(prompts: Sequence[Prompt]) -> str:
    """`sha256:…` of the RFC 8785 form of [[content, max_tokens], …]."""
    return digest([[p.content, p.max_tokens] for p in prompts])


def prompt_digests(workload: dict[str, Any], protocol: dict[str, Any], folder: Path) -> list[str]:
    """One digest per block, in block order."""
    blocks = range(1, protocol["design"]["blocks"] + 1)
    return [prompts_digest(block_prompts(workload, protocol, folder, b)) for b in blocks]
