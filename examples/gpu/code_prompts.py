"""Write prompts of library code that the deep pair was not trained on: beginnings of functions of the held-out packages.

    python code_prompts.py 2200 > code-prompts.jsonl

The committed file was made by CPython 3.11.7; text under the PSF licence. Its sha256 stands in the specs.
"""

from __future__ import annotations

import ast
import json
import random
import sys
from collections.abc import Iterator

from train_pair import held_out, modules

LINES, SEED = 3, 20261201


def beginnings() -> Iterator[str]:
    """The first lines of every function, decorators left out."""
    for path in filter(held_out, modules()):
        text = path.read_text(encoding="utf-8", errors="replace")
        lines = text.splitlines(keepends=True)
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                last = min(node.lineno - 1 + LINES, node.end_lineno or node.lineno)
                yield "".join(lines[node.lineno - 1 : last])


def main(count: int) -> None:
    found = sorted(set(beginnings()))
    random.Random(SEED).shuffle(found)
    assert len(found) >= count, f"only {len(found)} functions"
    for text in found[:count]:
        print(json.dumps({"prompt": text}))


if __name__ == "__main__":
    main(int(sys.argv[1]))
