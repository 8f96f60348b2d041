"""Start a small Llama with the circuit that copies, which takes far longer to emerge than these models are trained.

A head of layer 0 looks at the previous token and notes it down; heads of layer 1 look for the place whose note is the
current token, and repeat what stands there. Training then refines these weights like all others.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from transformers import LlamaForCausalLM

HEAD = 32
ROPE_THETA = 1e6  # slow rotation: a match is found at any distance
EMBEDDING_STD = 0.1


def place_copying_heads(model: LlamaForCausalLM, seed: int) -> None:
    """Overwrite the embedding and parts of the first two layers' attention; the width must be at least 96."""
    width = model.config.hidden_size
    rng = torch.Generator().manual_seed(seed)
    basis = torch.zeros(width - 1, width)  # orthonormal rows; channel 0 stays free
    basis[:, 1:] = torch.linalg.qr(torch.randn(width - 1, width - 1, generator=rng))[0]
    note, content = basis[:HEAD], basis[HEAD:]
    with torch.no_grad():
        _make_room(model.model.embed_tokens.weight, note, model.config.initializer_range)
        _look_back(model.model.layers[0].self_attn, note, content[:HEAD])
        _match_and_copy(model.model.layers[1].self_attn, note, content)


def _make_room(embedding: Tensor, note: Tensor, drawn_std: float) -> None:
    """Clear the space of the notes, and keep a constant in channel 0: a head that only minds position needs one."""
    embedding.mul_(EMBEDDING_STD / drawn_std)
    embedding.sub_(embedding @ note.T @ note)
    embedding[:, 0] = 3 * EMBEDDING_STD


def _look_back(attention: nn.Module, note: Tensor, read: Tensor) -> None:
    """Head 0: queries turned by one position, so that the score is highest at distance 1."""
    angle = ROPE_THETA ** (-torch.arange(HEAD // 2) * 2 / HEAD)
    query, key = torch.zeros(HEAD, note.shape[1]), torch.zeros(HEAD, note.shape[1])
    query[:, 0] = 1.5 * torch.cat([angle.cos(), -angle.sin()])
    key[: HEAD // 2, 0] = 1.5
    attention.q_proj.weight[:HEAD] = query
    attention.k_proj.weight[:HEAD] = key
    attention.v_proj.weight[:HEAD] = read
    attention.o_proj.weight[:, :HEAD] = 0.4 * note.T


def _match_and_copy(attention: nn.Module, note: Tensor, content: Tensor) -> None:
    """All heads that `content` fills: compare the current token with the notes, in the channels that rotate slowly."""
    slow = (torch.arange(HEAD) % (HEAD // 2) >= 4).float()[:, None]
    for first in range(0, len(content), HEAD):
        part = content[first : first + HEAD]
        attention.q_proj.weight[first : first + HEAD] = slow * content[:HEAD]
        attention.k_proj.weight[first : first + HEAD] = slow * note
        attention.v_proj.weight[first : first + len(part)] = part
        attention.o_proj.weight[:, first : first + len(part)] = 2.0 * part.T
