"""From what a spec names to a folder of small files at a fixed revision: config, tokenizer, index; never weights.

A hub id is looked up in the hub cache first and fetched only if it is not there; HF_HUB_OFFLINE is respected.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

from speclint.lock.errors import LockError
from speclint.lock.tree import file_digest, tree_digest

T = TypeVar("T")

RECORDED = (
    "config.json",
    "generation_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "tokenizer.model",
    "tekken.json",
    "chat_template.jinja",
    "model.safetensors.index.json",
)
FETCHED = ["*.json", "*.jinja", "*.model", "*.model.v*", "*.tiktoken", "*.txt", "README.md"]
COMMIT = re.compile(r"[0-9a-f]{40}")
HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*(?:/[A-Za-z0-9][\w.-]*)?")


@dataclass(frozen=True, slots=True)
class Artifact:
    """A model or tokenizer at a fixed revision: a commit for the hub, a tree digest for a local folder."""

    name: str
    kind: Literal["local", "hub"]
    revision: str
    folder: Path


def resolve(name: str, revision: str | None, beside: Path) -> Artifact:
    """The artifact that `name` means in a spec file of the folder `beside`. Raises LockError.

    A branch, tag or short hash is resolved to its commit; the stated revision of a local folder is not compared here.
    """
    folder = beside / name
    if folder.is_dir():
        return Artifact(name, "local", tree_digest(folder), folder)
    _refuse_gguf(name)
    local = not is_hub_id(name) or (revision or "").startswith("sha256:")
    if folder.exists() or local:
        what = "is a file, not a folder" if folder.exists() else "does not exist"
        raise LockError(f"{name} {what}", f"paths start at the spec file's folder, {beside.resolve()}")
    commit = _commit(name, revision or "main")
    return Artifact(name, "hub", commit, _snapshot(name, commit))


def _refuse_gguf(name: str) -> None:
    """A single file, or `org/repo:quantization` and `org/repo/file.gguf`, by which a hub repository of such files is named."""
    if name.lower().endswith(".gguf") or re.search(r"gguf:[\w.-]+$", name, re.IGNORECASE):
        why = "it holds neither config.json nor the tokenizer's own files"
        hint = "pin the safetensors checkpoint that it was converted from; vLLM 0.32.0 itself has no loader for GGUF"
        raise LockError(f"{name} is a GGUF file, which cannot be locked: {why}", hint)


def is_hub_id(name: str) -> bool:
    """Whether `name` can be a hub id: `org/name` or `name`, no path that starts with a dot or a slash."""
    return HUB_ID.fullmatch(name) is not None


def offline() -> bool:
    """Whether the hub must not be asked (HF_HUB_OFFLINE)."""
    return bool(hub().constants.is_offline_mode())


def recorded_files(folder: Path) -> dict[str, str | None]:
    """sha256 of each file of `RECORDED`, None where there is none."""
    paths = ((name, folder / name) for name in RECORDED)
    return {name: "sha256:" + file_digest(path) if path.is_file() else None for name, path in paths}


def hub() -> Any:
    """The `huggingface_hub` package. Raises LockError if the extra is not installed."""
    try:
        import huggingface_hub
        import huggingface_hub.constants
        import huggingface_hub.errors
    except ModuleNotFoundError as error:
        raise LockError("huggingface_hub is not installed", "pip install 'specpair[lock]'") from error
    return huggingface_hub


def _commit(name: str, revision: str) -> str:
    if COMMIT.fullmatch(revision):
        return revision
    cached = _cached_commit(name, revision)
    return cached or str(asked(name, lambda: hub().HfApi().model_info(name, revision=revision).sha))


def _cached_commit(name: str, revision: str) -> str | None:
    """Commit of a branch, tag or short hash by the cache's own books, or None."""
    repo = Path(hub().constants.HF_HUB_CACHE) / ("models--" + name.replace("/", "--"))
    ref = repo / "refs" / revision
    if ref.is_file():
        return ref.read_text(encoding="utf-8").strip()
    if not re.fullmatch(r"[0-9a-f]{7,39}", revision) or not (repo / "snapshots").is_dir():
        return None
    found = [entry.name for entry in (repo / "snapshots").iterdir() if entry.name.startswith(revision)]
    return found[0] if len(found) == 1 else None


def _snapshot(name: str, commit: str) -> Path:
    """Folder of the snapshot in the cache; its small files are fetched if they are not there."""
    wanted: dict[str, Any] = {"revision": commit, "allow_patterns": FETCHED, "ignore_patterns": ["*/*"]}
    try:
        folder = Path(hub().snapshot_download(name, local_files_only=True, **wanted))
        if (folder / "config.json").is_file():
            return folder
    except hub().errors.LocalEntryNotFoundError:
        pass
    return Path(asked(name, lambda: hub().snapshot_download(name, **wanted)))


def asked(name: str, question: Callable[[], T]) -> T:
    """The hub's answer; what can go wrong on the way becomes a LockError with a way out."""
    errors = hub().errors
    try:
        return question()
    except errors.GatedRepoError as error:
        hint = f"accept its terms at {hub().constants.ENDPOINT}/{name}, then `hf auth login` or set HF_TOKEN"
        raise LockError(f"{name} is gated", hint) from error
    except errors.RevisionNotFoundError as error:
        raise LockError(f"{name} has no such revision", "give a commit that the repository's history shows") from error
    except errors.RepositoryNotFoundError as error:
        hint = "check the spelling; if it is private, `hf auth login` or set HF_TOKEN; if it is local, check the path"
        raise LockError(f"{name} is neither a local folder nor a model on the hub that you may see", hint) from error
    except (errors.OfflineModeIsEnabled, errors.LocalEntryNotFoundError) as error:
        why = "HF_HUB_OFFLINE is set" if offline() else "the hub cannot be reached"
        hint = f"once, where the hub can be reached: hf download {name} --include '*.json' '*.jinja' '*.model'"
        raise LockError(f"{name} is not in the hub cache, and {why}", hint) from error
    except (errors.HFValidationError, errors.HTTPError, OSError) as error:
        message = f"{name} could not be looked up: {_first_line(error)}"
        raise LockError(message, "check the id and the connection") from error


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
