"""What a checkpoint's weights are, from file names, the index and the safetensors headers; tensors are never read."""

from __future__ import annotations

import json
import math
import re
import struct
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from speclint.lock.errors import LockError
from speclint.lock.resolve import Artifact, asked, hub, offline

INDEX = "model.safetensors.index.json"
PICKLE_INDEX = "pytorch_model.bin.index.json"
MAX_HEADER = 100_000_000
EMBEDDINGS = ("embed_tokens.weight", "wte.weight", "word_embeddings.weight", "embed_in.weight", "tok_embeddings.weight")
OUTPUTS = ("lm_head.weight", "embed_out.weight")
OTHER_TOWERS = re.compile(r"vis(ion|ual)|audio|image")


@dataclass(frozen=True, slots=True)
class Tensor:
    """One row of a safetensors header; `size` in bytes."""

    dtype: str
    shape: tuple[int, ...]
    size: int


Headers = dict[str, Tensor]


def weight_facts(artifact: Artifact, config: dict[str, Any]) -> dict[str, Any]:
    """The `weights` part of a locked model (see `speclint.lock`); `config` is its locked config. Raises LockError."""
    kind = weight_format(artifact.folder)
    if kind == "none" and artifact.kind == "hub" and not offline():
        kind = "safetensors"
    headers = _headers(artifact) if kind == "safetensors" else None
    facts: dict[str, Any] = {"format": kind, **_sizes(artifact.folder, kind, headers)}
    if headers is not None:
        facts |= _contents(headers, config)
    if kind == "safetensors" and _pickles(artifact.folder):
        facts["pickle_too"] = True
    return facts


def weight_format(folder: Path) -> str:
    """What the engine would load: safetensors before pickle; from the files or, in a hub cache, the index."""
    if (folder / INDEX).is_file() or any(folder.glob("*.safetensors")):
        return "safetensors"
    if (folder / PICKLE_INDEX).is_file() or _pickles(folder):
        return "pickle"
    return "gguf" if any(folder.glob("*.gguf")) else "none"


def read_header(path: Path) -> Headers:
    """Tensors of one safetensors file by its header. Raises LockError if the file is not whole."""
    size = path.stat().st_size
    with path.open("rb") as file:
        (length,) = struct.unpack("<Q", file.read(8).ljust(8, b"\0"))
        raw = file.read(length) if 0 < length <= min(MAX_HEADER, size - 8) else b""
    try:
        rows = json.loads(raw)
        tensors = {name: _tensor(row) for name, row in rows.items() if name != "__metadata__"}
        end = max((row["data_offsets"][1] for name, row in rows.items() if name != "__metadata__"), default=0)
    except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        raise LockError(f"{path} is not a safetensors file", "download or convert it again") from error
    if 8 + length + end != size:
        raise LockError(f"{path} is cut off or padded: {size} bytes, {8 + length + end} announced", "download it again")
    return tensors


def _tensor(row: dict[str, Any]) -> Tensor:
    start, end = row["data_offsets"]
    return Tensor(str(row["dtype"]), tuple(int(n) for n in row["shape"]), end - start)


def _headers(artifact: Artifact) -> Headers | None:
    """All tensors of the checkpoint; from the files if they are here, else from the hub, else None."""
    shards = _shards(artifact.folder)
    missing = [shard.name for shard in shards if not shard.is_file()]
    if shards and not missing:
        return {name: tensor for shard in shards for name, tensor in read_header(shard).items()}
    if artifact.kind == "local":
        names = ", ".join(missing[:3])
        raise LockError(f"{artifact.name} lacks {names}, named in {INDEX}", "copy the missing files, or fix the index")
    return None if offline() else _remote_headers(artifact)


def _shards(folder: Path) -> list[Path]:
    index = _index(folder / INDEX)
    names = set(index["weight_map"].values()) if index else {path.name for path in folder.glob("*.safetensors")}
    return [folder / name for name in sorted(names)]


def _remote_headers(artifact: Artifact) -> Headers | None:
    """Headers alone, fetched by range."""
    try:
        found = asked(artifact.name, lambda: hub().get_safetensors_metadata(artifact.name, revision=artifact.revision))
    except hub().errors.NotASafetensorsRepoError:
        return None
    return {
        name: Tensor(str(info.dtype), tuple(info.shape), info.data_offsets[1] - info.data_offsets[0])
        for file in found.files_metadata.values()
        for name, info in file.tensors.items()
    }


def _index(path: Path) -> dict[str, Any] | None:
    if not path.is_file():
        return None
    try:
        index: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if all(isinstance(name, str) and Path(name).name == name for name in index["weight_map"].values()):
            return index
    except (ValueError, KeyError, TypeError, AttributeError):
        pass
    raise LockError(f"{path} is not a weight index", "download it again")


def _pickles(folder: Path) -> list[Path]:
    return [path for pattern in ("pytorch_model*.bin", "*.pt", "*.pth") for path in folder.glob(pattern)]


def _sizes(folder: Path, kind: str, headers: Headers | None) -> dict[str, Any]:
    if headers is not None:
        by_type: Counter[str] = Counter()
        for tensor in headers.values():
            by_type[tensor.dtype] += tensor.size
        return {"bytes": by_type.total(), "dtypes": dict(sorted(by_type.items()))}
    index = _index(folder / (INDEX if kind == "safetensors" else PICKLE_INDEX)) or {}
    stated = index.get("metadata", {}).get("total_size")
    files = _pickles(folder) if kind == "pickle" else list(folder.glob("*.gguf"))
    size = stated if kind == "safetensors" else sum(path.stat().st_size for path in files) or stated
    return ({"bytes": size} if size is not None else {}) | ({"headers": "unread"} if kind == "safetensors" else {})


def _contents(headers: Headers, config: dict[str, Any]) -> dict[str, int]:
    """Rows of the vocabulary's tensors and what a draft head or MTP layer brings along."""
    maps = [name for name in headers if name.rpartition(".")[2] == "d2t"]
    fused = [name for name in headers if f".{name}".endswith(".fc.weight")]
    found = {
        "embedding_rows": _rows(headers, EMBEDDINGS),
        "output_rows": _rows(headers, OUTPUTS),
        "draft_map_rows": headers[maps[0]].shape[0] if maps else None,
        "fused_width": headers[fused[0]].shape[-1] if fused else None,
    }
    if config.get("mtp_layers"):
        found["mtp_tensors"] = sum(_is_mtp(name, config["num_hidden_layers"]) for name in headers)
    return {name: rows for name, rows in found.items() if rows is not None}


def _rows(headers: Headers, endings: Iterable[str]) -> int | None:
    """Rows of the language model's own table: the shortest name, so that towers and drafts within do not count."""
    names = [n for end in endings for n in headers if f".{n}".endswith(f".{end}") and not OTHER_TOWERS.search(n)]
    shapes = [headers[name].shape for name in sorted(names, key=lambda name: (name.count("."), name))]
    return next((shape[0] for shape in shapes if math.prod(shape)), None)


def _is_mtp(name: str, layers: int) -> bool:
    """MTP weights stand under `mtp`, or as layers after the last one of the model."""
    numbered = re.search(r"(?:^|\.)layers\.(\d+)\.", name)
    return re.search(r"(^|\.)mtp", name) is not None or (numbered is not None and int(numbered[1]) >= layers)
