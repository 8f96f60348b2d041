"""SL530 workload-id-ambiguous: two workloads have one id, or a workload is called `all`.

Criteria, prompts in the lock and figures of a result are kept by the id: of two workloads with one, only one would be seen. `all`
means every workload where a criterion says it.

Fails:

    workloads: [{id: chat, profile: short_repetitive, …}, {id: chat, profile: varied_long, …}]

Passes:

    workloads: [{id: lists, profile: short_repetitive, …}, {id: chat, profile: varied_long, …}]

Way out: an id of its own for each workload.
"""

from __future__ import annotations

from collections.abc import Iterator

from speclint.diagnostic import Finding, pointer
from speclint.releases import Release
from speclint.spec import Spec

SEVERITY = "error"
NEEDS = "spec"


def check(spec: Spec, release: Release | None) -> Iterator[Finding]:
    seen: dict[str, str] = {}
    for index, row in spec.rows("protocol", "workloads"):
        name, path = row.get("id"), pointer("protocol", "workloads", index, "id")
        if not isinstance(name, str):
            continue
        if name == "all":
            yield Finding(path, "`all` stands for every workload in a criterion", "give it another id")
        elif name in seen:
            message = f"two workloads are called `{name}`"
            yield Finding(path, message, "criteria and figures name them; rename one", related=((seen[name], "first here"),))
        seen.setdefault(name, path)
