"""How long `speclint` takes beside yamllint and check-jsonschema, and beside ruamel's own read of 500 files; ratios of one run.

    python -m venv bench && bench/bin/pip install . yamllint check-jsonschema
    bench/bin/python benchmarks/lint_speed.py [SPEC]

Install a wheel: finders of editable installs cost milliseconds. Times are CPU time of whole processes, medians of runs that take
turns, which load on the machine moves less than wall time. SPEC should be valid and locked; the default is an example.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

BIN = Path(sys.executable).parent
ROOT = Path(__file__).resolve().parent.parent
EXAMPLE = ROOT / "examples" / "tiny-draft.spec.yaml"
SCHEMA = ROOT / "schemas" / "spec.schema.json"
COLD_RUNS, MANY_RUNS, MANY = 25, 3, 500
RUAMEL = (
    "import pathlib, sys\n"
    "from ruamel.yaml import YAML\n"
    "for path in sorted(pathlib.Path(sys.argv[1]).iterdir()):\n"
    "    YAML(typ='safe', pure=True).load(path)\n"
)


def main() -> None:
    spec = Path(sys.argv[1] if sys.argv[1:] else EXAMPLE).resolve()
    os.chdir(spec.parent)
    cold = {
        "speclint": [str(BIN / "speclint"), spec.name],
        "yamllint": [str(BIN / "yamllint"), spec.name],
        "check-jsonschema": [str(BIN / "check-jsonschema"), "--schemafile", str(SCHEMA), spec.name],
    }
    times = _in_turns(cold, COLD_RUNS)
    print(f"{spec.name}, {spec.stat().st_size} bytes, one file, cold")
    for name, seconds in times.items():
        print(f"  {name:<18}{seconds * 1000:7.1f} ms CPU")
    print(f"  speclint / yamllint          {times['speclint'] / times['yamllint']:5.2f}   at most 1")
    print(f"  check-jsonschema / speclint  {times['check-jsonschema'] / times['speclint']:5.2f}   at least 2.5")
    _many(spec)


def _many(spec: Path) -> None:
    """Files beyond the first, so that neither start counts. Local models are not beside the copies and are not hashed."""
    with tempfile.TemporaryDirectory(dir=spec.parent) as scratch:
        one, many = Path(scratch, "one"), Path(scratch, "many")
        _copies(spec, one, 1)
        _copies(spec, many, MANY)
        programs: dict[str, Callable[[Path], list[str]]] = {
            "speclint": lambda folder: [str(BIN / "speclint"), *map(str, sorted(folder.iterdir()))],
            "ruamel": lambda folder: [sys.executable, "-c", RUAMEL, str(folder)],
        }
        runs = {f"{name} {folder.name}": make(folder) for name, make in programs.items() for folder in (one, many)}
        times = _in_turns(runs, MANY_RUNS)
    ours, theirs = (times[f"{name} many"] - times[f"{name} one"] for name in programs)
    print(f"{MANY} copies in one process, beyond the start")
    print(f"  speclint          {ours / (MANY - 1) * 1000:7.2f} ms CPU a file")
    print(f"  ruamel, safe      {theirs / (MANY - 1) * 1000:7.2f} ms CPU a file")
    print(f"  speclint / ruamel            {ours / theirs:5.2f}   at most 1.3")


def _copies(spec: Path, folder: Path, count: int) -> None:
    folder.mkdir()
    for number in range(count):
        (folder / f"{number:03}.spec.yaml").write_bytes(spec.read_bytes())


def _in_turns(commands: dict[str, list[str]], runs: int) -> dict[str, float]:
    """Median CPU seconds of each command; the first round, which warms the disk's cache, does not count."""
    rounds = [{name: _cpu(command) for name, command in commands.items()} for _ in range(runs + 1)][1:]
    return {name: statistics.median(one[name] for one in rounds) for name in commands}


def _cpu(command: list[str]) -> float:
    quiet = [(os.POSIX_SPAWN_OPEN, stream, os.devnull, os.O_WRONLY, 0) for stream in (1, 2)]
    child = os.posix_spawn(command[0], command, os.environ, file_actions=quiet)
    _, status, usage = os.wait4(child, 0)
    if os.waitstatus_to_exitcode(status) not in (0, 1):
        raise SystemExit(f"{command[0]} failed: status {os.waitstatus_to_exitcode(status)}")
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    main()
