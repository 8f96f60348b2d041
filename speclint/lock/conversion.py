"""Run as `python -m speclint.lock.conversion FOLDER`: prints what `transformers` makes of a tokenizer, as one JSON line.

A process of its own, because `transformers` imports torch wherever it finds it: here it finds none.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from importlib.machinery import ModuleSpec
from typing import Any

from speclint.lock.texts import TEXTS
from speclint.lock.tokenizer import ROLES, pipeline_digest, space_marker

_find_spec = importlib.util.find_spec


def _without_torch(name: str, package: str | None = None) -> ModuleSpec | None:
    return None if name.partition(".")[0] in ("torch", "torchvision") else _find_spec(name, package)


def facts(folder: str) -> dict[str, Any]:
    """Fields of `speclint.lock.tokenizer.Tokenizer`, but `kind`, of the tokenizer that AutoTokenizer loads."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=False, local_files_only=True)
    bare, whole = tokenizer.encode("a", add_special_tokens=False), tokenizer.encode("a")
    ids = {role: getattr(tokenizer, f"{role}_token_id") for role in ROLES}
    backend = getattr(tokenizer, "backend_tokenizer", None)
    return {
        "name": type(tokenizer).__name__,
        "base_length": tokenizer.vocab_size,
        "vocab": tokenizer.get_vocab(),
        "added": {id_: bool(token.special) for id_, token in tokenizer.added_tokens_decoder.items()},
        "special": {role: id_ for role, id_ in ids.items() if id_ is not None},
        "space": space_marker(tokenizer.convert_ids_to_tokens(tokenizer.encode(" a", add_special_tokens=False))),
        "add_bos": len(whole) > len(bare) and whole[0] == ids["bos"],
        "add_eos": len(whole) > len(bare) and whole[-1] == ids["eos"],
        "pipeline": pipeline_digest(json.loads(backend.to_str()) if backend else {}),
        "encodings": [tokenizer.encode(text, add_special_tokens=False) for text in TEXTS],
    }


if __name__ == "__main__":
    importlib.util.find_spec = _without_torch
    print(json.dumps(facts(sys.argv[1])))
