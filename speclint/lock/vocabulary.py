"""Target and draft vocabulary side by side: id by id for shared mode, string by string for heterogeneous mode."""

from __future__ import annotations

from typing import Any

from speclint.canonical import rounded
from speclint.lock.tokenizer import Tokenizer

# Where the probe finds no marker, vLLM tries that of byte-level BPE, then that of SentencePiece.
MARKERS = ("\u0120", "\u2581")
SHOWN = 10


def compare(target: Tokenizer, draft: Tokenizer, target_rows: int, draft_rows: int) -> dict[str, Any]:
    """The `pair` part of a lock. `…_rows` is each config's vocab_size: ids at or above it do not exist for the engine."""
    differ = _ids_that_differ(target, draft)
    kinds = [_kind(id_, target, draft) for id_, _, _ in differ]
    shared = intersection(target, draft, target_rows, draft_rows)
    return {
        "ids_differ": len(differ),
        **{f"ids_differ_{kind}": kinds.count(kind) for kind in ("ordinary", "added", "special")},
        "first": differ[:SHOWN],
        "intersection": shared,
        "overlap_target": rounded(shared / max(len(target.vocab), 1)),
        "overlap_draft": rounded(shared / max(len(draft.vocab), 1)),
        "fallback": {"target": _fallback(target), "draft": _fallback(draft)},
    }


def missing_specials(target: Tokenizer, draft: Tokenizer, used: set[str]) -> dict[str, Any]:
    """Special tokens of the target that the draft has under no id; `used` are those that template or stop set need."""
    strings = target.strings
    specials = [strings[id_] for id_, special in sorted(target.added.items()) if special and id_ in strings]
    wanted = list(dict.fromkeys([*specials, *(string for string in strings.values() if string in used)]))
    missing = [string for string in wanted if string not in draft.vocab]
    unused = [string for string in missing if string not in used]
    return {"used": [s for s in missing if s in used], "unused": unused[:SHOWN], "count": len(missing)}


def intersection(target: Tokenizer, draft: Tokenizer, target_rows: int, draft_rows: int) -> int:
    """Number of token pairs that heterogeneous mode maps, by the rule of vLLM's VocabMapping.

    A leading space marker counts as a space; of several ids with the same string the first counts (the engine's order
    is that of a hash map, ours ascending: the number is the same unless one of the twins lies above `…_rows`).
    """
    ours, theirs = _by_string(target), _by_string(draft)
    return sum(ours[s] < target_rows and theirs[s] < draft_rows for s in ours.keys() & theirs.keys())


def _by_string(tokenizer: Tokenizer) -> dict[str, int]:
    markers = (tokenizer.space,) if tokenizer.space else MARKERS
    first: dict[str, int] = {}
    for id_, string in tokenizer.strings.items():
        first.setdefault(_normalized(string, markers), id_)
    return first


def _normalized(string: str, markers: tuple[str, ...]) -> str:
    if not string.startswith(markers):  # most do not, and there are up to 260,000 of them
        return string
    return " " + string[len(next(marker for marker in markers if string.startswith(marker))) :]


def _ids_that_differ(target: Tokenizer, draft: Tokenizer) -> list[list[Any]]:
    """[id, target string, draft string], ids ascending; null where a side has no such id."""
    if target.vocab == draft.vocab:
        return []
    ours, theirs = target.strings, draft.strings
    ids = sorted(ours.keys() | theirs.keys())
    return [[id_, ours.get(id_), theirs.get(id_)] for id_ in ids if ours.get(id_) != theirs.get(id_)]


def _kind(id_: int, target: Tokenizer, draft: Tokenizer) -> str:
    marks = [side.added[id_] for side in (target, draft) if id_ in side.added]
    return "special" if any(marks) else "added" if marks else "ordinary"


def _fallback(tokenizer: Tokenizer) -> dict[str, Any]:
    """What the engine puts in place of a token that the other side lacks; with `none` it refuses to start."""
    kind = next((role for role in ("unk", "eos") if role in tokenizer.special), "none")
    if kind == "none":
        return {"kind": kind}
    id_ = tokenizer.special[kind]
    return {"kind": kind, "id": id_, "token": tokenizer.strings.get(id_)}
