"""A launch line as the `pair` section of a spec: what is carried over, what is dropped, and what could not be kept."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from speclint.emit import section
from speclint.launch_flags import Argument, arguments
from speclint.launch_line import UNSET, LaunchLine, launch_lines
from speclint.methods import LOOKUP
from speclint.releases import Release, known, load
from speclint.retired import FLAGS, NEVER_RELEASED
from speclint.rules.sl405_method_overridden_by_name import WORDS
from speclint.rules.sl416_set_twice import HOMES
from speclint.rules.sl424_tool_owned_argument import OWNED, VARIABLES
from speclint.rules.sl426_environment_outside_spec import PASSED

VERSION = re.compile(r"vllm[\w-]*(?:==|:v?)(\d+(?:\.\d+){2,3}(?:\.post\d+)?)")
SECRET = re.compile(r"(?i)(?:^|_)(?:api)?(?:key|token|secret|password|credentials?)(?:_|$)")
NGRAM = ("ngram", "[ngram]")
HERE = {**HOMES, "model": ("pair", "target", "model"), "model_tag": ("pair", "target", "model"),
        "revision": ("pair", "target", "revision")}  # fmt: skip
Words = tuple[tuple[str, str], ...]


class NoLaunchLine(ValueError):
    """A text that starts no vLLM server."""


@dataclass(frozen=True, slots=True)
class Translation:
    """`pair` as a spec has it; rows are (flag or variable, why) and never hold a value that was dropped."""

    pair: dict[str, Any]
    version: str | None
    """Release that the text names (an image's tag, a requirement), known here or not."""
    dropped: Words
    """What a spec does not state: the runner sets it, or it belongs to the API server."""
    kept_apart: Words
    """What changes the engine and has no place in the result."""
    assumed: Words
    """(JSON Pointer, why) of values that the line does not state."""


@dataclass(slots=True)
class _Draft:
    """The result while it is put together."""

    release: Release
    pair: dict[str, Any]
    dropped: dict[str, str] = field(default_factory=dict)
    apart: dict[str, str] = field(default_factory=dict)
    assumed: dict[str, str] = field(default_factory=dict)


def translate(text: str) -> Translation:
    """Read a launch line, or a shell script, compose or Kubernetes file that holds one (the first that speculates).

    Raises NoLaunchLine if there is none.
    """
    lines = launch_lines(text)
    if not lines:
        raise NoLaunchLine("no `vllm serve`, api_server module or vLLM image is started here")
    read = [(line, *_read(line, text)) for line in lines]
    line, version, bare, given = next((row for row in read if any(map(_speculates, row[3]))), read[0])
    draft = _started(version)
    _target(draft, bare)
    for argument in given:
        _place(draft, argument)
    _environment(draft, line)
    _speculative(draft)
    _device(draft, line)
    if len(lines) > 1:
        draft.apart["launch lines"] = f"{len(lines)} are in the text, this is of one"
    return Translation(_ordered(draft.pair), version, *(tuple(d.items()) for d in (draft.dropped, draft.apart, draft.assumed)))


def _read(line: LaunchLine, text: str) -> tuple[str | None, list[str], list[Argument]]:
    match = VERSION.search(line.image) or VERSION.search(text)
    version = match[1] if match else None
    return version, *arguments(line.words, version)


def _speculates(argument: Argument) -> bool:
    return argument.name == "speculative_config" or argument.name.startswith("spec_") or argument.name in FLAGS


def _started(version: str | None) -> _Draft:
    release = load(version or "") or load(known()[-1])
    assert release is not None  # the releases of this package hold the newest of them
    engine: dict[str, Any] = {"name": "vllm"}
    draft = _Draft(release, {"engine": engine, "target": {}, "speculative": {}, "engine_args": {}, "env": {}, "placement": {}})
    if version and load(version):
        engine["version"] = version
    else:
        why = f"vLLM {version} is not known here" if version else "the text names no release"
        draft.assumed["/pair/engine/version"] = f"{why}; settings are read as {release.version} has them"
    return draft


def _target(draft: _Draft, bare: list[str]) -> None:
    for index, word in enumerate(bare):
        if index == 0 and UNSET not in word:
            draft.pair["target"]["model"] = word
        else:
            draft.apart[f"word {index + 1}"] = "it belongs to no flag, or is a variable that the text does not set"


def _place(draft: _Draft, argument: Argument) -> None:
    """Put one argument where it belongs."""
    name, flag, value = argument.name, argument.flag, argument.value
    if name in OWNED and name not in (*HERE, "speculative_config"):
        draft.dropped[flag] = OWNED[name]
    elif argument.wrong:
        draft.apart[flag] = argument.wrong
    elif name == "speculative_config" or name in FLAGS:
        _place_speculative(draft, argument)
    elif name in HERE:
        _set(draft.pair, HERE[name][1:], value)
    elif name in draft.release.engine_args:
        _set(draft.pair, ("engine_args", name, *argument.keys), value)
    else:
        _leave(draft, argument)


def _leave(draft: _Draft, argument: Argument) -> None:
    name, release = argument.name, draft.release
    if name == "config":
        draft.apart[argument.flag] = "the file may hold more arguments; it is not read"
    elif name in release.server_args:
        draft.dropped[argument.flag] = "it belongs to the API server, not to the engine"
    else:
        draft.apart[argument.flag] = NEVER_RELEASED.get(name) or f"vLLM {release.version} has no such argument"


def _place_speculative(draft: _Draft, argument: Argument) -> None:
    settings, retired = draft.pair["speculative"], FLAGS.get(argument.name)
    if retired and retired.key in draft.release.settings:
        settings[retired.key] = argument.value
    elif retired:
        ended = f"its key `{retired.key}` ended with {retired.key_last}" if retired.key else "it has no successor"
        draft.apart[argument.flag] = ended + (f": {retired.note}" if retired.note else "")
    elif argument.keys:
        _set(settings, tuple(key.replace("-", "_") for key in argument.keys), argument.value)
    elif isinstance(argument.value, dict):
        settings.update({key.replace("-", "_"): value for key, value in argument.value.items()})
    else:
        draft.apart[argument.flag] = "its value is not a mapping"


def _set(holder: dict[str, Any], keys: tuple[str, ...], value: Any) -> None:
    for key in keys[:-1]:
        child = holder.get(key)
        holder[key] = holder = child if isinstance(child, dict) else {}
    old = holder.get(keys[-1])
    joined = isinstance(old, list) and isinstance(value, list) and len(keys) > 2  # `--x.key+ a --x.key+ b`
    holder[keys[-1]] = [*old, *value] if joined and isinstance(old, list) else value


def _environment(draft: _Draft, line: LaunchLine) -> None:
    for name, value in line.env.items():
        if name in VARIABLES or SECRET.search(name):
            draft.dropped[name] = VARIABLES.get(name, "secrets never stand in a spec")
        elif not name.startswith(PASSED):
            draft.dropped[name] = "it is not passed to servers"
        elif not value or UNSET in value:
            draft.apart[name] = "the text does not state its value"
        else:
            draft.pair["env"][name] = value


def _speculative(draft: _Draft) -> None:
    """The method that vLLM would find where none is written, and the vocabulary that goes with it."""
    settings = draft.pair["speculative"]
    if not settings:
        draft.apart["speculation"] = "the line starts none; a pair needs `speculative`"
    model = settings.get("model")
    if model in NGRAM:
        del settings["model"]
        settings["method"] = "ngram"
    elif "method" not in settings and isinstance(model, str):
        settings["method"] = next((method for word, method, _ in WORDS if word in model.lower()), "draft_model")
        draft.assumed["/pair/speculative/method"] = "what vLLM makes of a draft model without a method"
    mapped = settings.get("use_heterogeneous_vocab") is True
    mode = "none" if settings.get("method") in LOOKUP else "heterogeneous" if mapped else "shared"
    draft.pair["vocabulary"] = {"mode": mode}


def _device(draft: _Draft, line: LaunchLine) -> None:
    placement = draft.pair["placement"]
    if placement.get("device") in ("cpu", "cuda"):
        return
    named = line.env.get("VLLM_TARGET_DEVICE") == "cpu" or any(name.startswith("VLLM_CPU_") for name in line.env)
    placement["device"] = "cpu" if named or "cpu" in line.image else "cuda"
    draft.assumed["/pair/placement/device"] = "from image and environment; the line does not say"


def _ordered(pair: dict[str, Any]) -> dict[str, Any]:
    """The section's keys in the order of the schema; empty mappings of options are left out."""
    order = ("engine", "target", "speculative", "vocabulary", "engine_args", "env", "placement")
    first = ("method", "model", "revision")
    settings = pair["speculative"]
    pair["speculative"] = {key: settings[key] for key in (*(k for k in first if k in settings), *settings)}
    pair["placement"] = {"device": pair["placement"].pop("device"), **pair["placement"]}
    return {key: pair[key] for key in order if pair[key] or key not in ("engine_args", "env")}


def render(translation: Translation) -> str:
    """The `pair` section as YAML, with comments on what was dropped, kept apart, assumed, and is still to be written."""
    notes = [f"dropped {word}: {why}" for word, why in translation.dropped]
    notes += [f"not carried over {word}: {why}" for word, why in translation.kept_apart]
    notes += [f"assumed {path}: {why}" for path, why in translation.assumed]
    comments = "".join(f"# {_printable(note)}\n" for note in notes)
    return comments + "".join(map(_completed, _blocks(translation.pair)))


def _printable(text: str) -> str:
    return "".join(letter if letter.isprintable() else " " for letter in text)


def _blocks(pair: dict[str, Any]) -> list[tuple[str, str, dict[str, Any]]]:
    lines = section("pair", pair).splitlines(keepends=True)
    blocks: list[list[str]] = []
    for line in lines:
        if re.match(r"  \S", line) or not blocks:
            blocks.append([])
        blocks[-1].append(line)
    names = [block[0].strip().partition(":")[0] for block in blocks]
    return [(name, "".join(block), pair.get(name, {})) for name, block in zip(names, blocks, strict=True)]


def _completed(block: tuple[str, str, dict[str, Any]]) -> str:
    """A block of the section with a comment where something must still be written; `speclint check` asks for the same."""
    name, text, value = block
    pinned = "revision" in value or "model" not in value
    if name == "engine" and "version" not in value:
        return text + '    # version: "X.Y.Z", the release to run\n'
    if name in ("target", "speculative") and not pinned:
        return text + "    # revision: commit of the hub id, or the tree digest of the folder (SL202)\n"
    return text
