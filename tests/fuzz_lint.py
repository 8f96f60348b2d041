"""The longer fuzz: `pip install atheris`, then `python tests/fuzz_lint.py [corpus folder] -max_total_time=3600`.

It starts from the good spec, the examples and the hostile files. An exception, two verdicts for the same bytes or far more than a
second for one input stops it; libFuzzer then leaves the input in the current folder as `crash-…`, `timeout-…` or `oom-…`.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["speclint", "ruamel"]):
    from test_hostile import FILES, GOOD, checked

EXAMPLES = Path(__file__).parent.parent / "examples"
LIMITS = ["-max_len=20000", "-timeout=20", "-rss_limit_mb=600"]  # instrumented code is ten times slower, and checks twice


def one_input(source: bytes) -> None:
    assert checked(source).diagnostics == checked(source).diagnostics


def main() -> None:
    with tempfile.TemporaryDirectory() as seeds:
        examples = [path.read_bytes() for path in EXAMPLES.glob("**/*.spec.yaml")]
        small = [source for source in [GOOD, *examples, *FILES.values()] if len(source) <= 20_000]
        for number, source in enumerate(small):
            Path(seeds, str(number)).write_bytes(source)
        named = [argument for argument in sys.argv[1:] if not argument.startswith("-")]
        options = [argument for argument in sys.argv[1:] if argument.startswith("-")]
        atheris.Setup([sys.argv[0], *LIMITS, *options, *named, seeds], one_input)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
