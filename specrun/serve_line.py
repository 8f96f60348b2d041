"""An arm's command as the `vllm serve` line that a person would type."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

MODULE = "vllm.entrypoints.openai.api_server"


def serve_line(argv: Sequence[str], env: Mapping[str, str] | None = None) -> str:
    """The shell-quoted `vllm serve MODEL …` line of a command made by `specrun.plan`, after its variables.

    The model comes first, as a bare word; the runner's socket is left out. `argv` may begin with the interpreter or not.
    """
    words = list(argv[argv.index(MODULE) + 1 :] if MODULE in argv else argv)
    model = _taken(words, "--model")
    _taken(words, "--uds")
    variables = [f"{name}={shlex.quote(value)}" for name, value in (env or {}).items()]
    return " ".join([*variables, shlex.join(["vllm", "serve", *model, *words])])


def _taken(words: list[str], flag: str) -> list[str]:
    """Take a flag and its value out of the words; the value, if it was there."""
    if flag not in words:
        return []
    index = words.index(flag)
    value = words[index + 1 : index + 2]
    del words[index : index + 2]
    return value
