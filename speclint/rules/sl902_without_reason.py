"""SL902 without-reason: a suppression without a reason, or one that cannot be understood; it has no effect.

The reason is what the reviewer approves.

Fails:

    max_model_len: 512   # speclint: ignore[SL409]

Passes:

    max_model_len: 512   # speclint: ignore[SL409] prompts and answers stay below 300 tokens (until 2027-01-31)

Way out: write why the finding does not apply, and until when if that ends.
"""

from __future__ import annotations

SEVERITY = "error"
NEEDS = "spec"
