"""SL522 one-start: resident servers are one start of each arm, and a start is what varies.

Windows on one start repeat the same luck of memory layout, clocks and caches. With start-to-start spread of 1 % and window
spread of 1 %, 6 windows cover the configuration's ratio in 63 % of runs instead of 95 %, and 12 windows in 45 %. Verdicts
then read "met, one start" and the exit status is 11. Capacity and memory are measured all the same: on first starts, in which
each arm has the device alone.

Fails:

    design: {blocks: 6, servers: resident, warmup: 16}

Passes:

    design: {blocks: 6, servers: restart, warmup: 16}

Way out: `servers: restart` for a verdict; `resident` for a first look.
"""

from __future__ import annotations

from collections.abc import Iterator

from speclint.diagnostic import Finding
from speclint.releases import Release
from speclint.spec import Spec

SEVERITY = "warning"
NEEDS = "spec"

SERVERS = "/protocol/design/servers"


def check(spec: Spec, release: Release | None) -> Iterator[Finding]:
    if spec.design.get("servers") != "resident":
        return
    yield Finding(SERVERS, 'resident servers give one start: at best "met, one start"', "use `restart` for a verdict")
