"""Where the hub cache of this machine keeps a model, by the variables that huggingface_hub reads, without importing it."""

from __future__ import annotations

import os
from pathlib import Path


def snapshot(model: str, revision: str) -> Path:
    """Folder of a hub id at a commit; there or not."""
    home = os.environ.get("HF_HOME") or Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache", "huggingface")
    cache = Path(os.environ.get("HF_HUB_CACHE") or Path(home, "hub")).expanduser()
    return cache / f"models--{model.replace('/', '--')}" / "snapshots" / revision
