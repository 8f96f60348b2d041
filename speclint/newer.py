"""What to say of a place that a newer version of this program wrote: a way out that leaves the file as it is.

Renaming a key or a format to the nearest one known here would break the digests and signatures that rest on it.
"""

from __future__ import annotations

import re
from typing import Any

from speclint import __version__
from speclint.diagnostic import pointer
from speclint.lock.format import FORMAT as NEWEST_LOCK
from speclint.spec import Spec

FORMAT = re.compile(r"pair-spec/v([0-9]{1,4})")
KNOWN = 1
"""The newest format of a spec that is known here."""


def written_by_newer(data: Any, path: str) -> str:
    """The help for a place whose form is not known here, if a newer version may have written it; else empty."""
    spec = Spec(data if isinstance(data, dict) else {})
    match = FORMAT.fullmatch(spec.at("schema", kind=str) or "")
    if path == "/schema" and match and int(match[1]) > KNOWN:
        return f"specpair {__version__} knows pair-spec/v{KNOWN}: read the file with a newer one, and leave it as it is"
    if path == "/lock/format" and (spec.at("lock", "format", kind=int) or 0) > NEWEST_LOCK:
        return f"a newer speclint than {__version__} wrote the lock: use that one, and leave the lock as it is"
    for index, _ in spec.results:
        maker = maker_of(spec.data["results"][index])
        if path.startswith(pointer("results", index) + "/") and maker not in ("", __version__):
            return f"specpair {maker} made this result, this is {__version__}: read it with that one or a newer one"
    return ""


def maker_of(entry: dict[str, Any]) -> str:
    """The version of this program that made a result; empty if it does not say."""
    tool = entry.get("tool")
    version = tool.get("specpair") if isinstance(tool, dict) else None
    return version if isinstance(version, str) else ""
