"""The draft model of a pair, served alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from specrun.plan import SERVED_NAME, beside, flag, model_path

# Of the target's engine arguments, those that say how any model runs here; the others are about the target's weights and prompts.
SHARED = (
    "attention_backend",
    "block_size",
    "chat_template",
    "config_format",
    "disable_custom_all_reduce",
    "enforce_eager",
    "gpu_memory_utilization",
    "max_num_batched_tokens",
    "max_num_seqs",
    "seed",
    "tokenizer_mode",
    "trust_remote_code",
)


def words(data: dict[str, Any], folder: Path) -> list[str]:
    """Engine words that serve the draft as the pair's engine loads it: the target's dtype and tokenizer, its own length."""
    pair, speculative = data["pair"], data["pair"]["speculative"]
    target, arguments = pair["target"], pair.get("engine_args", {})
    out = ["--model", model_path(speculative["model"], folder), "--served-model-name", SERVED_NAME]
    out += _revision("--revision", speculative)
    tokenizer = target.get("tokenizer", target)
    out += ["--tokenizer", model_path(tokenizer["model"], folder), *_revision("--tokenizer-revision", tokenizer)]
    parallel = speculative.get("draft_tensor_parallel_size", pair["placement"].get("tensor_parallel_size"))
    settings = {
        "dtype": dtype(data),
        "quantization": speculative.get("quantization"),
        "code_revision": speculative.get("code_revision"),
        "tensor_parallel_size": parallel,
        "max_model_len": longest(data),
    }
    settings |= {name: beside(arguments[name], folder) for name in SHARED if name in arguments}
    for name, value in settings.items():
        out += flag(name, value)
    return [*out, "--generation-config", "vllm", "--no-enable-prefix-caching"]


def dtype(data: dict[str, Any]) -> str | None:
    """The dtype that both models compute in: the target's, by the spec or its checkpoint. None where neither says."""
    asked: str | None = data["pair"]["target"].get("dtype")
    config = ((data.get("lock") or {}).get("target") or {}).get("config") or {}
    return asked if asked not in (None, "auto") else config.get("dtype")


def _revision(word: str, model: dict[str, Any]) -> list[str]:
    """A commit; the tree digest of a local folder is not a revision that vLLM knows."""
    revision = str(model.get("revision", "sha256:"))
    return [] if revision.startswith("sha256:") else [word, revision]


def longest(data: dict[str, Any]) -> int | None:
    """The draft's context in the pair: its own setting, else the shorter of both models'. None: the checkpoint's own."""
    own = data["pair"]["speculative"].get("max_model_len")
    asked = data["pair"].get("engine_args", {}).get("max_model_len")
    config = ((data.get("lock") or {}).get("draft") or {}).get("config") or {}
    known = config.get("max_position_embeddings")
    found: int | None = own or (min(asked, known) if asked and known else None)
    return found


def command(data: dict[str, Any], folder: Path, python: str, socket: Path) -> list[str]:
    """The command that serves the draft on a Unix socket."""
    return [python, "-m", "vllm.entrypoints.openai.api_server", *words(data, folder), "--uds", str(socket)]
