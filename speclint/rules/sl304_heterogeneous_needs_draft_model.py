"""SL304 heterogeneous-needs-draft-model: heterogeneous vocabularies exist for method draft_model only.

Heads (EAGLE, MTP, …) share the target's vocabulary, and ngram and suffix have none.

Source: vllm/config/speculative.py, 0.25.0 to 0.33.0 (ValueError).

Fails:

    speculative: {method: eagle3, use_heterogeneous_vocab: true}

Passes:

    speculative: {method: draft_model, use_heterogeneous_vocab: true}

Way out: method `draft_model` with an ordinary draft, or mode `shared` (`none` for ngram and suffix).
"""

from __future__ import annotations

from collections.abc import Iterator

from speclint.diagnostic import Finding
from speclint.methods import heterogeneous
from speclint.releases import Release
from speclint.spec import Spec

SEVERITY = "error"
NEEDS = "spec"


def check(spec: Spec, release: Release | None) -> Iterator[Finding]:
    if not heterogeneous(spec) or spec.method in (None, "draft_model"):
        return
    flagged = "use_heterogeneous_vocab" in spec.speculative
    where = "/pair/speculative/use_heterogeneous_vocab" if flagged else "/pair/vocabulary/mode"
    message = f"method `{spec.method}` cannot draft in another vocabulary; only draft_model can"
    help = "use method draft_model, or mode shared (none for ngram and suffix)"
    source = "vllm/config/speculative.py, 0.25.0-0.33.0"
    yield Finding("/pair/speculative/method", message, help, source, related=((where, "asked for here"),))
