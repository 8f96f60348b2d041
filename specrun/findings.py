"""What a finding of a diagnosis looks like, and what of a pair it needs to know."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypedDict

from specrun.finding_pages import PAGES

CODES = {code: page.title for code, page in PAGES.items()}

Told = Iterator[tuple[str, str]]  # code and sentence


class Finding(TypedDict):
    """One finding, as the schema has it."""

    code: str
    text: str


OF_ACCEPTANCE = frozenset(("DX11", "DX12", "DX14", "DX21", "DX22"))


@dataclass(frozen=True, slots=True)
class Setting:
    """What of the pair a diagnosis needs.

    `k`: num_speculative_tokens. `drafts_every_step`: not ngram, not suffix. `chain`: drafts are one sequence of which the
    strict verifier keeps a prefix; not so with a token tree or lossy verification. `sweep`: K of every arm that speculates.
    `invented`: acceptance or weights are set by hand, so that acceptance and answers say nothing.
    """

    k: int
    device: str
    drafts_every_step: bool = True
    chain: bool = True
    sweep: Mapping[str, int] = field(default_factory=dict)
    invented: bool = False


def one_chain(speculative: Mapping[str, Any]) -> bool:
    """Whether drafts are one sequence of which the verifier keeps a prefix: no token tree, no lossy method."""
    return "speculative_token_tree" not in speculative and speculative.get("rejection_sample_method") != "fly"
