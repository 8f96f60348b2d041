"""Tokenizers, and the windows of token ids that the models are trained on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from corpus import repetitive_texts
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from torch import Tensor
from transformers import PreTrainedTokenizerFast

SEED = 20
BOS, EOS = 0, 1  # ids, in every vocabulary
WINDOW = 256
BATCH = 8
REPETITIVE_HELD_OUT = 64  # windows kept for the measured loss
CHAT_TEMPLATE = (
    "{% for message in messages %}{{ message['role'] + ': ' + message['content'] + '\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ 'assistant: ' }}{% endif %}"
)


def train_tokenizer(texts: list[str], size: int) -> PreTrainedTokenizerFast:
    """Byte-level BPE of exactly `size` entries; bos and eos, no unk (every byte has a token)."""
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=["<s>", "</s>"],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    bpe.train_from_iterator(texts, trainer)
    bpe.post_processor = processors.TemplateProcessing(single="<s> $A", pair="<s> $A $B", special_tokens=[("<s>", BOS)])
    fast = PreTrainedTokenizerFast(
        tokenizer_object=bpe,
        bos_token="<s>",
        eos_token="</s>",
        model_max_length=1024,
        clean_up_tokenization_spaces=False,
    )
    fast.chat_template = CHAT_TEMPLATE
    return fast


def encode(tokenizer: PreTrainedTokenizerFast, texts: list[str]) -> Tensor:
    """All texts as one stream of ids, each opened by bos and closed by eos; shape (tokens,)."""
    rows = tokenizer.backend_tokenizer.encode_batch_fast(texts)
    return torch.tensor([i for row in rows for i in (*row.ids, tokenizer.eos_token_id)])


@dataclass(frozen=True)
class Texts:
    """The corpus as definitions, and the number of files that the training part comes from."""

    train: list[str]
    held_out: list[str]
    files: int


@dataclass(frozen=True)
class Data:
    """One tokenizer's view of the corpus: id streams, and windows of repetition of shape (n, WINDOW)."""

    train: Tensor
    held_out: Tensor
    repetitive: Tensor
    files: int
    characters: int


def repetition(tokenizer: PreTrainedTokenizerFast, texts: list[str]) -> Tensor:
    """Windows that repeat themselves; shape (n, WINDOW)."""
    rows = tokenizer.backend_tokenizer.encode_batch_fast(repetitive_texts(texts, 6000, SEED))
    return torch.tensor([row.ids[:WINDOW] for row in rows if len(row.ids) >= WINDOW])


def prepare(tokenizer: PreTrainedTokenizerFast, texts: Texts) -> Data:
    return Data(
        train=encode(tokenizer, texts.train),
        held_out=encode(tokenizer, texts.held_out)[: 64 * WINDOW],
        repetitive=repetition(tokenizer, texts.train),
        files=texts.files,
        characters=sum(map(len, texts.train)),
    )


def windows(stream: Tensor, rows: int, length: int, rng: torch.Generator) -> Tensor:
    """`rows` pieces of `stream` from random places; shape (rows, length)."""
    starts = torch.randint(len(stream) - length, (rows,), generator=rng).tolist()
    return torch.stack([stream[start : start + length] for start in starts])


def batches(data: Data, steps: int, seed: int) -> Iterator[Tensor]:
    """`steps` batches of shape (BATCH, WINDOW): half source text, half repetition."""
    rng = torch.Generator().manual_seed(seed)
    half = BATCH // 2
    for _ in range(steps):
        plain = windows(data.train, half, WINDOW, rng)
        rows = torch.randint(len(data.repetitive) - REPETITIVE_HELD_OUT, (half,), generator=rng)
        yield torch.cat([plain, data.repetitive[rows]])
