"""SL003 anchor-alias-or-tag: anchors, aliases, merge keys, tags and directives are not used in a spec.

A reviewer should see each value where it counts. Aliases also let 258 bytes grow to megabytes, and tags make a reader
build other types.

Fails:

    target: &model {model: org/a}

Passes:

    target: {model: org/a}

Way out: write the value out where it is needed.
"""

from __future__ import annotations

SEVERITY = "error"
NEEDS = "spec"
