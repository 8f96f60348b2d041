"""SL002 duplicate-key: a key is written twice in one mapping.

YAML forbids it, and readers differ in which value they take: the reviewer may read one value and the engine get the other.

Fails:

    load: {concurrency: [1], requests: 32, concurrency: [1, 4]}

Passes:

    load: {concurrency: [1, 4], requests: 32}

Way out: keep one of the two.
"""

from __future__ import annotations

SEVERITY = "error"
NEEDS = "spec"
