"""Who may approve and sign a spec: the speclint.toml beside it, or, with `--base REF`, the one at the tip of that branch."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from speclint.canonical import entry_digest
from speclint.entries import trust_of
from speclint.history import Base
from speclint.signature import Kind, Outcome, Trust, signed_at, verify_entry
from speclint.spec import Spec


class Who(NamedTuple):
    """Who may sign, and what a base branch knows of the file, if it was compared with one."""

    trust: Trust
    base: Base | None = None

    def verify(self, kind: Kind, data: dict[str, Any], entry: dict[str, Any]) -> Outcome:
        """An entry of the base at its own time, any other one now."""
        known = self.base is not None and (entry_digest(entry), entry["signature"]) in self.base.known
        outcome = verify_entry(kind, data["name"], entry, self.trust, signed_at(kind, entry) if known else None)
        return replace(outcome, reason=self.in_words(outcome.reason))

    def in_words(self, text: str) -> str:
        """The text with files of the base named as such."""
        return self.base.in_words(text) if self.base else text

    @property
    def allowed(self) -> str:
        """The list that it rests on, for people."""
        return f"allowed signers of {self.base.ref}" if self.base else "allowed signers of the work tree"


def who_of(path: Path, data: dict[str, Any], base: Base | None) -> Who:
    """Who may sign the spec in a file; `base` is what a base branch says of it."""
    return Who(trust_of(Spec(data, path.parent, base)), base)
