"""SL103 wrong-type: a value of another type than the key takes.

Fails:

    load: {concurrency: 4, requests: 32}

Passes:

    load: {concurrency: [1, 4], requests: 32}

Way out: write the type that the message names. For a number where text is meant see SL004.
"""

from __future__ import annotations

SEVERITY = "error"
NEEDS = "spec"
