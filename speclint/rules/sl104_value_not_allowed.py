"""SL104 value-not-allowed: a value outside the closed list, form or combination that the key takes.

Fails:

    vocabulary: {mode: hetero}

Passes:

    vocabulary: {mode: heterogeneous}

Way out: take one of the values that the message names.
"""

from __future__ import annotations

SEVERITY = "error"
NEEDS = "spec"
