"""Memory before the run, from the lock alone: weights and KV cache of both sides, and what the draft costs in tokens.

The engine counts capacity as requests of the longest length that fit, times that length (vllm/v1/core/kv_cache_utils.py); so do
we. Approximations, also named in docs/lock.md: weights are spread evenly over GPUs; the engine's groups of full and sliding
layers are taken to need no padding; what activations, CUDA graphs and the runtime take on a GPU is in no config, so that figures
there are upper bounds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from speclint.contracts import CONTRACTS
from speclint.releases import load

GIB = 2**30
ELEMENT = {"float32": 4, "float": 4, "float16": 2, "half": 2, "bfloat16": 2}
KV_ELEMENT = ELEMENT | {"fp8": 1, "fp8_e4m3": 1, "fp8_e5m2": 1}
FLOATS = {"F64": 8, "F32": 4, "BF16": 2, "F16": 2}
"""Stored types that the engine converts to the type it serves in, with their bytes."""
BLOCK = {"cpu": 128, "cuda": 16}
"""Tokens of a cache block, where the spec does not say; MLA has 16 on a CPU too."""
IN_FLIGHT = {"cpu": 2048, "cuda": 2 * 8192}
"""Tokens that one request may hold beyond its window, where the spec sets no max_num_batched_tokens: the server's default, twice
with asynchronous scheduling."""


class Unknown(Exception):
    """A figure that the lock or this machine cannot give; the message says why."""


@dataclass(frozen=True, slots=True)
class Cache:
    """KV cache of one model on one device: bytes per token of the layers that keep all, and of those that keep a window."""

    full: int
    sliding: int = 0
    window: int = 0

    def request_bytes(self, length: int, block: int, in_flight: int) -> int:
        """Bytes of one request of `length` tokens, in whole blocks; a window may begin in the middle of one."""
        kept = min(self.window - 1 + in_flight, length)
        return block * (self.full * -(-length // block) + self.sliding * (-(-kept // block) + 1))


@dataclass(frozen=True, slots=True)
class Room:
    """What is left for the KV cache, bytes: of each arm, and where the number comes from."""

    target: int
    pair: int
    source: str
    at_most: bool = False


@dataclass(frozen=True, slots=True)
class Estimate:
    """Bytes of one device, and capacities in tokens (None where the room is not known, with the reason in `unknown`)."""

    target_weights: int
    draft_weights: int
    target_cache: Cache
    draft_cache: Cache
    room: Room | None
    unknown: str
    target_tokens: int | None
    pair_tokens: int | None


def estimate(data: dict[str, Any], gpu_bytes: int | None = None) -> Estimate:
    """Memory of a spec with a lock; `gpu_bytes`: memory of a GPU here. Raises Unknown without what it rests on."""
    target, draft = _locked(data, "target"), data["lock"].get("draft")
    ours = served_weights(data, target)
    theirs = served_weights(data, draft) if draft else 0
    cache, more = cache_of(data, target), _draft_cache(data, target, draft)
    try:
        room, unknown = _room(data, ours, theirs, gpu_bytes), ""
    except Unknown as error:
        room, unknown = None, str(error)
    alone = tokens(data, target, room.target, [cache]) if room else None
    both = tokens(data, target, room.pair, [cache, more]) if room else None
    return Estimate(ours, theirs, cache, more, room, unknown, alone, both)


def served_weights(data: dict[str, Any], model: dict[str, Any]) -> int:
    """Bytes of a model's weights on each device, in the type they are served in. Raises Unknown."""
    weights = model["weights"]
    if "bytes" not in weights:
        raise Unknown("the lock could not read the weights' size")
    by_type = weights.get("dtypes")
    if by_type is None or model["config"].get("quantization"):
        return int(weights["bytes"]) // _devices(data)
    element = _element(data)
    size = sum(n // FLOATS[kind] * element if kind in FLOATS else n for kind, n in by_type.items())
    return int(size) // _devices(data)


def cache_of(data: dict[str, Any], model: dict[str, Any], layers: int | None = None, kind: str | None = None) -> Cache:
    """KV cache of a model, or of `layers` layers like its own; `kind` is a cache type other than the target's. Raises Unknown."""
    config = model["config"]
    attention = config.get("attention") or _all_full(data, config)
    if layers is not None:
        attention = {"full": layers, **({"mla_width": attention["mla_width"]} if "mla_width" in attention else {})}
    layer = _layer_bytes(data, config, attention, _kv_element(data, kind))
    return Cache(attention.get("full", 0) * layer, attention.get("sliding", 0) * layer, attention.get("window", 0))


def tokens(data: dict[str, Any], target: dict[str, Any], room: int, caches: list[Cache]) -> int:
    """Capacity in tokens: requests of the longest length that fit, times that length. Raises Unknown."""
    length = data["pair"].get("engine_args", {}).get("max_model_len") or target["config"].get("max_position_embeddings")
    if not isinstance(length, int):
        raise Unknown("neither the spec nor the config says how long a request may be")
    block, in_flight = _block(data, target), _in_flight(data)
    per_request = sum(cache.request_bytes(length, block, in_flight) for cache in caches)
    kinds = (sum(cache.full for cache in caches), sum(cache.sliding for cache in caches))
    page = block * min((kind for kind in kinds if kind), default=0)  # full and sliding layers share one pool of equal pages
    return room // page * page * length // per_request if page else 0


def _locked(data: dict[str, Any], role: str) -> dict[str, Any]:
    model = data.get("lock", {}).get(role)
    if not isinstance(model, dict):
        raise Unknown("the spec has no lock; `speclint lock` writes it")
    return model


def _all_full(data: dict[str, Any], config: dict[str, Any]) -> dict[str, Any]:
    """Locks of format 1 do not say how layers attend: all to everything is then assumed."""
    if data["lock"].get("format", 1) > 1 or "num_hidden_layers" not in config:
        raise Unknown("the config lays its layers out in a way that is not known here")
    return {"full": config["num_hidden_layers"]}


def _layer_bytes(data: dict[str, Any], config: dict[str, Any], attention: dict[str, Any], element: int) -> int:
    """Bytes per token and layer on one device: keys and values of its share of the heads, or MLA's one compressed row."""
    if "mla_width" in attention:
        return int(attention["mla_width"]) * element
    if not {"num_key_value_heads", "head_dim"} <= config.keys():
        raise Unknown("the config does not say how many key and value heads it has")
    heads = max(1, config["num_key_value_heads"] // _tensor_parallel(data))
    return 2 * int(heads) * int(config["head_dim"]) * element


def _draft_cache(data: dict[str, Any], target: dict[str, Any], draft: dict[str, Any] | None) -> Cache:
    speculative = data["pair"]["speculative"]
    method = "mtp" if str(speculative["method"]).endswith("mtp") else speculative["method"]
    if method not in CONTRACTS or not CONTRACTS[method].keeps_kv:
        return Cache(0)
    model = draft or target
    layers = model["config"].get("mtp_layers") if method == "mtp" else None
    if layers is None and draft is None:
        raise Unknown("the config does not say how many layers draft")
    return cache_of(data, model, layers, speculative.get("kv_cache_dtype"))


def _room(data: dict[str, Any], target: int, draft: int, gpu_bytes: int | None) -> Room:
    pair = data["pair"]
    if int(pair["placement"].get("pipeline_parallel_size", 1)) > 1:
        raise Unknown("with pipeline parallelism the stages differ")
    args, space = pair.get("engine_args", {}), str(pair.get("env", {}).get("VLLM_CPU_KVCACHE_SPACE", ""))
    if pair["placement"]["device"] == "cpu" and space.isdecimal():
        return _same(int(space) * GIB, "VLLM_CPU_KVCACHE_SPACE")
    if args.get("kv_cache_memory_bytes"):
        return _same(int(args["kv_cache_memory_bytes"]), "kv_cache_memory_bytes")
    if pair["placement"]["device"] == "cpu":
        raise Unknown("set VLLM_CPU_KVCACHE_SPACE under pair.env: without it the engine takes what it finds free")
    if gpu_bytes is None:
        raise Unknown("there is no GPU here to read the memory of")
    share = float(args.get("gpu_memory_utilization") or _default_utilization(pair["engine"]["version"]))
    limit = int(gpu_bytes * share)
    return Room(max(0, limit - target), max(0, limit - target - draft), f"{share:.0%} of this GPU, weights taken off", True)


def _same(size: int, source: str) -> Room:
    return Room(size, size, source)


def _default_utilization(version: str) -> float:
    release = load(version)
    return float(release.engine_args["gpu_memory_utilization"]["default"]) if release else 0.9


def _element(data: dict[str, Any]) -> int:
    """Bytes of a number as served: `auto` takes the config's type, and half of float32."""
    stated = data["pair"]["target"].get("dtype", "auto")
    own = str(data["lock"]["target"]["config"].get("dtype", "bfloat16"))
    if stated == "auto":
        return 2 if own == "float32" else ELEMENT.get(own, 2)
    return ELEMENT[stated]


def _kv_element(data: dict[str, Any], kind: str | None) -> int:
    name = kind or data["pair"].get("engine_args", {}).get("kv_cache_dtype", "auto")
    if name == "auto":
        return _element(data)
    if name not in KV_ELEMENT:
        raise Unknown(f"the size of a cache in `{name}` is not known here")
    return KV_ELEMENT[name]


def _block(data: dict[str, Any], target: dict[str, Any]) -> int:
    stated = data["pair"].get("engine_args", {}).get("block_size")
    mla = "mla_width" in target["config"].get("attention", {})
    return stated if isinstance(stated, int) else 16 if mla else BLOCK.get(data["pair"]["placement"]["device"], 16)


def _in_flight(data: dict[str, Any]) -> int:
    device = data["pair"]["placement"]["device"]
    stated = data["pair"].get("engine_args", {}).get("max_num_batched_tokens")
    if not isinstance(stated, int):
        return IN_FLIGHT.get(device, IN_FLIGHT["cpu"])
    return stated if device == "cpu" else 2 * stated


def _tensor_parallel(data: dict[str, Any]) -> int:
    return int(data["pair"]["placement"].get("tensor_parallel_size", 1))


def _devices(data: dict[str, Any]) -> int:
    return _tensor_parallel(data) * int(data["pair"]["placement"].get("pipeline_parallel_size", 1))
