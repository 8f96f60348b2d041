"""A tokenizer as the engine will see it: which string each id means, what it adds by itself, what splits the text."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from speclint.lock.architecture import read_json
from speclint.lock.errors import LockError
from speclint.lock.texts import TEXTS

ROLES = ("bos", "eos", "unk", "pad")
# Defaults of the classes in `transformers`, in force where a tokenizer's own files leave the role out altogether.
END_OF_TEXT = {"bos": "<|endoftext|>", "eos": "<|endoftext|>", "unk": "<|endoftext|>"}
CLASS_DEFAULTS = {
    "GPT2Tokenizer": END_OF_TEXT,
    "GPTNeoXTokenizer": {**END_OF_TEXT, "pad": "<|padding|>"},
    "Qwen2Tokenizer": {"eos": "<|endoftext|>", "unk": "<|endoftext|>", "pad": "<|endoftext|>"},
    "LlamaTokenizer": {"bos": "<s>", "eos": "</s>", "unk": "<unk>"},
    "GemmaTokenizer": {"bos": "<bos>", "eos": "<eos>", "unk": "<unk>", "pad": "<pad>"},
}
CONVERTIBLE = ("tokenizer.model", "vocab.json", "vocab.txt", "*.tiktoken", "spiece.model", "sentencepiece.bpe.model")
UNREADABLE = {
    "tokenizer.model.v*": "a tokenizer in Mistral's older format",
    "tokenization_*.py": "a tokenizer in Python, and remote code is never run",
}


@dataclass(frozen=True)
class Tokenizer:
    """`vocab` is string to id with added tokens; `added` says of each added id whether it is special."""

    kind: str
    name: str
    base_length: int
    vocab: dict[str, int]
    added: dict[int, bool]
    special: dict[str, int]
    """Role (bos, eos, unk, pad) to id."""
    space: str | None
    """What a leading space becomes, by the engine's own probe: the first token of " a" without its "a"."""
    add_bos: bool
    add_eos: bool
    """Observed: where there is a tokenizer.json, its post-processor decides and `add_bos_token` in the config does not."""
    pipeline: str
    """Digest of everything but the vocabulary: normaliser, pre-tokenizer, merges, post-processor."""
    encodings: list[list[int]]
    """Ids of each of `speclint.lock.texts.TEXTS`, without tokens that are added by themselves."""

    @cached_property
    def strings(self) -> dict[int, str]:
        """Id to string, ids ascending."""
        return dict(sorted((id_, string) for string, id_ in self.vocab.items()))


def load(folder: Path) -> Tokenizer | None:
    """The tokenizer of a model folder; None if it has none (draft heads often do not). Raises LockError.

    `tokenizer.json` is read as it is, else `tekken.json`; anything else (SentencePiece, vocabulary and merges) is converted
    by `transformers`, as the engine does, in a process of its own, without torch and without remote code.
    """
    if (folder / "tokenizer.json").is_file():
        return _fast(folder)
    if (folder / "tekken.json").is_file():
        from speclint.lock import tekken

        return tekken.load(folder / "tekken.json")
    if any(next(folder.glob(pattern), None) for pattern in CONVERTIBLE):
        return _converted(folder)
    _refuse_unreadable(folder)
    return None


def _refuse_unreadable(folder: Path) -> None:
    """A tokenizer that is there and cannot be read must not pass for none."""
    for pattern, what in UNREADABLE.items():
        file = next(folder.glob(pattern), None)
        if file is not None:
            hint = "use a revision that has a tokenizer.json, or name such a tokenizer under pair.target.tokenizer"
            raise LockError(f"{file} is {what}, which is not read here", hint)


def chat_template(folder: Path) -> str:
    """Source of the chat template (all of them, if there are several); empty if there is none."""
    file = folder / "chat_template.jinja"
    if file.is_file():
        return file.read_text(encoding="utf-8")
    stated = _config(folder).get("chat_template") or ""
    return stated if isinstance(stated, str) else "\n".join(str(row.get("template", "")) for row in stated)


def id_map_digest(tokenizer: Tokenizer) -> str:
    """Digest of [[id, string], …], ids ascending."""
    pairs = [[id_, string] for id_, string in tokenizer.strings.items()]
    # For integers and strings this is the RFC 8785 form, made in C: id maps have up to 260,000 rows.
    return sha256(json.dumps(pairs, ensure_ascii=False, separators=(",", ":")))


def _fast(folder: Path) -> Tokenizer:
    try:
        import tokenizers
    except ModuleNotFoundError as error:
        raise LockError("tokenizers is not installed", "pip install 'specpair[lock]'") from error
    path, config = folder / "tokenizer.json", _config(folder)
    pipeline = pipeline_digest(read_json(path))  # before the engine: the parsed file is the larger of the two
    try:
        engine = tokenizers.Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises bare Exception
        raise LockError(f"{path} cannot be read: {error}", "restore the file, or update `tokenizers`") from error
    engine.no_padding()  # the file may ask for both, and the engine turns them off
    engine.no_truncation()
    strings = _role_strings(folder, config)
    _add_what_config_adds(engine, config, strings)
    added = {id_: bool(token.special) for id_, token in engine.get_added_tokens_decoder().items()}
    special = {role: id_ for role, text in strings.items() if (id_ := engine.token_to_id(text)) is not None}
    bare, whole = engine.encode("a", add_special_tokens=False).ids, engine.encode("a").ids
    return Tokenizer(
        kind="fast",
        name=str(config.get("tokenizer_class") or "PreTrainedTokenizerFast"),
        base_length=engine.get_vocab_size(with_added_tokens=False),
        vocab=engine.get_vocab(),
        added=added,
        special=special,
        space=space_marker(engine.encode(" a", add_special_tokens=False).tokens),
        add_bos=len(whole) > len(bare) and whole[0] == special.get("bos"),
        add_eos=len(whole) > len(bare) and whole[-1] == special.get("eos"),
        pipeline=pipeline,
        encodings=[engine.encode(text, add_special_tokens=False).ids for text in TEXTS],
    )


def _role_strings(folder: Path, config: dict[str, Any]) -> dict[str, str]:
    """String of each role: tokenizer_config.json, else special_tokens_map.json, else the class's default."""
    legacy = folder / "special_tokens_map.json"
    name = str(config.get("tokenizer_class") or "").removesuffix("Fast")
    sources = [config, read_json(legacy) if legacy.is_file() else {}]
    sources.append({f"{role}_token": text for role, text in CLASS_DEFAULTS.get(name, {}).items()})
    found = {role: _first(f"{role}_token", sources) for role in ROLES}
    return {role: text for role, text in found.items() if text}


def _first(key: str, sources: list[dict[str, Any]]) -> str | None:
    """A key that is there but null says that there is no such token."""
    value = next((source[key] for source in sources if key in source), None)
    return value.get("content") if isinstance(value, dict) else value


def _add_what_config_adds(engine: Any, config: dict[str, Any], strings: dict[str, str]) -> None:
    """As `transformers` does on loading: tokens that tokenizer.json lacks get the next free ids, in this order."""
    from tokenizers import AddedToken

    rows = config.get("added_tokens_decoder") or {}
    for _, row in sorted(rows.items(), key=lambda item: int(item[0])):
        if engine.token_to_id(row["content"]) is None:
            engine.add_tokens([AddedToken(row["content"], special=bool(row.get("special")), normalized=False)])
    engine.add_special_tokens([text for text in strings.values() if engine.token_to_id(text) is None])


def space_marker(tokens: list[str]) -> str | None:
    """vLLM's `_detect_space_prefix`, given the tokens of " a"."""
    first = tokens[0] if tokens else ""
    return first[:-1] if len(first) > 1 and first.endswith("a") and first[0] not in " \t" else None


def pipeline_digest(stated: dict[str, Any]) -> str:
    """Digest of what a tokenizer.json says beside its vocabulary."""
    model = {key: value for key, value in stated.get("model", {}).items() if key != "vocab"}
    parts = [stated.get(key) for key in ("normalizer", "pre_tokenizer", "post_processor")]
    return sha256(json.dumps([model, *parts], sort_keys=True))


def _converted(folder: Path) -> Tokenizer:
    command = [sys.executable, "-m", "speclint.lock.conversion", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", stdin=subprocess.DEVNULL, check=False)
    if done.returncode:
        reason = (done.stderr.strip() or "no reason given").splitlines()[-1]
        hint = "pip install 'specpair[lock]'; remote code is never run: use a revision that has a tokenizer.json"
        raise LockError(f"the tokenizer of {folder} cannot be loaded: {reason}", hint)
    facts = json.loads(done.stdout.splitlines()[-1])
    facts["added"] = {int(id_): special for id_, special in facts["added"].items()}
    return Tokenizer(kind="converted", **facts)


def _config(folder: Path) -> dict[str, Any]:
    path = folder / "tokenizer_config.json"
    return read_json(path) if path.is_file() else {}


def sha256(text: str) -> str:
    """`sha256:<hex>` of a text that may hold lone surrogates."""
    return "sha256:" + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def stop_ids(folder: Path, config: dict[str, Any], tokenizer: Tokenizer) -> Iterator[int]:
    """Ids that end an answer: the tokenizer's EOS and those of generation_config.json, else config.json."""
    path = folder / "generation_config.json"
    stated = (read_json(path) if path.is_file() else config).get("eos_token_id")
    ids = stated if isinstance(stated, list) else [stated]
    yield from sorted({id_ for id_ in [*ids, tokenizer.special.get("eos")] if isinstance(id_, int)})
