"""What is installed here, and whether it can run a spec."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from speclint import releases
from specrun import host
from specrun.errors import EnvironmentTrouble
from specrun.launch import probe


@dataclass(frozen=True, slots=True)
class Row:
    """One thing looked at; `missing` is what forbids a run here, `note` what only limits it."""

    what: str
    outcome: Literal["ok", "note", "missing"]
    detail: str


def examine(python: str) -> Iterator[Row]:
    """Rows about engine, devices, signing and caches. Starts the interpreter `python`, but no server."""
    yield from _engine(python)
    facts = host.facts()
    yield Row("machine", "ok", f"{facts['cores']} cores, {facts['memory_bytes'] / 2**30:.0f} GiB, {facts['processor']}")
    if facts["gpus"]:
        for gpu in facts["gpus"]:
            detail = f"{gpu['name']}, {gpu['memory_bytes'] / 2**30:.0f} GiB, driver {gpu['driver']}"
            yield Row(f"GPU {gpu['index']}", "ok", detail)
    else:
        yield Row("GPU", "note", "none seen by NVML: specs with `device: cuda` cannot run here")
    yield _signing()
    yield _hub_cache()
    yield _shared_memory()


def _engine(python: str) -> Iterator[Row]:
    try:
        found = probe(python, schema=True)
    except EnvironmentTrouble as error:
        yield Row("engine", "missing", f"{error.message}; {error.hint}")
        return
    packages = ", ".join(f"{name} {version}" for name, version in found["packages"].items() if name != found["distribution"])
    yield Row("engine", "ok", f"{found['distribution']} {found['version']} ({packages}) in {python}")
    yield _same_settings(found)
    for name in ("torchvision", "torchaudio"):
        if name in found["packages"] and "+cpu" in found["packages"].get("torch", ""):
            yield Row(name, "note", "an index build beside a CPU torch fails to import and breaks transformers: see the README")


def _same_settings(found: dict[str, Any]) -> Row:
    """The installed engine's settings against the release's file: a nightly, a fork or a patch shows here."""
    version = str(found["version"]).partition("+")[0]
    release = releases.load(version)
    if release is None:
        nearest = ", ".join(releases.nearest(version))
        return Row(
            "release data", "missing", f"none for {version}; nearest: {nearest}; `speclint releases --import WHEEL` adds it"
        )
    internal = set(release.speculative_config.get("x-internal", []))
    known = set(release.settings) | internal
    installed = set(found["fields"])
    odd = sorted(installed ^ known)
    if odd:
        return Row("release data", "note", f"the installed {version} is not the released one: it differs in {', '.join(odd)}")
    return Row("release data", "ok", f"the installed settings are those of {version}: {len(installed)} fields")


def _signing() -> Row:
    tool = shutil.which("ssh-keygen")
    if tool is None:
        return Row("ssh-keygen", "note", "not here: run here, sign elsewhere with `specrun append RUN`")
    return Row("ssh-keygen", "ok", tool)


def _hub_cache() -> Row:
    cache = Path(os.environ.get("HF_HUB_CACHE") or Path(os.environ.get("HF_HOME", "~/.cache/huggingface")).expanduser() / "hub")
    if not cache.is_dir():
        return Row("hub cache", "note", f"{cache} does not exist: only local models can run without a download")
    models = sorted(p.name.removeprefix("models--").replace("--", "/") for p in cache.glob("models--*"))
    return Row("hub cache", "ok", f"{cache}: {len(models)} models")


def _shared_memory() -> Row:
    free = shutil.disk_usage("/dev/shm").free if Path("/dev/shm").is_dir() else 0
    outcome: Literal["ok", "note"] = "ok" if free >= 64 * 2**20 else "note"
    return Row(
        "/dev/shm", outcome, f"{free / 2**20:.0f} MiB free" + ("" if outcome == "ok" else ": vLLM's worker processes need more")
    )
