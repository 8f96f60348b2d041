"""SL105 out-of-range: a number, list or text beyond the limits of its key.

Fails:

    sampling: {temperature: 3.0, top_p: 1.0, top_k: 0, seed: 0}

Passes:

    sampling: {temperature: 0.0, top_p: 1.0, top_k: 0, seed: 0}

Way out: stay within the limits that the message names.
"""

from __future__ import annotations

SEVERITY = "error"
NEEDS = "spec"
