"""`python -m specrun`: the same as the command `specrun`."""

from __future__ import annotations

from specrun.cli import main

if __name__ == "__main__":
    main()
