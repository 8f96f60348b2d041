"""What one release makes of a spec's settings, beyond what rules find: taken or refused, runner, scheduling, defaults."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from speclint.arms import ASYNC_OFF, ENGINE_V0, SMALLER_BUDGET, Effect
from speclint.diagnostic import Severity, pointer
from speclint.methods import heterogeneous
from speclint.release_values import is_choice, refusals
from speclint.releases import Release
from speclint.requests import parameters
from speclint.spec import Spec

METHOD = "/pair/speculative/method"
VERSION = "/pair/engine/version"
ARG_UTILS, CONFIG = "vllm/engine/arg_utils.py", "vllm/config/vllm.py"
UNKNOWN = {
    "dropped": "is dropped without a word: the release does not know it",
    "refused": "stops the start: the release does not know it",
    "type_error": "stops the start with a TypeError: the release does not know it",
}
SAMPLING = {
    "refused": "is refused with every request that is speculated",
    "ignored": "is ignored while speculation is on",
    "stops_drafting": "stops drafting",
}
# Defaults that move what a run measures; all others that moved choose among equivalents or concern other features.
DEFAULTS = {"gpu_memory_utilization": "the KV cache's size", "disable_cascade_attn": "the attention of shared prefixes"}
SAME = ({"strict", "standard"},)  # renamed in 0.21.0
SWITCHED = {True: "is on", False: "is off"}


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a release does with one thing. Two are equal if the thing fares alike."""

    path: str
    text: str
    severity: Severity = field(default="warning", compare=False)
    """How much it weighs for the spec to come to mean this."""
    source: str = field(default="", compare=False)


def meanings(spec: Spec, release: Release) -> dict[str, Meaning]:
    """Subject, in words, to what the release does with it."""
    parts = (_settings, _method, _setting_defaults, _arguments, _argument_defaults, _sampling, _engine)
    return {subject: meaning for part in parts for subject, meaning in part(spec, release)}


Meanings = Iterator[tuple[str, Meaning]]


def _settings(spec: Spec, release: Release) -> Meanings:
    settings = {key: value for key, value in spec.speculative.items() if key != "method"}
    refused, schema = refusals(release, settings), release.speculative_config
    for key, value in settings.items():
        path = pointer("pair", "speculative", key)
        name = key.replace("-", "_") if schema["x-hyphens"] else key
        if name not in schema["properties"] and name not in schema["x-internal"]:
            yield f"setting `{key}`", Meaning(path, UNKNOWN[release.unknown_keys], "error", "vllm/config/speculative.py")
        elif key in refused:
            text = f"stops the start: `{value}` is {refused[key]}"
            yield f"setting `{key}`", Meaning(path, text, "error", "vllm/config/speculative.py")
        else:
            yield f"setting `{key}`", Meaning(path, "is taken", "info")


def _method(spec: Spec, release: Release) -> Meanings:
    method = spec.method or ""
    if _runs(method, release):
        read = release.method_aliases.get(method, method)
        yield f"method `{method}`", Meaning(METHOD, f"is read as `{read}`", "info", "vllm/config/speculative.py")


def _runs(method: str, release: Release) -> bool:
    return method in release.methods and method not in release.methods_refused


def _setting_defaults(spec: Spec, release: Release) -> Meanings:
    for name, schema in release.settings.items():
        if "default" in schema and name not in spec.speculative:
            default = schema["default"]
            text = next(("standard" for names in SAME if default in names), default)
            yield f"setting `{name}`, which is not written,", Meaning(METHOD, f"is {text}")


def _arguments(spec: Spec, release: Release) -> Meanings:
    known = release.server_args | release.engine_args
    for name, value in spec.engine_args.items():
        path = pointer("pair", "engine_args", name)
        schema = known.get(name)
        if schema is None:
            text = "stops the start: the release has no such argument"
        else:
            text = "is taken" if is_choice(value, schema) else f"stops the start: `{value}` is not one of its values"
        severity: Severity = "info" if text == "is taken" else "error"
        yield f"argument `{name}`", Meaning(path, text, severity, ARG_UTILS)


def _argument_defaults(spec: Spec, release: Release) -> Meanings:
    for name, what in DEFAULTS.items():
        default = release.engine_args.get(name, {}).get("default")
        if spec.device == "cuda" and name not in spec.engine_args and default is not None:
            yield f"argument `{name}`, which is not written,", Meaning(VERSION, f"is {default} ({what})", source=ARG_UTILS)


def _sampling(spec: Spec, release: Release) -> Meanings:
    for name in {**spec.sampling, **spec.section("protocol", "request", "extra_body")}:
        if name == "min_p" and not spec.temperature:
            continue  # reset at temperature 0
        for path, _ in parameters(spec, name):
            effect = _effect(spec, release, name)
            severity: Severity = "error" if effect else "info"
            yield f"`{name}`", Meaning(path, SAMPLING.get(effect, "works with speculation"), severity)


def _effect(spec: Spec, release: Release, name: str) -> str:
    rows = [row for row in release.sampling_with_speculation if row["parameter"] == name]
    return next((str(row["effect"]) for row in rows if spec.method in (row["methods"] or [spec.method])), "")


def _engine(spec: Spec, release: Release) -> Meanings:
    """How a GPU server is run; on a CPU there is one runner, without asynchronous scheduling."""
    if spec.device != "cuda" or not spec.method:
        return
    target = target_runner(spec, release)
    yield "the target", Meaning(VERSION, f"is run by {target}", source=CONFIG)
    scheduled = _is_async(spec, release)
    yield "asynchronous scheduling of the target", Meaning(VERSION, SWITCHED[scheduled], source=CONFIG)
    if not _runs(spec.method, release):
        return
    yield "the pair", Meaning(METHOD, f"is run by {pair_runner(spec, release)}", source=CONFIG)
    kept = "async_scheduling" in spec.engine_args or not _in(ASYNC_OFF, spec.method, release)
    yield "asynchronous scheduling of the pair", Meaning(METHOD, SWITCHED[scheduled and kept], source=CONFIG)
    smaller = "is lower than the target's by max_num_seqs" if _in(SMALLER_BUDGET, spec.method, release) else "is the target's"
    yield "the pair's token budget", Meaning(METHOD, smaller, source=CONFIG)


def _is_async(spec: Spec, release: Release) -> bool:
    """Whether the target is scheduled asynchronously: a release without a stated default switches it on."""
    argument = release.engine_args.get("async_scheduling")
    return bool(spec.engine_args.get("async_scheduling", argument is not None and argument.get("default") is None))


def target_runner(spec: Spec, release: Release) -> str:
    """`Model Runner V1` or `V2` of the target alone on a GPU; both where an unlocked architecture decides."""
    runner, wanted = release.runner, spec.section("pair", "env").get(str(release.runner.get("v2_env")))
    if wanted is not None:
        return "Model Runner V2" if str(wanted) == "1" else "Model Runner V1"
    if runner["v2_default_for"] != "listed":
        return f"Model Runner {runner['default'].upper()}"
    architectures = spec.listing("lock", "target", "config", "architectures")
    if not architectures:
        return "Model Runner V1 or V2, as its architecture (not locked) decides"
    return "Model Runner V2" if set(architectures) & set(runner["v2_architectures"]) else "Model Runner V1"


def pair_runner(spec: Spec, release: Release) -> str:
    """What runs the pair on a GPU: the target's runner, unless the method or the vocabulary map is left to another."""
    if _in(ENGINE_V0, spec.method or "", release):
        return "the V0 engine"
    target, runner = target_runner(spec, release), release.runner
    mapped = heterogeneous(spec) and "heterogeneous-vocabulary draft models" in runner["v2_refuses_features"]
    if target != "Model Runner V1" and (mapped or spec.method in runner["v2_refuses"]):
        return "Model Runner V1"
    return target


def _in(effects: tuple[Effect, ...], method: str, release: Release) -> bool:
    return any(method in effect.methods and release.in_range(effect.first, effect.last) for effect in effects)
