"""Real checkpoints of a few kilobytes: a trained byte-level BPE tokenizer, a config and a whole safetensors file."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

PYTHON = ["def area(width, height):", "    return width * height", "for name in names:", "    print(name, len(name))"] * 8
PROSE = ["the harbour lay quiet under snow", "she wrote a letter to her sister", "rain fell on the old roofs"] * 8
SPECIALS = ("<s>", "</s>")
BYTES = {"BF16": 2, "F32": 4, "I64": 8}


def train_tokenizer(text: Iterable[str], size: int, specials: Iterable[str] = SPECIALS) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=size, special_tokens=list(specials), initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(text, trainer)
    return tokenizer


def write_safetensors(path: Path, tensors: Mapping[str, tuple[str, tuple[int, ...]]]) -> int:
    """A file of zeros with the given types and shapes; returns the bytes of its tensors."""
    rows: dict[str, Any] = {}
    at = 0
    for name, (dtype, shape) in tensors.items():
        size = BYTES[dtype]
        for side in shape:
            size *= side
        rows[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [at, at + size]}
        at += size
    header = json.dumps(rows).encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header + bytes(at))
    return at


def write_model(
    folder: Path,
    text: Iterable[str] = PYTHON,
    *,
    size: int = 300,
    specials: Iterable[str] = SPECIALS,
    config: Mapping[str, Any] | None = None,
    tokenizer_config: Mapping[str, Any] | None = None,
    tensors: Mapping[str, tuple[str, tuple[int, ...]]] | None = None,
) -> Path:
    """A Llama checkpoint whose config and weights have a row for each of `size` tokens."""
    folder.mkdir(parents=True, exist_ok=True)
    train_tokenizer(text, size, specials).save(str(folder / "tokenizer.json"))
    numbers = {
        "model_type": "llama",
        "architectures": ["LlamaForCausalLM"],
        "vocab_size": size,
        "hidden_size": 8,
        "intermediate_size": 16,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "max_position_embeddings": 512,
        "torch_dtype": "bfloat16",
        "eos_token_id": 1,
    }
    _write_json(folder / "config.json", numbers | dict(config or {}))
    roles = {"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<s>", "eos_token": "</s>"}
    _write_json(folder / "tokenizer_config.json", roles | dict(tokenizer_config or {}))
    rows = {"model.embed_tokens.weight": ("BF16", (size, 8)), "model.norm.weight": ("BF16", (8,))}
    write_safetensors(folder / "model.safetensors", tensors or rows)
    return folder


def _write_json(path: Path, value: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(value), encoding="utf-8")
