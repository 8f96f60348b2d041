"""A child process that is killed at its n-th system call, by ptrace: nothing of the program is replaced for it."""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Callable, Iterator

import pytest

TRACEME, SYSCALL, SETOPTIONS, EXITKILL = 0, 24, 0x4200, 0x100000
REFUSED, BROKEN = 97, 98
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]


def at_every_system_call(work: Callable[[], object]) -> Iterator[int]:
    """Kill `work` at its first system call, then at its second, and so on; yields after each, until it ends by itself.

    Every call counts twice, when it begins and when it has been done.
    """
    stop = 1
    while _killed(work, stop):
        yield stop
        stop += 1


def _killed(work: Callable[[], object], at: int) -> bool:
    child = os.fork()
    if child == 0:
        _run(work)
    os.waitpid(child, 0)  # it has stopped itself
    libc.ptrace(SETOPTIONS, child, None, ctypes.c_void_p(EXITKILL))
    for _ in range(at):
        libc.ptrace(SYSCALL, child, None, None)
        _, status = os.waitpid(child, 0)
        if not os.WIFSTOPPED(status):
            return _ended(status)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return True


def _run(work: Callable[[], object]) -> None:
    if libc.ptrace(TRACEME, 0, None, None):
        os._exit(REFUSED)
    os.kill(os.getpid(), signal.SIGSTOP)
    try:
        work()
    except BaseException:
        os._exit(BROKEN)
    os._exit(0)


def _ended(status: int) -> bool:
    code = os.waitstatus_to_exitcode(status)
    if code == REFUSED:
        pytest.skip("this machine does not allow ptrace")
    assert code == 0, code
    return False
