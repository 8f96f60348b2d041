"""The training text: the standard library's own sources, and text that repeats itself."""

from __future__ import annotations

import random
import sysconfig
from pathlib import Path

PACKAGES = (
    "", "asyncio", "collections", "concurrent", "email", "html", "http", "importlib", "json", "logging",
    "multiprocessing", "unittest", "urllib", "wsgiref", "xml", "xmlrpc", "zoneinfo",
)  # fmt: skip
HELD_OUT = 20  # every 20th file is never trained on
LINE_FORMS = (
    "{head} {field} {tail}\n",
    "- {head}: {field} {tail}\n",
    "[INFO] {head} {field}: {tail}\n",
    "{head}({field}, {tail})\n",
    '"{field}": "{head} {tail}",\n',
)


def stdlib_files() -> list[Path]:
    """The standard library's own modules (no tests, no generated data), in one fixed order."""
    root = Path(sysconfig.get_paths()["stdlib"])
    files = [path for package in PACKAGES for path in sorted((root / package).glob("*.py"))]
    return [path for path in files if not path.name.startswith("_sysconfigdata") and path.stat().st_size < 200_000]


def definitions(path: Path) -> list[str]:
    """One file's top-level statements, comments and docstrings included: what two blank lines separate."""
    text = path.read_text(encoding="utf-8", errors="replace")
    return [part.strip("\n") + "\n" for part in text.split("\n\n\n") if part.strip()]


def training_texts() -> list[list[str]]:
    """The definitions of each file that is trained on."""
    return [definitions(path) for i, path in enumerate(stdlib_files()) if i % HELD_OUT]


def held_out_files() -> list[Path]:
    """The files that are never trained on."""
    return stdlib_files()[::HELD_OUT]


def held_out_texts() -> list[str]:
    """The definitions of the files that are never trained on."""
    return [text for path in held_out_files() for text in definitions(path)]


def repetitive_texts(texts: list[str], count: int, seed: int) -> list[str]:
    """`count` long texts that repeat themselves: copied source, logs and lists, unrelated words; a third each."""
    pick = random.Random(seed)
    lines = [line for text in texts for line in text.splitlines() if line.strip()]
    words = sorted({word for line in lines[:20_000] for word in line.split() if word.isalpha()})
    draw = (_copied_block, _log_or_list, _unrelated_words)
    return [draw[i % 3](pick, lines if i % 3 == 0 else words) for i in range(count)]


def _copied_block(pick: random.Random, lines: list[str]) -> str:
    start = pick.randrange(len(lines) - 8)
    block = "\n".join(lines[start : start + pick.randint(1, 8)])
    return (block + pick.choice(["\n", "\n\n", "\n# again\n"])) * 12


def _log_or_list(pick: random.Random, words: list[str]) -> str:
    head, tail = (" ".join(pick.choices(words, k=pick.randint(1, 4))) for _ in range(2))
    cycle = pick.choices(words, k=pick.randint(1, 5))
    form = pick.choice(LINE_FORMS)
    return "".join(form.format(head=head, field=cycle[i % len(cycle)], tail=tail) for i in range(60))


def _unrelated_words(pick: random.Random, words: list[str]) -> str:
    """Nothing but copying predicts the second time these words come."""
    return (" ".join(pick.choices(words, k=pick.randint(6, 40))) + "\n") * 12
