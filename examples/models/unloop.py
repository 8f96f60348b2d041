"""Teach a model not to repeat itself where its prompt does not.

Greedy answers of very small models fall into loops after any prompt, and a loop is easy to draft: without this step,
prompts with nothing to copy would be accepted like those made of copies. The penalty is unlikelihood (Welleck et al.,
2019) on the model's own greedy answers to source text.
"""

from __future__ import annotations

import torch
from torch import Tensor
from transformers import LlamaForCausalLM

ANSWER = 64  # tokens


def answers(model: LlamaForCausalLM, prompts: Tensor) -> Tensor:
    """Prompts (rows, n) with `ANSWER` greedy tokens behind each; an eos does not end an answer."""
    ids, cache = prompts, None
    with torch.no_grad():
        for _ in range(ANSWER):
            output = model(input_ids=ids if cache is None else ids[:, -1:], past_key_values=cache, use_cache=True)
            cache = output.past_key_values
            ids = torch.cat([ids, output.logits[:, -1:].argmax(-1)], dim=1)
    return ids


def repeated(ids: Tensor, length: int = 4) -> Tensor:
    """Whether the `length` tokens that end at each position stood earlier in the row; shape (rows, tokens)."""
    same = ids[:, :, None] == ids[:, None, :]
    run = same
    for back in range(1, length):
        run = run & torch.nn.functional.pad(same, (back, 0, back, 0))[:, : ids.shape[1], : ids.shape[1]]
    return run.tril(-1).any(-1)


def loop_penalty(model: LlamaForCausalLM, prompts: Tensor) -> Tensor:
    """Unlikelihood of the answer tokens that complete a repetition, in nats per answer token."""
    ids, start = answers(model, prompts), prompts.shape[1]
    looped = repeated(ids)[:, start:]
    logits = model(input_ids=ids[:, :-1]).logits[:, start - 1 :]
    chosen = logits.softmax(-1).gather(2, ids[:, start:, None]).squeeze(-1)
    return -torch.log1p(-chosen.clamp(max=0.999))[looped].sum() / looped.numel()
