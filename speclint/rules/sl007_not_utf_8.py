"""SL007 not-utf-8: the file's bytes are not UTF-8.

Digests and signatures are over text; in another encoding it would read differently elsewhere. A byte-order mark is
accepted and kept.

Fails:

    purpose: a file saved as Latin-1 or UTF-16

Passes:

    purpose: the same file saved as UTF-8

Way out: save the file as UTF-8.
"""

from __future__ import annotations

SEVERITY = "error"
NEEDS = "spec"
