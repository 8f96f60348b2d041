"""What a method changes in the pair's engine beyond speculation, by release (the reason for the `matched` control)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from speclint.methods import heterogeneous
from speclint.releases import Release
from speclint.spec import Spec


class Effect(NamedTuple):
    """Methods and releases (first, last; None: still) in which the engine of the pair differs."""

    methods: frozenset[str]
    first: str
    last: str | None


# vllm/config/vllm.py: async scheduling that is on by default is switched off
ASYNC_OFF = (
    Effect(frozenset(("ngram", "medusa", "suffix", "draft_model")), "0.14.0", "0.27.1"),
    Effect(frozenset(("ngram", "medusa", "suffix", "custom_class")), "0.28.0", "0.32.0"),
    Effect(frozenset(("suffix", "custom_class")), "0.33.0", None),
)
# vllm/engine/arg_utils.py: the server leaves the V1 engine for V0 with one warning
ENGINE_V0 = (
    Effect(frozenset(("draft_model", "mlp_speculator")), "0.8.2", "0.9.2"),
    Effect(frozenset(("medusa",)), "0.8.2", "0.8.5"),
)
V1_ON_CPU = "0.9.1"  # first release that serves an x86 CPU with V1
SMALLER_BUDGET = (Effect(frozenset(("draft_model",)), "0.17.0", "0.27.1"),)


def differences(spec: Spec, release: Release) -> list[str]:
    """In words, what differs between the arms of this spec that the control `matched` can tell apart; nothing on a CPU,
    where there is one runner and no asynchronous scheduling. Settings that the spec fixes for both arms do not differ."""
    return list(_found(spec, release)) if spec.device == "cuda" and spec.method else []


def engines_differ(spec: Spec, release: Release) -> bool:
    """Whether the target alone is served by the V1 engine and the pair by V0, unless the spec fixes one for both."""
    fixed = spec.at("pair", "env", "VLLM_USE_V1", kind=str) is not None
    served_by_v1 = spec.device == "cuda" or (spec.device == "cpu" and release.in_range(V1_ON_CPU, None))
    return served_by_v1 and not fixed and needs_v0(spec, release)


def needs_v0(spec: Spec, release: Release) -> bool:
    """Whether only the V0 engine of this release has the method."""
    return _in(ENGINE_V0, spec.method or "", release)


def _found(spec: Spec, release: Release) -> Iterator[str]:
    method = spec.method or ""
    fixed = spec.engine_args.get("async_scheduling") is False
    if _in(ASYNC_OFF, method, release) and not fixed:
        yield "asynchronous scheduling (off in the pair)"
    if runners_differ(spec, release):
        yield "model runner (V1 in the pair, V2 in the target)"
    if _in(SMALLER_BUDGET, method, release):
        yield "token budget (lower by max_num_seqs in the pair)"


def _in(effects: tuple[Effect, ...], method: str, release: Release) -> bool:
    return any(method in effect.methods and release.in_range(effect.first, effect.last) for effect in effects)


def runners_differ(spec: Spec, release: Release) -> bool:
    """Whether the target alone runs on Model Runner V2 and the pair on V1, unless the spec fixes one for both."""
    fixed = spec.at("pair", "env", "VLLM_USE_V2_MODEL_RUNNER", kind=str) is not None
    return spec.device == "cuda" and _refused_by_v2(spec, release) and not fixed


def runs_on_v2(spec: Spec, release: Release) -> bool:
    """Whether the pair is served by Model Runner V2: the default on a GPU, unless it leaves the method to V1."""
    by_default = spec.device == "cuda" and release.runner["default"] == "v2"
    return by_default and not _refused_by_v2(spec, release)


def _refused_by_v2(spec: Spec, release: Release) -> bool:
    """Whether V2 is the target's default and leaves the method, or the vocabulary map, to V1."""
    runner = release.runner
    mapped = heterogeneous(spec) and spec.method == "draft_model"
    unmapped = mapped and "heterogeneous-vocabulary draft models" in runner["v2_refuses_features"]
    return runner["default"] == "v2" and (spec.method in runner["v2_refuses"] or unmapped)
