"""The `matched` control: the target with the runner, scheduling, token budget and graphs that speculation forces on the pair.

What speculation changes beside drafting differs by release, so it is not looked up but read off the unmeasured first
starts of pair and target. What cannot be set without speculation is listed, and the result says so.
"""

from __future__ import annotations

import json
from typing import Any

from speclint.releases import Release

RUNNER_ENV = "VLLM_USE_V2_MODEL_RUNNER"


def derive(target: dict[str, Any], pair: dict[str, Any], engine_args: dict[str, Any], release: Release) -> dict[str, Any]:
    """{"flags": words for the command line, "env": variables, "unset": fields that differ and cannot be set}.

    `target`, `pair`: facts of their first starts (`start.json`). `engine_args`: the spec's own, which both arms have. All
    three empty: there is nothing left to match.
    """
    flags: list[str] = []
    unset: list[str] = []
    ours, theirs = target.get("config") or {}, pair.get("config") or {}
    if _differs(ours, theirs, "scheduler_config", "async_scheduling"):
        wanted = theirs["scheduler_config"]["async_scheduling"]
        flags += ["--async-scheduling" if wanted else "--no-async-scheduling"]
    budget = _budget(theirs)
    if budget != _budget(ours):
        if "max_num_scheduled_tokens" in release.engine_args:
            flags += ["--max-num-scheduled-tokens", str(budget)]
        else:
            unset.append(f"scheduler_config/max_num_scheduled_tokens (pair: {budget})")
    sizes = (theirs.get("compilation_config") or {}).get("cudagraph_capture_sizes")
    if sizes and _differs(ours, theirs, "compilation_config", "cudagraph_capture_sizes"):
        flags += [
            "--compilation-config",
            json.dumps(engine_args.get("compilation_config", {}) | {"cudagraph_capture_sizes": sizes}),
        ]
    env, runner = _runner(target, pair, release)
    return {"flags": flags, "env": env, "unset": [*unset, *runner]}


def _differs(left: dict[str, Any], right: dict[str, Any], section: str, name: str) -> bool:
    return bool((left.get(section) or {}).get(name) != (right.get(section) or {}).get(name))


def _budget(config: dict[str, Any]) -> int | None:
    """Tokens that a step may schedule; null means the batch limit itself."""
    scheduler = config.get("scheduler_config") or {}
    found: int | None = scheduler.get("max_num_scheduled_tokens") or scheduler.get("max_num_batched_tokens")
    return found


def _runner(target: dict[str, Any], pair: dict[str, Any], release: Release) -> tuple[dict[str, str], list[str]]:
    """The model runner stands in the log only; a release without the switch has one runner."""
    ours, theirs = (start.get("from_log", {}).get("runner") for start in (target, pair))
    if ours == theirs or not theirs:
        return {}, []
    if not release.runner.get("v2_env"):
        return {}, [f"model runner (pair: {theirs})"]
    return {RUNNER_ENV: "1" if theirs == "V2" else "0"}, []
