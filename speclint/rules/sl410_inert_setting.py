"""SL410 inert-setting: a setting that this release accepts and does not act on.

It reads as if it did something, and it is signed. So does a `model` that is left over where a method looks its drafts up.

Source: vllm-project/vllm#35060 (batch-size cut-off), #41456; vllm/v1/sample/rejection_sampler.py.

Fails:

    engine: {name: vllm, version: "0.12.0"}
    speculative: {method: ngram, disable_by_batch_size: 16}

Passes:

    engine: {name: vllm, version: "0.12.0"}
    speculative: {method: ngram}

Way out: remove it, or use what the help names.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from speclint.diagnostic import Finding, pointer
from speclint.methods import LOOKUP
from speclint.releases import Release
from speclint.spec import Spec

SEVERITY = "warning"
NEEDS = "spec"


class Inert(NamedTuple):
    """A setting, the value (None: any) and releases where it does nothing, and whether only on a CPU."""

    setting: str
    value: str | None
    first: str
    last: str
    why: str
    help: str = "remove it"
    cpu_only: bool = False


INERT = (
    Inert("disable_by_batch_size", None, "0.10.0", "0.16.0", "no code reads it since 0.10.0",
          "num_speculative_tokens_per_batch_size does this from 0.24.0"),
    Inert("rejection_sample_method", "probabilistic", "0.18.0", "0.20.2", "the V1 runner does not read it", cpu_only=True),
    Inert("draft_sample_method", "gumbel", "0.21.0", "0.21.0", "the V1 runner does not read it", cpu_only=True),
    Inert("rejection_sample_method", "block", "0.25.0", "0.33.0", "the V1 runner verifies in the standard way",
          cpu_only=True),
)  # fmt: skip


def check(spec: Spec, release: Release | None) -> Iterator[Finding]:
    if spec.method in LOOKUP and spec.speculative.get("model") not in (None, "ngram", "[ngram]", spec.method):
        message = f"`{spec.method}` looks drafts up in the text and loads no model"
        help = "remove it, or write the method that drafts with it"
        yield Finding("/pair/speculative/model", message, help, related=(("/pair/speculative/method", "the method"),))
    if release is None:
        return
    for row in INERT:
        value = spec.speculative.get(row.setting)
        if value is None or row.value not in (None, value) or (row.cpu_only and spec.device != "cpu"):
            continue
        if release.in_range(row.first, row.last):
            message = f"vLLM {release.version} accepts `{row.setting}` and ignores it: {row.why}"
            yield Finding(pointer("pair", "speculative", row.setting), message, row.help, f"{row.first}-{row.last}")
