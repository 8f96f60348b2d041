"""SL302 token-ids-differ: in shared mode the same ids stand for different strings.

vLLM only compares sizes, so such a pair starts, answers correctly, and accepts next to nothing: the draft's ids are read
with the target's vocabulary.

Source: vllm/config/speculative.py (size check only), 0.15.0 on; sgl-project/sglang#24051.

Fails:

    vocabulary: {mode: shared}
    lock: {pair: {ids_differ: 21874, ids_differ_ordinary: 21874}}

Passes:

    vocabulary: {mode: shared}
    lock: {pair: {ids_differ: 0}}

Way out: a draft with the target's tokenizer, or heterogeneous mode (0.25.0 on).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from speclint.diagnostic import Finding
from speclint.releases import Release
from speclint.spec import Spec

SEVERITY = "error"
NEEDS = "lock"


def check(spec: Spec, release: Release | None) -> Iterator[Finding]:
    if spec.method != "draft_model" or spec.vocabulary_mode != "shared":
        return
    pair = spec.section("lock", "pair")
    differ, ordinary, added, special = (_count(pair, name) for name in ("", "_ordinary", "_added", "_special"))
    if not differ or not (ordinary + added or _special_clash(spec, pair, special) or not special):
        return
    message = f"{differ} token ids mean other strings to the draft ({ordinary} ordinary, {added} added, {special} special)"
    shown = "; ".join(_row(row) for row in spec.listing("lock", "pair", "first")[:10] if isinstance(row, list))
    help = f"first: {shown}; " if shown else ""
    help += "use a draft with the target's tokenizer, or mode heterogeneous (0.25.0 on)"
    related = (("/lock/pair/ids_differ", "counted here"),)
    source = "vLLM compares sizes only (vllm/config/speculative.py)"
    yield Finding("/pair/vocabulary/mode", message, help, source, related=related)


def _count(pair: dict[str, Any], kind: str) -> int:
    value = pair.get(f"ids_differ{kind}", 0)
    return value if isinstance(value, int) else 0


def _special_clash(spec: Spec, pair: dict[str, Any], special: int) -> bool:
    """Whether special ids differ by more than tokens that the draft simply lacks (SL303) or has of its own."""
    rows = [row for row in pair.get("first", []) if isinstance(row, list) and len(row) == 3]
    absent = spec.section("lock", "draft", "tokenizer", "missing")
    if len(rows) < _count(pair, ""):
        missing = absent.get("count", 0)
        return isinstance(missing, int) and special > missing
    lacking = {*absent.get("used", []), *absent.get("unused", [])}
    return any(row[1] is not None and row[1] not in lacking for row in rows)


def _row(row: list[Any]) -> str:
    return " ".join([str(row[0]), *(json.dumps(text, ensure_ascii=False) for text in row[1:])])
