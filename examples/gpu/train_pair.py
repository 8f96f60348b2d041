"""Train the GPU examples' pairs on the spot, target and draft with the same tokenizer.

    python train_pair.py OUT small       # one NVIDIA GPU; writes OUT/target (43.9 M) and OUT/draft (2.5 M), prints losses
    python train_pair.py OUT deep        # OUT/deep-target (48 layers, 237.3 M) and OUT/deep-draft (3.6 M)

Text: the Python sources of the running interpreter's standard library (PSF licence), which every machine has. The deep pair
never saw the packages of HELD_OUT, of which code_prompts.py makes prompts. Seeds are fixed; kernels on a GPU are not
deterministic to the last bit, so digests differ between machines: `speclint lock` writes down what came out. On one H200 the
deep target took 69 s and its draft 16 s. The models know no language but library code and are of no use beyond this.
"""

from __future__ import annotations

import sys
import sysconfig
import time
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

VOCAB, LENGTH, SEED = 8192, 512, 20261130
PAIRS: dict[str, dict[str, dict[str, float]]] = {
    "small": {
        "target": {"hidden_size": 640, "layers": 8, "steps": 700, "batch": 48, "rate": 6e-4},
        "draft": {"hidden_size": 192, "layers": 2, "steps": 1000, "batch": 48, "rate": 2e-3},
    },
    "deep": {
        "deep-target": {"hidden_size": 640, "layers": 48, "steps": 500, "batch": 32, "rate": 5e-4},
        "deep-draft": {"hidden_size": 256, "layers": 2, "steps": 1200, "batch": 48, "rate": 2e-3},
    },
}
SKIPPED = ("test", "tests", "site-packages", "idlelib", "lib2to3", "__pycache__")
HELD_OUT = ("email", "http", "logging", "unittest", "urllib", "xml")


def modules() -> list[Path]:
    """Every module of the standard library, in order of name, tests and data left out."""
    root = Path(sysconfig.get_paths()["stdlib"])
    return sorted(p for p in root.rglob("*.py") if not set(p.relative_to(root).parts) & set(SKIPPED))


def held_out(module: Path) -> bool:
    return module.relative_to(sysconfig.get_paths()["stdlib"]).parts[0] in HELD_OUT


def corpus(pair: str) -> str:
    files = [p for p in modules() if pair == "small" or not held_out(p)]
    return "\n".join(p.read_text(encoding="utf-8", errors="replace") for p in files)


def tokenizer(text: str) -> PreTrainedTokenizerFast:
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer, bpe.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=VOCAB, special_tokens=["<bos>", "<eos>"], initial_alphabet=alphabet)
    bpe.train_from_iterator([text[i : i + 100_000] for i in range(0, len(text), 100_000)], trainer)
    return PreTrainedTokenizerFast(tokenizer_object=bpe, bos_token="<bos>", eos_token="<eos>")


def model(hidden_size: int, layers: int) -> LlamaForCausalLM:
    config = LlamaConfig(
        vocab_size=VOCAB,
        hidden_size=hidden_size,
        intermediate_size=hidden_size * 8 // 3 // 64 * 64,
        num_hidden_layers=layers,
        num_attention_heads=hidden_size // 64,
        num_key_value_heads=hidden_size // 64,
        max_position_embeddings=2048,
        bos_token_id=0,
        eos_token_id=1,
        tie_word_embeddings=True,
    )
    return LlamaForCausalLM(config)


def train(name: str, size: dict[str, float], ids: torch.Tensor, out: Path, tok: PreTrainedTokenizerFast) -> None:
    torch.manual_seed(SEED)
    net = model(int(size["hidden_size"]), int(size["layers"])).cuda()
    best = torch.optim.AdamW(net.parameters(), lr=size["rate"], betas=(0.9, 0.95), weight_decay=0.1, fused=True)
    steps = int(size["steps"])
    plan = torch.optim.lr_scheduler.OneCycleLR(best, size["rate"], total_steps=steps, pct_start=0.1)
    began, batch_size = time.time(), int(size["batch"])
    for layer in net.model.layers:
        layer.compile()  # the layers are alike, so that one is compiled for all
    for step in range(steps):
        starts = torch.randint(0, len(ids) - LENGTH, (batch_size,)).tolist()
        batch = torch.stack([ids[s : s + LENGTH] for s in starts]).cuda()
        with torch.autocast("cuda", torch.bfloat16):
            loss = net(input_ids=batch, labels=batch, use_cache=False).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        best.step()
        plan.step()
        best.zero_grad()
        if step % 400 == 0 or step == steps - 1:
            print(f"{name} step {step} loss {loss.item():.3f} after {time.time() - began:.0f} s", flush=True)
    count = sum(p.numel() for p in net.parameters())
    print(f"{name}: {count / 1e6:.1f} M parameters, trained in {time.time() - began:.0f} s", flush=True)
    net.to(torch.bfloat16).save_pretrained(out / name)
    tok.save_pretrained(out / name)


def main(out: Path, pair: str) -> None:
    text = corpus(pair)
    tok = tokenizer(text)
    ids = torch.tensor(tok(text)["input_ids"])
    print(f"{len(text) / 1e6:.1f} MB of text, {len(ids) / 1e6:.2f} M tokens", flush=True)
    for name, size in PAIRS[pair].items():
        train(name, size, ids, out, tok)


if __name__ == "__main__":
    torch.set_float32_matmul_precision("high")
    main(Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "small")
