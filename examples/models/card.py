"""The model cards."""

from __future__ import annotations

import platform
from dataclasses import dataclass
from pathlib import Path

import torch
import transformers

PURPOSES = {
    "tiny-target": (
        "The target of the example pairs. Its last 200 steps taught it not to fall into loops where the prompt has "
        "none (`unloop.py`), so that prompts with and without copies are accepted differently."
    ),
    "tiny-draft": (
        "The draft for `tiny-target`: the same tokenizer files, distilled from the target's distributions as they were "
        "before its last 200 steps."
    ),
    "tiny-draft-other-tokenizer": (
        "A draft with a vocabulary of its own, for `vocabulary: {mode: heterogeneous}`. It was trained on text alone "
        "and has never seen the target."
    ),
    "tiny-draft-same-size-other-ids": (
        "A trap. Its vocabulary has exactly the target's size, but most ids stand for other strings. An engine that "
        "compares sizes only accepts it as a draft for `tiny-target`, and then rejects nearly all that it drafts."
    ),
}

CARD = """\
# {name}

{purpose}

| | |
|---|---|
| architecture | LlamaForCausalLM, {layers} layers, width {width}, {heads} heads of 32, tied embeddings |
| parameters | {parameters:,} |
| vocabulary | {vocabulary:,}, byte-level BPE, `<s>` (bos) and `</s>` (eos), no unk token: every byte has one |
| context | 1,024 positions; trained on windows of {window} |
| weights | bfloat16 safetensors, {kilobytes:,} kB; serve with dtype float32 |
| seed | {seed} |
| training | {steps:,} steps, {tokens:,} tokens, {seconds:.0f} s on two shared CPU threads |
| held-out loss | {held_out:.3f} nats per token on library source that was never trained on |
| loss on repetition | {repetition:.3f} nats per token on repetitive windows (their first copy included) |

**Data.** Half of each batch is source text of the standard library of CPython {python} ({files} modules, {characters:,}
characters), half is text that repeats itself: copied source blocks, log lines and lists, unrelated words, all drawn
from the same sources. The script `corpus.py` beside these folders has the file list. {start}

**Licence.** The text is under the PSF License Version 2; the weights and the tokenizer, trained on it, are published
under the same terms.

**Made by** the stages of `train.py`, run one by one; torch {torch}, transformers {transformers}. Another Python release
has other sources, and so gives other weights.

**For** tests and examples of speculative decoding that need a real checkpoint of some megabytes. **Not for** anything
else: it writes text that looks like Python and means nothing, and its speed says nothing about models of a useful size.
"""


COPYING = "The attention heads that copy were\nset by hand before training (`copying.py`)."
RANDOM = "All weights started at random."


@dataclass(frozen=True)
class Training:
    """What one training run was given and what it measured; losses in nats per token."""

    seed: int
    window: int
    steps: int
    tokens: int
    seconds: float
    held_out: float
    repetition: float
    files: int
    characters: int
    copies: bool


def write_card(folder: Path, config: transformers.LlamaConfig, parameters: int, training: Training) -> None:
    """Write README.md beside the weights that are already in `folder`."""
    text = CARD.format(
        name=folder.name,
        purpose=PURPOSES[folder.name],
        layers=config.num_hidden_layers,
        width=config.hidden_size,
        heads=config.num_attention_heads,
        parameters=parameters,
        vocabulary=config.vocab_size,
        kilobytes=round((folder / "model.safetensors").stat().st_size / 1000),
        python=platform.python_version(),
        torch=torch.__version__,
        transformers=transformers.__version__,
        start=COPYING if training.copies else RANDOM,
        **vars(training),
    )
    (folder / "README.md").write_text(text, encoding="utf-8")
