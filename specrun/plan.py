"""The frozen plan: which arms, in which order, started how. Touches nothing but the spec."""

from __future__ import annotations

import json
import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from speclint.workload import lengths, requests_at, warmup_at
from specrun import oracle
from specrun.arrival import OPEN, Level

SERVED_NAME = "specpair"
# What servers may inherit from the caller: enough to find programs, libraries, caches and devices, nothing that tunes the engine.
INHERITED = (
    "PATH",
    "HOME",
    "USER",
    "LANG",
    "LC_ALL",
    "TMPDIR",
    "TRITON_CACHE_DIR",
    "XDG_CACHE_HOME",
    "HF_HOME",
    "HF_HUB_CACHE",
    "HF_HUB_OFFLINE",
    "LD_LIBRARY_PATH",
    "CUDA_HOME",
    "CUDA_VISIBLE_DEVICES",
    "NVIDIA_VISIBLE_DEVICES",
    "PYTHONPATH",
    "VIRTUAL_ENV",
)
SECRETS = ("HF_TOKEN",)  # handed on, never recorded
FIXED = {
    "VLLM_SERVER_DEV_MODE": "1",  # opens /server_info, the configuration as the engine sees it
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_LOGGING_COLOR": "0",
    "PYTHONUNBUFFERED": "1",
}


@dataclass(frozen=True, slots=True)
class Cell:
    """One workload at one concurrency, or in open loop."""

    concurrency: Level
    workload: str

    @property
    def name(self) -> str:
        level = OPEN if self.concurrency == OPEN else f"c{self.concurrency}"
        return f"{level}-{self.workload}"


def arms(data: dict[str, Any]) -> list[str]:
    """Names of the arms in the order of an odd block: target, pair, those of a sweep, then the controls."""
    return ["target", "pair", *swept(data), *data["protocol"]["design"].get("controls", [])]


def swept(data: dict[str, Any]) -> dict[str, int]:
    """Arms of `protocol.sweep` and their num_speculative_tokens, rising; the pair's own number is the pair itself."""
    own = data["pair"]["speculative"].get("num_speculative_tokens")
    wanted = data["protocol"].get("sweep", {}).get("num_speculative_tokens", [])
    return {f"k{k}": k for k in sorted(wanted) if k != own}


def for_arm(data: dict[str, Any], arm: str) -> dict[str, Any]:
    """The spec as one arm of a sweep runs it; the spec itself for every other arm."""
    if arm not in swept(data):
        return data
    speculative = data["pair"]["speculative"] | {"num_speculative_tokens": swept(data)[arm]}
    return data | {"pair": data["pair"] | {"speculative": speculative}}


def arm_order(data: dict[str, Any], block: int) -> list[str]:
    """Arms of one block (from 1), mirrored in every even block so that a linear drift cancels."""
    names = arms(data)
    return names if block % 2 else names[::-1]


def cell_order(data: dict[str, Any], block: int) -> list[Cell]:
    """Cells of one block: concurrency ascending, then the open loop, workloads in file order, mirrored in every even block."""
    protocol = data["protocol"]
    levels: list[Level] = sorted(protocol["load"]["concurrency"])
    levels += [OPEN] if "arrival" in protocol else []
    names = [w["id"] for w in protocol["workloads"]]
    cells = [Cell(level, name) for level in levels for name in names]
    return cells if block % 2 else cells[::-1]


def servers(data: dict[str, Any]) -> str:
    return str(data["protocol"]["design"].get("servers", "restart"))


def model_path(reference: str, folder: Path) -> str:
    """A local model's absolute path, or the hub id as it is."""
    local = folder / reference
    return str(local.resolve()) if local.is_dir() else reference


def speculative_config(data: dict[str, Any], folder: Path) -> dict[str, Any]:
    """What `--speculative-config` receives: the spec's own block with the draft's path resolved.

    The tree digest of a local draft is not a revision that vLLM knows, so it is left out; a commit stays.
    """
    config = dict(data["pair"]["speculative"])
    if "model" in config:
        config["model"] = model_path(config["model"], folder)
    if str(config.get("revision", "")).startswith("sha256:"):
        del config["revision"]
    return config


def flag(name: str, value: Any) -> list[str]:
    """One engine argument as command-line words: booleans as `--x` and `--no-x`, lists as several words, mappings as JSON."""
    word = "--" + name.replace("_", "-")
    if value is None:
        return []  # null leaves it at the engine's default
    if isinstance(value, bool):
        return [word] if value else ["--no-" + word[2:]]
    values = value if isinstance(value, list) else [value]
    return [word, *(json.dumps(v) if isinstance(v, dict | list) else str(v) for v in values)]


def beside(value: Any, folder: Path) -> Any:
    """An argument's value with the path of a file beside the spec made absolute: servers run in a folder of their own."""
    here = isinstance(value, str) and "\n" not in value and len(value) < 4096 and (folder / value).is_file()
    return str((folder / value).resolve()) if here else value


def engine_flags(data: dict[str, Any], folder: Path) -> list[str]:
    """Words that both arms share: the target, where it runs, the spec's engine arguments and what the runner owns."""
    target, placement = data["pair"]["target"], data["pair"]["placement"]
    words = ["--model", model_path(target["model"], folder), "--served-model-name", SERVED_NAME]
    if not str(target.get("revision", "sha256:")).startswith("sha256:"):
        words += ["--revision", target["revision"]]
    if "tokenizer" in target:
        words += ["--tokenizer", model_path(target["tokenizer"]["model"], folder)]
        if not str(target["tokenizer"].get("revision", "sha256:")).startswith("sha256:"):
            words += ["--tokenizer-revision", target["tokenizer"]["revision"]]
    for name in ("code_revision", "dtype", "quantization"):
        words += flag(name, target[name]) if name in target else []
    for name in ("tensor_parallel_size", "pipeline_parallel_size", "distributed_executor_backend"):
        words += flag(name, placement[name]) if name in placement else []
    for name, value in data["pair"].get("engine_args", {}).items():
        words += flag(name, beside(value, folder))
    words += flag("enable_prefix_caching", bool(data["protocol"]["load"].get("prefix_caching", False)))
    # Sampling is the spec's alone: a checkpoint's generation_config.json must not fill gaps.
    return [*words, "--generation-config", "vllm"]


def arm_words(data: dict[str, Any], arm: str, folder: Path) -> list[str]:
    """Engine words of one arm, without interpreter and socket."""
    words = engine_flags(data, folder)
    if arm == "pair" or arm in swept(data):
        words += ["--speculative-config", json.dumps(speculative_config(for_arm(data, arm), folder))]
    return words


def argv(data: dict[str, Any], arm: str, folder: Path, python: str, socket: Path) -> list[str]:
    """The command that starts one arm's server on a Unix socket."""
    return [python, "-m", "vllm.entrypoints.openai.api_server", *arm_words(data, arm, folder), "--uds", str(socket)]


def environment(data: dict[str, Any]) -> dict[str, str]:
    """The scrubbed environment of every server, without secrets: inherited, fixed, then the spec's own."""
    inherited = {name: os.environ[name] for name in INHERITED if name in os.environ}
    return inherited | FIXED | {k: str(v) for k, v in data["pair"].get("env", {}).items()}


def secrets() -> dict[str, str]:
    """Credentials that servers need to reach gated models; never written anywhere."""
    return {name: os.environ[name] for name in SECRETS if name in os.environ}


def requests_in_all(data: dict[str, Any]) -> int:
    """Measured requests of the whole run."""
    protocol = data["protocol"]
    of_a_block = sum(requests_at(protocol, cell.concurrency) for cell in cell_order(data, 1))
    return int(protocol["design"]["blocks"]) * len(arms(data)) * of_a_block


def each_level(protocol: dict[str, Any], counts: int | list[int]) -> str:
    """`64`, or `16 at concurrency 1, 64 at 8` where every level has a number of its own."""
    if isinstance(counts, int):
        return str(counts)
    (low, first), *others = sorted(zip(protocol["load"]["concurrency"], counts, strict=True))
    return ", ".join([f"{first} at concurrency {low}", *(f"{count} at {level}" for level, count in others)])


def server_starts(data: dict[str, Any]) -> int:
    """Server starts of the whole run, the unmeasured ones included: the first of each arm, and that of the draft alone."""
    blocks = int(data["protocol"]["design"]["blocks"])
    return len(arms(data)) * (1 + (blocks if servers(data) == "restart" else 1)) + draft_alone(data)


def draft_alone(data: dict[str, Any]) -> bool:
    """Whether the draft is started once more, alone and unmeasured, to say what it drafts."""
    return data["pair"]["speculative"]["method"] == "draft_model" and oracle.unpredicted(data) is None


def longest_answer(data: dict[str, Any]) -> int:
    """Most tokens that any prompt may be answered with."""
    outputs = [w["output"] for w in data["protocol"]["workloads"]]
    return max(math.ceil(int(o["tokens"]) * (1 + float(o.get("spread", 0)))) for o in outputs)


def seconds_estimate(data: dict[str, Any], start_s: float, tokens_per_s: float) -> float:
    """Rough wall time: server starts, then all tokens at the given single-stream speed and ideal batching up to 4.

    The open loop takes the time that its rate says, warm-up included.
    """
    protocol = data["protocol"]
    tokens = due = 0.0
    for workload in protocol["workloads"]:
        for level in protocol["load"]["concurrency"]:
            tokens += sum(lengths(workload["output"], requests_at(protocol, level), workload["id"], "estimate")) / min(level, 4)
        if "arrival" in protocol:
            due += (requests_at(protocol, OPEN) + warmup_at(protocol, OPEN)) / protocol["arrival"]["rate"]
    windows = int(protocol["design"]["blocks"]) * len(arms(data))
    return server_starts(data) * start_s + windows * (tokens / tokens_per_s + due)
