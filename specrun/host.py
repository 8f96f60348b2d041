"""The machine: what it is, and how busy it is right now."""

from __future__ import annotations

import hashlib
import os
import platform
from collections.abc import Callable, Container, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil


def facts() -> dict[str, Any]:
    """What identifies this machine for a reader: processor, memory, system, GPUs. No host name, no user name."""
    memory = psutil.virtual_memory().total
    return {
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_bytes": memory,
        "system": f"{platform.system()} {platform.release()}",
        "machine": platform.machine(),
        "python": platform.python_version(),
        "gpus": gpus(),
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return platform.processor() or "unknown"
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or "unknown"


def gpus() -> list[dict[str, Any]]:
    """Every NVIDIA GPU that NVML shows; an empty list where there is no driver. UUIDs are hashed."""
    with _nvml() as nvml:
        return [_gpu(nvml, index) for index in range(nvml.nvmlDeviceGetCount())] if nvml else []


@contextmanager
def _nvml() -> Iterator[Any]:
    """NVIDIA's management library for the length of the block; None where it or the driver is not there."""
    try:
        import pynvml

        pynvml.nvmlInit()
    except Exception:  # NVML raises its own tree, and ImportError where it is not installed
        yield None
        return
    try:
        yield pynvml
    finally:
        pynvml.nvmlShutdown()


def visible_gpus(chosen: str | None = None) -> list[str]:
    """UUIDs of the GPUs that a process started from here sees, in its order; empty where there is no driver.

    `chosen`: its own CUDA_VISIBLE_DEVICES, if it does not inherit ours.
    """
    with _nvml() as nvml:
        handles = map(nvml.nvmlDeviceGetHandleByIndex, range(nvml.nvmlDeviceGetCount())) if nvml else []
        uuids = [_text(nvml.nvmlDeviceGetUUID(handle)) for handle in handles]
    return visible(uuids, os.environ.get("CUDA_VISIBLE_DEVICES") if chosen is None else chosen)


def visible(uuids: list[str], chosen: str | None) -> list[str]:
    """CUDA_VISIBLE_DEVICES by its own rules: indices or beginnings of UUIDs; the first one that names no device ends the list."""
    if chosen is None:
        return uuids
    found: list[str] = []
    for word in chosen.split(","):
        named = uuids[int(word) :][:1] if word.strip().isdigit() else [uuid for uuid in uuids if word and uuid.startswith(word)]
        if not named:
            break
        found += named[:1]
    return found


def _gpu(nvml: Any, index: int) -> dict[str, Any]:
    handle = nvml.nvmlDeviceGetHandleByIndex(index)
    return {
        "index": index,
        "name": _text(nvml.nvmlDeviceGetName(handle)),
        "uuid_sha256": hashlib.sha256(_text(nvml.nvmlDeviceGetUUID(handle)).encode()).hexdigest()[:16],
        "driver": _text(nvml.nvmlSystemGetDriverVersion()),
        "memory_bytes": int(nvml.nvmlDeviceGetMemoryInfo(handle).total),
    }


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value


def state() -> dict[str, Any]:
    """How busy the machine is: load average of one minute, free memory, and per GPU its clocks, heat and other processes."""
    return {
        "load_1m": round(os.getloadavg()[0], 2),
        "memory_available_bytes": psutil.virtual_memory().available,
        "gpus": _gpu_states(),
    }


def _gpu_states() -> list[dict[str, Any]]:
    with _nvml() as nvml:
        return [_gpu_state(nvml, index) for index in range(nvml.nvmlDeviceGetCount())] if nvml else []


def _gpu_state(nvml: Any, index: int) -> dict[str, Any]:
    handle = nvml.nvmlDeviceGetHandleByIndex(index)
    asked: dict[str, Callable[[], Any]] = {
        "sm_clock_mhz": lambda: nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM),
        "temperature_c": lambda: nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU),
        "power_w": lambda: round(nvml.nvmlDeviceGetPowerUsage(handle) / 1000, 1),
        "throttle_reasons": lambda: nvml.nvmlDeviceGetCurrentClocksEventReasons(handle),
        "memory_used_bytes": lambda: int(nvml.nvmlDeviceGetMemoryInfo(handle).used),
        "processes": lambda: len(nvml.nvmlDeviceGetComputeRunningProcesses(handle)),
    }
    out: dict[str, Any] = {"index": index}
    for name, ask in asked.items():
        try:
            out[name] = ask()
        except nvml.NVMLError:
            out[name] = None  # not every GPU, driver or container answers every question
    return out


def device_memory_used(uuids: Container[str]) -> int | None:
    """Device memory in use over the given GPUs, bytes; None without NVML."""
    with _nvml() as nvml:
        count = nvml.nvmlDeviceGetCount() if nvml else 0
        handles = [nvml.nvmlDeviceGetHandleByIndex(index) for index in range(count)]
        used = [int(nvml.nvmlDeviceGetMemoryInfo(h).used) for h in handles if _text(nvml.nvmlDeviceGetUUID(h)) in uuids]
    return sum(used) if used else None


def resident_memory(pid: int) -> int:
    """Resident memory of a process and its descendants, bytes; shared pages count once per process."""
    return sum(_rss(process) for process in family(pid))


def cpu_seconds(pid: int) -> dict[str, float]:
    """CPU seconds so far of a server's processes: `api` for the process that answers HTTP, `engine` for all others."""
    spent = {"api": 0.0, "engine": 0.0}
    for process in family(pid):
        try:
            times = process.cpu_times()
        except psutil.Error:
            continue
        spent["api" if process.pid == pid else "engine"] += times.user + times.system
    return {role: round(seconds, 3) for role, seconds in spent.items()}


def family(pid: int) -> list[psutil.Process]:
    """A process and its descendants, as far as they still exist."""
    try:
        root = psutil.Process(pid)
        return [root, *root.children(recursive=True)]
    except psutil.Error:
        return []


def _rss(process: psutil.Process) -> int:
    try:
        return int(process.memory_info().rss)
    except psutil.Error:
        return 0
