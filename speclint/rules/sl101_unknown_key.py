"""SL101 unknown-key: a key that the spec format does not have.

A misspelt key would be silently without effect, and it would be signed. Keys of `pair.speculative` and `pair.engine_args`
are vLLM's own and are checked against the release (SL401, SL421).

Fails:

    load: {concurency: [1, 4], requests: 32}

Passes:

    load: {concurrency: [1, 4], requests: 32}

Way out: take the suggested name, or remove the key.
"""

from __future__ import annotations

SEVERITY = "error"
NEEDS = "spec"
