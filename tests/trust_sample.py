"""A spec that lints clean, keys, and a result entry, for the tests of approvals, signatures, append and verify."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

from speclint import document
from speclint.canonical import rounded, section_digests, spec_digest
from specrun.compare import interval_of

ALICE, BOB = "alice@example.com", "bob@example.com"
NAMESPACES = "pair-spec-approval,pair-spec-result"

SPEC = """\
schema: pair-spec/v1
name: qwen3-k3
purpose: Does a small draft help?

pair:
  engine: {name: vllm, version: "0.32.0"}
  target: {model: Qwen/Qwen3-8B, revision: b968826d9c46dd6066d109eabc6255188de91218, dtype: bfloat16}
  speculative:
    method: draft_model
    model: Qwen/Qwen3-0.6B
    revision: c1899de289a04d12100db370d81485cdf75e47ca
    num_speculative_tokens: 3
  vocabulary: {mode: shared}
  engine_args: {max_model_len: 4096, seed: 0}
  placement: {device: cuda}

protocol:
  kind: measurement
  request: {endpoint: completions, expect: {finish_reason: length}}
  sampling: {temperature: 0.0, top_p: 1.0, top_k: 0, seed: 0}
  workloads:
    - id: repetitive
      profile: short_repetitive
      prompts: {generator: repetitive, seed: 7}
      output: {tokens: 64, spread: 0.5, stop: length}
    - id: varied
      profile: varied_long
      prompts: {generator: varied, seed: 7}
      output: {tokens: 256, spread: 0.5, stop: length}
  load: {concurrency: [1, 4], requests: 64, prefix_caching: false}
  design: {blocks: 6, servers: restart, prompts: fresh, warmup: 16, controls: [aa, matched]}
  criteria:
    - {id: faster-alone, metric: request_duration_p50, compare: ratio, workload: all, concurrency: 1, at_most: 0.9}
    - {id: no-harm-busy, metric: output_throughput, compare: ratio, workload: all, concurrency: 4, at_least: 0.95}
    - {id: first-token, metric: ttft_p50, compare: ratio, workload: all, concurrency: all, at_most: 1.25}
    - {id: capacity, metric: kv_capacity_tokens, compare: ratio, at_least: 0.85}
    - {id: accepted, metric: acceptance_rate, workload: varied, concurrency: all, at_least: 0.4}
  confidence: 0.95
"""


def make_key(folder: Path, name: str, kind: str = "ed25519") -> Path:
    """An OpenSSH key without passphrase; returns the private file."""
    command = ["ssh-keygen", "-q", "-t", kind, "-N", "", "-C", name, "-f", str(folder / name)]
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
    return folder / name


def public(key: Path) -> str:
    """Type and base64 of a key's public half."""
    return " ".join(key.with_name(key.name + ".pub").read_text().split()[:2])


def write_trust(folder: Path, **keys: Path) -> None:
    """speclint.toml and an allowed-signers file with a line per principal."""
    (folder / "speclint.toml").write_text('[trust]\nallowed_signers = "allowed_signers"\n')
    lines = [f'{name}@example.com namespaces="{NAMESPACES}" {public(key)}\n' for name, key in keys.items()]
    (folder / "allowed_signers").write_text("".join(lines))


def data_of(path: Path) -> dict[str, Any]:
    """What the file says now."""
    found = document.read(path).data
    assert isinstance(found, dict)
    return found


def result(data: dict[str, Any], run: str = "r1", **changes: Any) -> dict[str, Any]:
    """A schema-valid result of the spec, unsigned, in which every criterion follows from its blocks."""
    entry = {
        "id": run,
        "attempts": {"pair": 2, "spec": 1},
        "started": "2026-11-30T10:00:00Z",
        "ended": "2026-11-30T11:00:00Z",
        "spec": spec_digest(data),
        "sections": section_digests(data),
        "approvals": [],
        "previous": [],
        "tool": {"specpair": "0.1.0"},
        "engine": {"name": "vllm", "version": "0.32.0"},
        "host": {"cpu": "8 cores: \u00b5arch \U0001f600", "memory_bytes": 137438953472},
        "placement": {"device": "cuda", "names": ["H200"]},
        "established": {"verdict": "established", "checks": [_check("method", "ok"), _check("drafts", "ok")]},
        "arms": {"target": {"starts": 6, "ready_s": [41.5, 40.25]}, "pair": {"starts": 6, "ready_s": []}},
        "config_diff": [{"field": "speculative_config", "class": "expected"}],
        "figures": {
            "columns": ["workload", "concurrency", "arm", "ttft_p50"],
            "rows": [["varied", 1, "target", 0.0412345], ["varied", 1, "pair", 1.5e-07], ["varied", 4, "pair", None]],
        },
        "ratios": [{"metric": "ttft_p50", "workload": "varied", "value": 0.91, "blocks": [0.9, 0.92]}],
        "verdicts": [_verdict(criterion) for criterion in data["protocol"]["criteria"]],
        "diagnosis": [{"code": "DX01", "text": "decode is faster: break-even 1.9, delivered 2.4"}],
        "scope": ["evaluated: 2 workloads", "not evaluated: other lengths"],
        "records": {"manifest": "sha256:" + "0" * 64, "files": 3, "requests": 512},
        "signer": ALICE,
    }
    return entry | changes


def _check(name: str, outcome: str) -> dict[str, str]:
    return {"check": name, "outcome": outcome, "detail": "as the spec says"}


def _verdict(criterion: dict[str, Any]) -> dict[str, Any]:
    """Met, with blocks spread by 1 % around a value on the good side; capacity is judged by its worst block."""
    ratio, exact = criterion.get("compare") == "ratio", criterion["metric"].startswith("kv_")
    value = criterion["at_most"] * 0.9 if "at_most" in criterion else criterion["at_least"] * 1.1
    blocks = [rounded(value * (1 + step / 100)) for step in (-1, 1, -0.5, 0.5, 0, 0.2)]
    interval = (min(blocks),) * 3 if exact else interval_of(blocks, ratio, 0.95)
    cell = dict(zip(("value", "low", "high"), interval, strict=True))
    where = {"workload": "-", "concurrency": None} if exact else {"workload": "varied", "concurrency": 1}
    return {"id": criterion["id"], "verdict": "met", "cells": [where | cell | {"verdict": "met", "blocks": blocks}]}
