"""Write varied.jsonl: 120 different openings of library source, 20 to 150 tokens each.

    python examples/prompts/make_varied.py examples/models/tiny-target/tokenizer.json examples/prompts/varied.jsonl

The openings come from modules that the example models were never trained on.
"""

from __future__ import annotations

import ast
import json
import random
import sys
from itertools import pairwise
from pathlib import Path
from textwrap import dedent

from tokenizers import Tokenizer

sys.path.insert(0, str(Path(__file__).parents[1] / "models"))
from corpus import held_out_files

SEED = 11
PROMPTS = 120
SHORTEST, LONGEST = 20, 150  # tokens


def repeats_itself(ids: list[int]) -> bool:
    """True if more than one pair of neighbouring tokens in twenty stood there before."""
    return len(ids) - 1 - len(set(pairwise(ids))) > len(ids) / 20


def opening(tokenizer: Tokenizer, text: str, length: int) -> str | None:
    """The first `length` tokens of `text` or all of it; None if that is short, repeats itself or breaks a character."""
    ids = tokenizer.encode(text, add_special_tokens=False).ids[:length]
    if len(ids) < SHORTEST or repeats_itself(ids):
        return None
    prompt = tokenizer.decode(ids)
    return prompt if text.startswith(prompt) else None


def openings(path: Path) -> list[str]:
    """The source of each function and class of a module, at the left margin, and the prose of each docstring."""
    source = path.read_text(encoding="utf-8")
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            code = ast.get_source_segment(source, node, padded=True) or ""
            found += [dedent(code), ast.get_docstring(node) or ""]
    return found


def varied_prompts(tokenizer: Tokenizer) -> list[str]:
    pick = random.Random(SEED)
    candidates = [text for path in held_out_files() for text in openings(path)]
    pick.shuffle(candidates)
    drawn = (opening(tokenizer, text, pick.randint(SHORTEST, LONGEST)) for text in candidates)
    different = {prompt[:40]: prompt for prompt in drawn if prompt}
    return list(different.values())[:PROMPTS]


def main(tokenizer: str, out: str) -> None:
    lines = [json.dumps({"prompt": prompt}, ensure_ascii=False) for prompt in varied_prompts(Tokenizer.from_file(tokenizer))]
    Path(out).write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
