"""What every request of a spec carries beside its prompt."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from speclint.diagnostic import pointer
from speclint.spec import Spec

NEUTRAL: dict[str, tuple[Any, ...]] = {
    "min_p": (0, None),
    "min_tokens": (0, 1, None),
    "logit_bias": ({}, None),
    "presence_penalty": (0, None),
    "frequency_penalty": (0, None),
    "repetition_penalty": (1, None),
}
"""Values of sampling parameters that change nothing."""


def parameters(spec: Spec, name: str) -> Iterator[tuple[str, Any]]:
    """Pointer and value of each place that sets a sampling parameter to more than its neutral value."""
    for keys in (("protocol", "sampling"), ("protocol", "request", "extra_body")):
        value = spec.section(*keys).get(name)
        if value is not None and value not in NEUTRAL.get(name, ()):
            yield pointer(*keys, name), value
