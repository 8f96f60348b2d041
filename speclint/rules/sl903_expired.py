"""SL903 expired: a suppression whose last day has passed; it no longer has an effect.

Fails:

    max_model_len: 512   # speclint: ignore[SL409] short prompts for the pilot (until 2020-01-31)

Passes:

    max_model_len: 512   # speclint: ignore[SL409] short prompts for the pilot (until 2099-01-31)

Way out: resolve the finding, or set a later day with a fresh reason.
"""

from __future__ import annotations

SEVERITY = "error"
NEEDS = "spec"
