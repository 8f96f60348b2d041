"""SL006 too-deep-or-too-large: the file has more than 64 levels, 25,000 nodes or 600 kB.

A reader in a pull-request check must not be stalled by its input. A spec with dozens of results stays far below.

Fails:

    a: [[[[[[[[ … 65 levels … ]]]]]]]]

Passes:

    a: [[1, 2], [3, 4]]

Way out: keep raw records in `runs/`; the spec holds their digest.
"""

from __future__ import annotations

SEVERITY = "error"
NEEDS = "spec"
