"""Mistral's tokenizer file, `tekken.json`: special tokens first, then byte sequences by rank.

Ordinary tokens are spelled in the alphabet of byte-level BPE, as a `tokenizer.json` of the same family spells them, so
that the two can be compared string by string.
"""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

from speclint.lock.errors import LockError
from speclint.lock.texts import TEXTS
from speclint.lock.tokenizer import Tokenizer, sha256

# In force where the file names none: those written before version 11 leave the list to mistral_common.
SPECIALS = (
    "<unk> <s> </s> [INST] [/INST] [AVAILABLE_TOOLS] [/AVAILABLE_TOOLS] [TOOL_RESULTS] [/TOOL_RESULTS] [TOOL_CALLS] [IMG] "
    "<pad> [IMG_BREAK] [IMG_END] [PREFIX] [MIDDLE] [SUFFIX] [SYSTEM_PROMPT] [/SYSTEM_PROMPT] [TOOL_CONTENT]"
).split()
ROLES = {"bos": "<s>", "eos": "</s>", "unk": "<unk>", "pad": "<pad>"}


def load(path: Path) -> Tokenizer:
    """The tokenizer of a `tekken.json`. Raises LockError if the file is broken or `tiktoken` is not installed."""
    try:
        stated = json.loads(path.read_text(encoding="utf-8"))
        specials = _specials(stated)
        ranks = _ranks(stated, len(specials))
        pattern = str(stated["config"]["pattern"])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        hint = "restore the file as it was published"
        raise LockError(f"{path} is not a tekken file: {type(error).__name__} {error}", hint) from error
    letters = _byte_letters()
    ordinary = {"".join(letters[byte] for byte in token): len(specials) + rank for token, rank in ranks.items()}
    ids = {string: id_ for id_, (string, _) in enumerate(specials)}
    return Tokenizer(
        kind="tekken",
        name="Tekkenizer",
        base_length=len(ranks),
        vocab=ordinary | ids,
        added={id_: control for id_, (_, control) in enumerate(specials)},
        special={role: ids[string] for role, string in ROLES.items() if string in ids},
        space=letters[ord(" ")],
        add_bos=True,
        add_eos=False,
        pipeline=sha256(json.dumps([pattern, len(specials)])),
        encodings=_encodings(path, pattern, ranks, len(specials)),
    )


def _specials(stated: dict[str, Any]) -> list[tuple[str, bool]]:
    """(string, is control) of each special token, ids ascending, filled up as the file's count asks."""
    rows = stated.get("special_tokens")
    named = [(string, True) for string in SPECIALS] if rows is None else _by_rank(rows)
    count = int(stated["config"]["default_num_special_tokens"])
    return [*named, *((f"<SPECIAL_{id_}>", True) for id_ in range(len(named), count))]


def _by_rank(rows: list[dict[str, Any]]) -> list[tuple[str, bool]]:
    return [(str(row["token_str"]), bool(row["is_control"])) for row in sorted(rows, key=lambda row: int(row["rank"]))]


def _ranks(stated: dict[str, Any], specials: int) -> dict[bytes, int]:
    """Bytes of each ordinary token to its rank; ranks that the vocabulary's stated size cuts off are left out."""
    size = int(stated["config"]["default_vocab_size"]) - specials
    return {base64.b64decode(row["token_bytes"]): int(row["rank"]) for row in stated["vocab"][:size]}


def _encodings(path: Path, pattern: str, ranks: dict[bytes, int], specials: int) -> list[list[int]]:
    try:
        import tiktoken
    except ModuleNotFoundError as error:
        raise LockError(f"{path} needs tiktoken, which is not installed", "pip install 'specpair[lock]'") from error
    engine = tiktoken.Encoding("tekken", pat_str=pattern, mergeable_ranks=ranks, special_tokens={})
    return [[specials + rank for rank in engine.encode_ordinary(text)] for text in TEXTS]


def _byte_letters() -> list[str]:
    """The printable letter of each byte in byte-level BPE."""
    printable = {*range(33, 127), *range(161, 173), *range(174, 256)}
    others = iter(range(256, 512))
    return [chr(byte) if byte in printable else chr(next(others)) for byte in range(256)]
