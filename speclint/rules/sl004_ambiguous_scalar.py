"""SL004 ambiguous-scalar: an unquoted value that YAML readers take for different things, or for a number where text is meant.

An engine version `0.10` is the number 0.1; a short hash `12e7890` is infinity to a YAML 1.2 reader; `010` is 8 or 10;
`yes` is true or text; `2026-01-02` is a date or text. Such a value means something else to the next tool.

Fails:

    engine: {name: vllm, version: 0.10}

Passes:

    engine: {name: vllm, version: "0.10.2"}

Way out: quote text; write numbers as plain decimals.
"""

from __future__ import annotations

SEVERITY = "error"
NEEDS = "spec"
