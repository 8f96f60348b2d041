"""SL005 many-documents: the file holds more than one YAML document.

Results are appended at the end of the file, which must be the end of the spec that they belong to.

Fails:

    schema: pair-spec/v1
    ---
    schema: pair-spec/v1

Passes:

    schema: pair-spec/v1

Way out: one spec a file.
"""

from __future__ import annotations

SEVERITY = "error"
NEEDS = "spec"
