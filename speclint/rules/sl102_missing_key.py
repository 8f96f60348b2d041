"""SL102 missing-key: a key that every spec needs is not there.

What is not written would be decided by a default that another release may change.

Fails:

    placement: {tensor_parallel_size: 1}

Passes:

    placement: {device: cuda, tensor_parallel_size: 1}

Way out: add the key; the help says what it stands for.
"""

from __future__ import annotations

SEVERITY = "error"
NEEDS = "spec"
