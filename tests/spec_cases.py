"""Cases of rules: small overlays on one good spec, or whole files.

An overlay is a mapping from JSON Pointers to values, laid over `tests/rules/good.spec.yaml`; `remove` lists pointers to
take away, `above` holds comments to put above pointers, and `environment` holds variables to set for the check. Any other case
file is a whole file and is read as it is.
"""

from __future__ import annotations

import copy
import io
import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

from ruamel.yaml import YAML

from speclint import document, workload
from speclint.diagnostic import Diagnostic
from speclint.lint import inspect

RULES = Path(__file__).parent / "rules"
TODAY = date(2026, 6, 1)


def good() -> dict[str, Any]:
    """The good spec's data, with the prompt digests of this version's generators."""
    return copy.deepcopy(_good())


@cache
def _good() -> dict[str, Any]:
    read = document.read(RULES / "good.spec.yaml")
    assert not read.problems
    data: dict[str, Any] = read.data
    data["lock"]["workloads"] = _digests(data)
    return data


def overlaid(changes: dict[str, Any]) -> dict[str, Any]:
    """The good spec with changes; the lock's prompt digests follow the protocol unless they are changed themselves."""
    data = good()
    for path in changes.pop("remove", []):
        holder, key = _holder(data, path)
        del holder[key]
    for path, value in changes.items():
        holder, key = _holder(data, path)
        if isinstance(holder, list) and key == len(holder):
            holder.append(value)
        else:
            holder[key] = value
    if "lock" in data and not any(path.startswith("/lock/workloads") for path in changes):
        data["lock"]["workloads"] = _digests(data)
    return data


def case(path: Path) -> list[Diagnostic]:
    """Diagnostics of a case file."""
    with environment(path):
        return lint(case_source(path), path.parent)


@contextmanager
def environment(path: Path) -> Iterator[None]:
    """Variables that a case is about, while it is checked; those that begin with `./` are paths beside the case file."""
    read = document.read(path).data
    wanted = read.get("environment", {}) if isinstance(read, dict) else {}
    values = {name: str(path.parent / value) if value.startswith("./") else value for name, value in wanted.items()}
    with mock.patch.dict(os.environ, {"HF_HUB_OFFLINE": "0"} | values):
        yield


def case_source(path: Path) -> bytes:
    """The bytes that a case file stands for."""
    source = path.read_bytes()
    read = document.parse(source, path.name)
    if isinstance(read.data, dict) and all(key in ("remove", "above", "environment") or re.match(r"/", key) for key in read.data):
        comments = read.data.pop("above", {})
        read.data.pop("environment", None)
        source = commented(dumped(overlaid(read.data)), comments)
    return source


def lint(source: bytes, folder: Path = RULES) -> list[Diagnostic]:
    """Diagnostics of bytes, on a fixed day."""
    return inspect(document.parse(source, "case.spec.yaml"), folder, today=TODAY).diagnostics


def dumped(data: Any) -> bytes:
    """YAML text of plain data, in block style as a spec is."""
    yaml = YAML(typ="safe", pure=True)
    yaml.default_flow_style = False
    yaml.width = 4096
    yaml.sort_base_mapping_type_on_output = False
    yaml.representer.ignore_aliases = lambda *_: True  # parts that data shares are written out
    out = io.BytesIO()
    yaml.dump(data, out)
    return out.getvalue()


def commented(source: bytes, comments: dict[str, str]) -> bytes:
    """The text with a comment line above each pointer."""
    for path, comment in comments.items():
        read = document.parse(source, "")
        lines = source.decode().splitlines(keepends=True)
        lines.insert(read.span(path, on_key=True).line - 1, f"{comment}\n")
        source = "".join(lines).encode()
    return source


def _digests(data: dict[str, Any]) -> dict[str, Any]:
    protocol = data["protocol"]
    parts = json.dumps({key: protocol.get(key) for key in ("design", "load")})
    return {row["id"]: _prompts(json.dumps(row), parts) for row in protocol["workloads"]}


@cache
def _prompts(workload_text: str, protocol_text: str) -> dict[str, Any]:
    row, protocol = json.loads(workload_text), json.loads(protocol_text)
    try:
        blocks = workload.prompt_digests(row, protocol, RULES)
    except (KeyError, TypeError, ValueError, ArithmeticError, workload.WorkloadError):
        blocks = []  # the case is about a protocol that no prompts can be drawn from
    return {"generator": workload.generator_version(row), "blocks": blocks}


def _holder(data: Any, path: str) -> tuple[Any, Any]:
    keys = [key.replace("~1", "/").replace("~0", "~") for key in path.split("/")[1:]]
    for key in keys[:-1]:
        data = data[int(key)] if isinstance(data, list) else data.setdefault(key, {})
    return data, int(keys[-1]) if isinstance(data, list) else keys[-1]
