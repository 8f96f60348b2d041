"""The rules: one module each, found by file name.

`slNNN_short_name.py` is rule SLNNN `short-name`. Its docstring is its manual page; SEVERITY is what its findings weigh
unless they say otherwise; NEEDS names the part of the file it looks at. `check` is absent where reading, the schema or
the suppressions themselves make the finding.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Literal, NamedTuple

from speclint.diagnostic import Finding, Severity
from speclint.releases import Release
from speclint.spec import Spec

Needs = Literal["spec", "lock", "results"]
Check = Callable[[Spec, Release | None], Iterator[Finding]]
URL = "docs/rules.md#"
SOURCE = re.compile(r"^Source: (.*?)\n\n", re.MULTILINE | re.DOTALL)
MADE_ELSEWHERE = ("SL0", "SL1", "SL9")
"""Families whose findings reading, the schema and the suppressions make."""


class Rule(NamedTuple):
    """One rule; its module is imported when more than its name is asked for, as a check needs few of them."""

    code: str
    name: str
    module_name: str

    @property
    def module(self) -> ModuleType:
        return _module(self.module_name)

    @property
    def severity(self) -> Severity:
        severity: Severity = self.module.SEVERITY
        return severity

    @property
    def needs(self) -> Needs:
        needs: Needs = self.module.NEEDS
        return needs

    @property
    def manual(self) -> str:
        return (self.module.__doc__ or "").strip()

    @property
    def check(self) -> Check | None:
        return None if self.code.startswith(MADE_ELSEWHERE) else self.module.check

    @property
    def summary(self) -> str:
        """The sentence after the rule's name."""
        return self.manual.splitlines()[0].partition(": ")[2]

    @property
    def source(self) -> str:
        """What the rule rests on upstream, if it does."""
        found = SOURCE.search(self.manual)
        return " ".join(found[1].split()).removesuffix(".") if found else ""

    @property
    def url(self) -> str:
        """Where the rule stands in the documentation."""
        return f"{URL}{self.code.lower()}"

    @property
    def suppressible(self) -> bool:
        """Reading errors and integrity findings cannot be ignored, nor can findings about ignoring."""
        return not self.code.startswith(("SL0", "SL6", "SL9"))


@cache
def _module(name: str) -> ModuleType:
    return import_module(f"{__name__}.{name}")


@cache
def rules() -> dict[str, Rule]:
    """Every rule by code, in the order of the codes."""
    with os.scandir(__path__[0]) as entries:
        names = sorted(entry.name.removesuffix(".py") for entry in entries if entry.name.startswith("sl"))
    return {rule.code: rule for rule in map(_rule, names)}


def _rule(module_name: str) -> Rule:
    code, _, name = module_name.partition("_")
    return Rule(code.upper(), name.replace("_", "-"), module_name)
