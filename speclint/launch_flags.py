"""The words of a launch line as arguments with typed values, as vLLM's own parser reads them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from speclint.launch_line import UNSET
from speclint.releases import known, load

# Short forms of vllm/engine/arg_utils.py and vllm/entrypoints/openai/cli_args.py; no release gave one two meanings.
SHORT = {
    "-q": "quantization", "-tp": "tensor_parallel_size", "-pp": "pipeline_parallel_size", "-sc": "speculative_config",
    "-n": "nnodes", "-r": "node_rank", "-dcp": "decode_context_parallel_size", "-pcp": "prefill_context_parallel_size",
    "-dp": "data_parallel_size", "-dpn": "data_parallel_rank", "-dpr": "data_parallel_start_rank",
    "-dpl": "data_parallel_size_local", "-dpa": "data_parallel_address", "-dpp": "data_parallel_rpc_port",
    "-dpb": "data_parallel_backend", "-dph": "data_parallel_hybrid_lb", "-dpe": "data_parallel_external_lb",
    "-dpm": "data_parallel_multi_port_external_lb", "-ep": "enable_expert_parallel", "-dc": "diffusion_config",
    "-cc": "compilation_config", "-ac": "attention_config", "-asc": "api_server_count",
}  # fmt: skip
SCALES = {letter: (1000**power, 1024**power) for power, letter in enumerate("kmgt", start=1)}
TRUTH = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument: its name with underscores, the key path after a dot, the flag as written, its value or what is wrong."""

    name: str
    flag: str
    value: Any = None
    keys: tuple[str, ...] = ()
    wrong: str = ""


def arguments(words: Sequence[str], version: str | None) -> tuple[list[str], list[Argument]]:
    """Bare words (a model, usually) and arguments in order. `version` is asked first for types, then all from new to old."""
    bare: list[str] = []
    found: list[Argument] = []
    for flag, given, after in _groups(words):
        argument, rest = _argument(flag, given, after, version) if flag else (None, after)
        found += [argument] if argument else []
        bare += rest
    return bare, found


def _groups(words: Sequence[str]) -> Iterator[tuple[str, str | None, list[str]]]:
    """Each flag with its `=value` and the words up to the next flag; the words before the first with an empty flag."""
    flag, given, after = "", None, list[str]()
    for word in words:
        if not re.match(r"--?[A-Za-z]", word):
            after.append(word)
            continue
        yield flag, given, after
        level = re.fullmatch(r"-O=?(\w+)", word)
        flag, equals, value = ("--optimization-level", "=", level[1]) if level else word.partition("=")
        given, after = (value if equals else None), []
    yield flag, given, after


def _argument(flag: str, given: str | None, after: list[str], version: str | None) -> tuple[Argument, list[str]]:
    head, *keys = flag.split(".")
    name = SHORT.get(head, head.lstrip("-").replace("-", "_"))
    if keys:
        words, rest = ([given], after) if given is not None else (after[:1], after[1:])
        path = tuple(key.rstrip("+") for key in keys)
        return Argument(name, flag, _dotted(keys, words), path, _unset(words)), rest
    schema = schema_of(name, version)
    if schema is None and name.startswith("no_") and (positive := schema_of(name[3:], version)):
        return (Argument(name[3:], flag, False), after) if "boolean" in kinds(positive) else (Argument(name, flag), after)
    count = _count(schema, after)
    words, rest = ([given], after) if given is not None else (after[:count], after[count:])
    try:
        return Argument(name, flag, read(schema or {}, words), wrong=_unset(words)), rest
    except ValueError as error:
        return Argument(name, flag, wrong=str(error)), rest


def _unset(words: Sequence[str]) -> str:
    return "its value is a variable that the text does not set" if any(UNSET in word for word in words) else ""


def _count(schema: dict[str, Any] | None, after: list[str]) -> int:
    """How many of the words after a flag are its values."""
    if schema is None or "array" in kinds(schema):
        return len(after)
    if "boolean" in kinds(schema):
        return 1 if after and (after[0].lower() in TRUTH or "string" in kinds(schema)) else 0
    return 1


def _dotted(keys: list[str], words: list[str]) -> Any:
    word = words[0] if words else ""
    if keys[-1].endswith("+"):
        return word.split(",")
    try:
        return json.loads(word)
    except ValueError:
        return number if (number := _integer(word)) is not None else word


@cache
def schema_of(name: str, version: str | None) -> dict[str, Any] | None:
    """Type, values and default of an argument, in the given release or else the newest that has it; None if none has."""
    for other in (version, *reversed(known())):
        release = load(other) if other else None
        for arguments in (release.engine_args, release.server_args) if release else ():
            if name in arguments:
                return dict(arguments[name])
    return None


def kinds(schema: dict[str, Any]) -> list[str]:
    """JSON types that a schema allows; none if it states none."""
    kind = schema.get("type", [])
    return kind if isinstance(kind, list) else [kind]


def read(schema: dict[str, Any], words: Sequence[str]) -> Any:
    """The value of an argument's words. Raises ValueError, without the value in its text, if they are none."""
    types = kinds(schema)
    if not words:
        if types and "boolean" not in types:
            raise ValueError("it has no value")
        return True
    if "array" in types and not (len(words) == 1 and words[0].startswith("[")):
        return [_scalar(word) for word in words]
    return _single(schema, types, words[0])


def _single(schema: dict[str, Any], types: list[str], word: str) -> Any:
    if word.lstrip()[:1] in ("{", "[") and ({"object", "array"} & {*types} or not types):
        return _json(word)
    if word in ("None", "") and "null" in types:
        return None
    if "boolean" in types and word.lower() in TRUTH:
        return TRUTH[word.lower()]
    if {"integer", "number"} & {*types}:
        return _number(word, types)
    if isinstance(schema.get("default"), int) and (number := _integer(word)) is not None:
        return number  # an IntEnum, listed by its names
    members = {str(member): member for member in schema.get("enum", ())}
    return members.get(word, word)


def _json(word: str) -> Any:
    try:
        return json.loads(word)
    except ValueError as error:
        raise ValueError(f"it is not JSON ({error})") from None


def _number(word: str, types: list[str]) -> Any:
    if (number := _integer(word)) is not None:
        return number
    try:
        return float(word) if "number" in types else word
    except ValueError:
        return word


def _integer(word: str) -> int | None:
    """An integer, with a decimal (`k`, `m`, `g`, `t`) or binary (`K`, …) suffix or without."""
    if re.fullmatch(r"-?\d+", word):
        return int(word)
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([kmgtKMGT])", word)
    return int(float(match[1]) * SCALES[match[2].lower()][match[2].isupper()]) if match else None


def _scalar(word: str) -> Any:
    try:
        value = json.loads(word)
    except ValueError:
        return word
    return value if isinstance(value, int | float) and not isinstance(value, bool) else word
