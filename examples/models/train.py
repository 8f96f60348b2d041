"""Train the example models from the running interpreter's own standard library.

    python examples/models/train.py OUT

writes four Llama checkpoints below OUT, each with tokenizer and model card. Needs torch, transformers and tokenizers;
takes some minutes on two CPU cores. The same interpreter, libraries and machine give the same files.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import torch
import torch.nn.functional as F
from card import Training, write_card
from copying import HEAD, ROPE_THETA, place_copying_heads
from corpus import held_out_texts, training_texts
from torch import Tensor
from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
from unloop import loop_penalty
from windows import (
    BATCH,
    BOS,
    EOS,
    REPETITIVE_HELD_OUT,
    SEED,
    WINDOW,
    Data,
    Texts,
    batches,
    prepare,
    train_tokenizer,
    windows,
)

THREADS = 2
Loss = Callable[[LlamaForCausalLM, Tensor], Tensor]


@dataclass(frozen=True)
class Shape:
    """Width, feed-forward width, layers and heads (of 32 channels each) of one Llama model, and whether it starts with
    heads that copy."""

    hidden: int
    intermediate: int
    layers: int
    heads: int
    copies: bool = True


TARGET = Shape(hidden=192, intermediate=384, layers=4, heads=6)
DRAFT = Shape(hidden=96, intermediate=192, layers=2, heads=3)
TRAP = replace(DRAFT, copies=False)  # copied ids are right whatever they stand for: copies would hide the mismatch


def new_model(shape: Shape, vocabulary: int) -> LlamaForCausalLM:
    torch.manual_seed(SEED)
    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=vocabulary,
            hidden_size=shape.hidden,
            intermediate_size=shape.intermediate,
            num_hidden_layers=shape.layers,
            num_attention_heads=shape.heads,
            num_key_value_heads=shape.heads,
            head_dim=HEAD,
            rope_parameters={"rope_type": "default", "rope_theta": ROPE_THETA},
            max_position_embeddings=1024,
            tie_word_embeddings=True,
            bos_token_id=BOS,
            eos_token_id=EOS,
        )
    )
    if shape.copies:
        place_copying_heads(model, SEED)
    return model


def next_token_loss(model: LlamaForCausalLM, ids: Tensor) -> Tensor:
    """Mean cross-entropy in nats per token."""
    logits = model(input_ids=ids[:, :-1]).logits
    return F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())


def stale_copy(ids: Tensor) -> tuple[Tensor, Tensor]:
    """Per position: the token that followed the latest earlier occurrence of the same two tokens, and whether there is
    one that the text itself does not continue with. Both of shape (rows, WINDOW - 1)."""
    length = ids.shape[1] - 1
    same = ids[:, :length, None] == ids[:, None, :length]
    same[:, 1:, 1:] &= same[:, :-1, :-1].clone()
    earlier = same.tril(-1)
    earlier[:, :, 0] = False  # no token before it to compare
    latest = (earlier * torch.arange(length)).argmax(-1)
    follower = ids.gather(1, latest + 1)
    return follower, earlier.any(-1) & (follower != ids[:, 1:])


def target_loss(model: LlamaForCausalLM, ids: Tensor) -> Tensor:
    """Cross-entropy, and on source text a penalty for copying where the text goes on differently: without it greedy
    answers of so small a model fall into loops whatever the prompt."""
    logits = model(input_ids=ids[:, :-1]).logits
    half = BATCH // 2
    follower, stale = stale_copy(ids[:half])
    copied = logits[:half].softmax(-1).gather(2, follower[..., None]).squeeze(-1)
    penalty = -torch.log1p(-copied.clamp(max=0.999))[stale].sum() / stale.numel()
    return F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten()) + penalty


def loop_averse_loss(data: Data) -> Loss:
    """Cross-entropy, three times heavier on repetition, and a penalty on loops in the model's own answers to openings
    of 24 to 127 tokens of source text."""
    rng = torch.Generator().manual_seed(SEED)

    def loss(model: LlamaForCausalLM, ids: Tensor) -> Tensor:
        length = int(torch.randint(24, 128, (), generator=rng))
        prompts = windows(data.train, 16, 128, rng)[:, :length]
        prompts[:, 0] = BOS
        half = BATCH // 2
        plain, repetitive = next_token_loss(model, ids[:half]), next_token_loss(model, ids[half:])
        return (plain + 3 * repetitive) / 2 + loop_penalty(model, prompts)

    return loss


def distillation_loss(teacher: LlamaForCausalLM) -> Loss:
    """Cross-entropy against the teacher's own distribution at every position."""

    def loss(model: LlamaForCausalLM, ids: Tensor) -> Tensor:
        with torch.no_grad():
            goal = teacher(input_ids=ids).logits.softmax(-1)
        return F.cross_entropy(model(input_ids=ids).logits.flatten(0, 1), goal.flatten(0, 1))

    return loss


@dataclass(frozen=True)
class Stage:
    """One round of training; `rate` scales the learning rates."""

    steps: int
    loss_of: Loss
    rate: float = 1.0


def fit(model: LlamaForCausalLM, feed: Iterator[Tensor], stage: Stage) -> float:
    """Train with Muon on the matrices inside the layers and AdamW on the rest, linear warm-up and linear decay; return
    the seconds it took."""
    started = time.monotonic()
    matrices = [p for p in model.model.layers.parameters() if p.ndim == 2]
    inside = {id(p) for p in matrices}
    rest = [p for p in model.parameters() if id(p) not in inside]
    optimizers = [
        torch.optim.Muon(matrices, lr=6e-3 * stage.rate, weight_decay=0.05, adjust_lr_fn="match_rms_adamw"),
        torch.optim.AdamW(rest, lr=6e-3 * stage.rate, betas=(0.9, 0.95), weight_decay=0.0),
    ]
    schedules = [
        torch.optim.lr_scheduler.LambdaLR(each, lambda step: min((step + 1) / 30, 1 - step / stage.steps)) for each in optimizers
    ]
    for step, ids in enumerate(feed):
        loss = stage.loss_of(model, ids)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for each in (*optimizers, *schedules):
            each.step()
        model.zero_grad()
        if step % 50 == 0:
            print(f"  step {step:4d}  loss {loss.item():.3f}", flush=True)
    return time.monotonic() - started


def mean_loss(model: LlamaForCausalLM, windows: Tensor) -> float:
    """Nats per token over windows of shape (n, WINDOW), n a multiple of 16."""
    with torch.no_grad():
        return float(torch.stack([next_token_loss(model, part) for part in windows.split(16)]).mean())


def save(model: LlamaForCausalLM, tokenizer: PreTrainedTokenizerFast, folder: Path) -> None:
    """Weights as bfloat16 safetensors, config, generation config and tokenizer."""
    model.to(torch.bfloat16).save_pretrained(folder)
    GenerationConfig(bos_token_id=BOS, eos_token_id=EOS, do_sample=False).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    add_fields(folder / "config.json", rope_theta=ROPE_THETA)  # transformers 4 reads these two only here and so
    add_fields(folder / "tokenizer_config.json", tokenizer_class="PreTrainedTokenizerFast")
    model.float()


def add_fields(path: Path, **fields: object) -> None:
    """Set top-level fields of a JSON file."""
    content = json.loads(path.read_text(encoding="utf-8")) | fields
    path.write_text(json.dumps(content, indent=2, sort_keys=True) + "\n", encoding="utf-8")


@dataclass(frozen=True)
class Run:
    """How long a model was trained, and whether it started with heads that copy."""

    steps: int
    seconds: float
    copies: bool


def publish(folder: Path, model: LlamaForCausalLM, tokenizer: PreTrainedTokenizerFast, data: Data, run: Run) -> None:
    """Save the model, rounded to bfloat16, with its card; the model given has the rounded weights afterwards."""
    save(model.eval(), tokenizer, folder)
    training = Training(
        seed=SEED,
        window=WINDOW,
        steps=run.steps,
        tokens=run.steps * BATCH * WINDOW,
        seconds=run.seconds,
        held_out=mean_loss(model, data.held_out.view(-1, WINDOW)),
        repetition=mean_loss(model, data.repetitive[-REPETITIVE_HELD_OUT:]),
        files=data.files,
        characters=data.characters,
        copies=run.copies,
    )
    write_card(folder, model.config, model.num_parameters(), training)
    print(f"{folder.name}: {training}", flush=True)


def build(
    folder: Path, shape: Shape, tokenizer: PreTrainedTokenizerFast, data: Data, stage: Stage
) -> tuple[LlamaForCausalLM, Run]:
    """Train one model from its seed, publish it in `folder`, and return it with the weights as stored."""
    model = new_model(shape, len(tokenizer))
    run = Run(stage.steps, fit(model, batches(data, stage.steps, SEED), stage), shape.copies)
    publish(folder, model, tokenizer, data, run)
    return model, run


def main(out: Path) -> None:
    """The draft learns from the target as it is before it was taught to avoid loops: a draft that copies more readily
    than the target is refused where there is nothing to copy."""
    torch.set_num_threads(THREADS)
    torch.use_deterministic_algorithms(True)
    by_file = training_texts()
    texts = Texts([text for file in by_file for text in file], held_out_texts(), len(by_file))
    even, odd = ([text for file in by_file[first::2] for text in file] for first in (0, 1))

    shared = train_tokenizer(even, 1024)
    data = prepare(shared, texts)
    target, first = build(out / "tiny-target", TARGET, shared, data, Stage(600, target_loss))
    averse = Stage(200, loop_averse_loss(data), rate=0.4)
    build(out / "tiny-draft", DRAFT, shared, data, Stage(600, distillation_loss(target)))
    seconds = first.seconds + fit(target, batches(data, averse.steps, SEED + 1), averse)
    publish(out / "tiny-target", target, shared, data, Run(first.steps + averse.steps, seconds, TARGET.copies))

    for name, size, shape in (
        ("tiny-draft-other-tokenizer", 1536, DRAFT),
        ("tiny-draft-same-size-other-ids", 1024, TRAP),
    ):
        tokenizer = train_tokenizer(odd, size)
        build(out / name, shape, tokenizer, prepare(tokenizer, texts), Stage(500, next_token_loss))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
