"""One run at a time on a device: who is refused, with whose name, and when the device is free again."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest
from stand_in_run import made

from specrun import blocks, device, host
from specrun.errors import EnvironmentTrouble, Refused
from specrun.progress import Progress

CPU = {"placement": {"device": "cpu"}}
GPUS = ["GPU-aa11", "GPU-bb22", "GPU-cc33", "GPU-dd44"]
HOLDER = """
import sys, time
from pathlib import Path
from specrun import device
device.PLACE = Path(sys.argv[1])
with device.held({"placement": {"device": "cpu"}}, "the-first", "a.spec.yaml"):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Locks of this test's own, so that no run elsewhere on this machine is in its way."""
    monkeypatch.setattr(device, "PLACE", tmp_path)
    return tmp_path


@contextmanager
def first_run(place: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds the CPU."""
    with subprocess.Popen([sys.executable, "-c", HOLDER, str(place)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout and process.stdout.readline() == "held\n"
        yield process
        process.kill()


def refused(placement: dict[str, object]) -> str:
    with pytest.raises(Refused) as caught, device.held(placement, "second", "b.spec.yaml"):
        pass
    return caught.value.message


def test_the_second_run_is_refused_with_the_first_ones_name_until_it_is_killed(place: Path) -> None:
    with first_run(place) as process:
        assert refused(CPU) == f"run the-first (process {process.pid}, a.spec.yaml) is at work on cpu"
        process.send_signal(signal.SIGKILL)
        process.wait()
        with device.held(CPU, "third", "b.spec.yaml"):
            assert "run third" in refused(CPU)  # and not what the killed one had left


def test_a_run_says_who_has_the_device_and_leaves_nothing(place: Path) -> None:
    later = made(place, first=False)
    with device.held(CPU, "earlier", "a.spec.yaml"), pytest.raises(Refused, match="run earlier"):
        blocks.measure(later, Progress(0, quiet=True))
    assert not (later.folder / "b01").exists()


def test_asking_whether_it_is_free_names_nobody(place: Path) -> None:
    (place / "pair-spec-cpu.lock").write_text("of a killed run")
    device.free(CPU)
    assert (place / "pair-spec-cpu.lock").read_text() == "of a killed run"  # not even for a moment is it another's
    with device.held(CPU, "one", "a"), pytest.raises(Refused, match="run one"):
        device.free(CPU)


def test_a_lock_file_removed_while_it_is_locked_keeps_nobody_out(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lock, locked = place / "pair-spec-cpu.lock", fcntl.flock

    def removed_first(file: object, how: int) -> None:
        locked(file, how)  # type: ignore[arg-type]
        monkeypatch.setattr(fcntl, "flock", locked)
        lock.unlink()

    monkeypatch.setattr(fcntl, "flock", removed_first)
    with device.held(CPU, "one", "a"):
        assert "run one" in refused(CPU)


def test_a_device_is_free_again_after_the_block_whatever_ended_it() -> None:
    with pytest.raises(KeyError), device.held(CPU, "one", "a"):
        raise KeyError
    with device.held(CPU, "two", "a"):
        pass


def test_runs_on_other_gpus_do_not_meet(monkeypatch: pytest.MonkeyPatch) -> None:
    def of(*gpus: str, ranks: int = 1) -> dict[str, object]:
        monkeypatch.setattr(host, "visible_gpus", lambda chosen: list(gpus))
        return {"placement": {"device": "cuda", "tensor_parallel_size": ranks}}

    with ExitStack() as stack:
        stack.enter_context(device.held(of(*GPUS, ranks=2), "wide", "a"))
        stack.enter_context(device.held(of(*GPUS[2:]), "narrow", "a"))
        stack.enter_context(device.held(CPU, "processor", "a"))
        assert "run wide" in refused(of(*GPUS[1:], ranks=3))
        assert "run narrow" in refused(of(*GPUS[2:]))
        stack.enter_context(device.held(of(GPUS[3]), "last", "a"))


def test_gpus_that_cannot_be_told_apart_are_one_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "visible_gpus", lambda chosen: [])
    assert device.names({"placement": {"device": "cuda", "pipeline_parallel_size": 4}}) == ["cuda"]


def test_gpus_are_told_by_the_drivers_own_uuids(monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[bool] = []
    driver = SimpleNamespace(
        nvmlInit=lambda: None,
        nvmlShutdown=lambda: ended.append(True),
        nvmlDeviceGetCount=lambda: len(GPUS),
        nvmlDeviceGetHandleByIndex=lambda index: index,
        nvmlDeviceGetUUID=lambda handle: GPUS[handle].encode(),
    )
    monkeypatch.setitem(sys.modules, "pynvml", driver)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,1")
    assert device.names({"placement": {"device": "cuda", "tensor_parallel_size": 2}}) == ["GPU-bb22", "GPU-dd44"]
    assert device.names({"placement": {"device": "cuda"}}) == ["GPU-dd44"]
    own = {"placement": {"device": "cuda"}, "env": {"CUDA_VISIBLE_DEVICES": "2"}}
    assert device.names(own) == ["GPU-cc33"]
    assert ended == [True, True, True]


@pytest.mark.parametrize(
    ("chosen", "seen"),
    [
        (None, GPUS),
        ("", []),
        ("2,0", ["GPU-cc33", "GPU-aa11"]),
        ("1,7,0", ["GPU-bb22"]),
        ("-1,0", []),
        ("GPU-dd", ["GPU-dd44"]),
    ],
)
def test_cuda_visible_devices(chosen: str | None, seen: list[str]) -> None:
    assert host.visible(GPUS, chosen) == seen


def test_the_lock_file_is_everybodys_and_no_link_is_followed(place: Path) -> None:
    with device.held(CPU, "one", "a"):
        assert (place / "pair-spec-cpu.lock").stat().st_mode & 0o777 == 0o666
    (place / "pair-spec-cpu.lock").unlink()
    (place / "pair-spec-cpu.lock").symlink_to(place / "precious")
    (place / "precious").write_text("kept")
    with pytest.raises(EnvironmentTrouble, match="symbolic links"), device.held(CPU, "one", "a"):
        pass
    assert (place / "precious").read_text() == "kept"


def test_a_second_name_of_another_file_is_refused(place: Path) -> None:
    (place / "precious").write_text("kept")
    (place / "pair-spec-cpu.lock").hardlink_to(place / "precious")
    with pytest.raises(EnvironmentTrouble, match="no file of its own"), device.held(CPU, "one", "a"):
        pass
    assert (place / "precious").read_text() == "kept"


def test_memory_in_use_is_that_of_the_own_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = SimpleNamespace(
        nvmlInit=lambda: None,
        nvmlShutdown=lambda: None,
        nvmlDeviceGetCount=lambda: len(GPUS),
        nvmlDeviceGetHandleByIndex=lambda index: index,
        nvmlDeviceGetUUID=lambda handle: GPUS[handle],
        nvmlDeviceGetMemoryInfo=lambda handle: SimpleNamespace(used=10**handle),
    )
    monkeypatch.setitem(sys.modules, "pynvml", driver)
    assert host.device_memory_used(["GPU-bb22", "GPU-dd44"]) == 1010
    assert host.device_memory_used([]) is None


def test_a_place_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "PLACE", Path("/proc/nothing"))
    with pytest.raises(EnvironmentTrouble, match=r"/proc/nothing/pair-spec-cpu\.lock cannot be opened"):
        device.free(CPU)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
def test_the_lock_of_another_user_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    code = HOLDER.replace("device.PLACE", "import os; os.setuid(65534); device.PLACE")
    with tempfile.TemporaryDirectory(dir="/tmp") as everybodys:
        Path(everybodys).chmod(0o1777)
        monkeypatch.setattr(device, "PLACE", Path(everybodys))
        words = [sys.executable, "-c", code, everybodys]
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout and process.stdout.readline() == "held\n"
            assert "run the-first" in refused(CPU)
            process.kill()
