"""SL001 not-yaml: the file is not a YAML block mapping that begins in the first column.

Tools append approvals and results as text, byte for byte, which is only safe in this shape. Flow mappings (`{...}`),
lists, indented roots and empty files are refused, as is everything that is no YAML.

Fails:

    {schema: pair-spec/v1, name: x}

Passes:

    schema: pair-spec/v1
    name: x

Way out: write `key: value` lines from the first column; look for a missing quote, bracket or blank.
"""

from __future__ import annotations

SEVERITY = "error"
NEEDS = "spec"
