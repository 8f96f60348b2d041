"""SL901 unused: a suppression that silences nothing.

It would silence a later finding that nobody has thought about.

Fails:

    # speclint: ignore[SL409] the draft's context covers our prompts
    num_speculative_tokens: 3

Passes:

    num_speculative_tokens: 3

Way out: remove the comment.
"""

from __future__ import annotations

SEVERITY = "warning"
NEEDS = "spec"
