"""speclint: a linter for vLLM speculative-decoding pair specs."""

__version__ = "0.1.0"
