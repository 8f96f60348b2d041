"""Where the program starts.

`speclint FILE…` and `speclint check FILE…` are checked at once: importing the library of the command line would take a sixth
of the time that one file takes.
"""

from __future__ import annotations

import gc
import os
import sys
from pathlib import Path
from typing import NoReturn

from speclint.checking import CLEAN, FAULT, FINDINGS, USAGE, UsageError, run


def main() -> NoReturn:
    """Entry point: run the command line; a fault of ours exits with 3 and its traceback."""
    gc.set_threshold(20_000, 20, 20)  # reading makes many objects and few cycles
    try:
        files = _only_files(sys.argv[1:])
        if files:
            status = run(files)
            sys.stdout.flush()
            sys.exit(status)
        from speclint.cli import cli

        cli(prog_name="speclint")
    except UsageError as error:
        print(f"Error: {error}", file=sys.stderr)
        sys.exit(USAGE)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the reader has left; nothing more to say
        sys.exit(FINDINGS)
    except Exception:
        _own_fault()
    sys.exit(CLEAN)


def _only_files(arguments: list[str]) -> list[Path]:
    """The files of a command line that has nothing but YAML files; empty for any other."""
    names = arguments[1:] if arguments[:1] == ["check"] else arguments
    plain = all(name.endswith((".yaml", ".yml")) and not name.startswith("-") for name in names)
    return [Path(name) for name in names] if plain else []


def _own_fault() -> NoReturn:
    import traceback

    traceback.print_exc()
    print("speclint: this is a fault of speclint, not of your file; please report it with the lines above", file=sys.stderr)
    sys.exit(FAULT)


if __name__ == "__main__":
    main()
