"""What the lock and its rules rest on, held against real vLLM."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from tiny_checkpoints import PROSE, write_model

from speclint.lock.facts import build_lock

LOGGED = re.compile(r"VocabMapping initialized: target_vocab=(\d+), draft_vocab=(\d+), intersection=(\d+)")
SIZES = {"hidden_size": 64, "num_key_value_heads": 2, "head_dim": 32}
DEADLINE = 240.0


@pytest.mark.live
def test_the_intersection_is_the_one_the_engine_logs(tmp_path: Path) -> None:
    pytest.importorskip("vllm")
    write_model(tmp_path / "target", config=SIZES)
    write_model(tmp_path / "draft", PROSE, size=280, specials=("</s>", "<s>"), config={**SIZES, "eos_token_id": 0})
    speculative = {"method": "draft_model", "model": "draft", "num_speculative_tokens": 2}
    spec = {"pair": {"target": {"model": "target"}, "speculative": speculative}, "protocol": {"workloads": []}}
    pair = build_lock(spec, tmp_path)["pair"]
    with _server(tmp_path, speculative) as log:
        # A server that is still starting does not heed SIGTERM.
        _awaited(re.compile("Application startup complete"), log)
        target, draft, shared = (int(number) for number in _awaited(LOGGED, log).groups())
    assert (target, draft, shared) == (300, 280, pair["intersection"])
    assert pair["overlap_target"] == pytest.approx(shared / target, abs=1e-6)
    assert "target tokenizer has no unk_token_id; falling back to eos_token_id=1" in log.read_text()
    assert "draft tokenizer has no unk_token_id; falling back to eos_token_id=0" in log.read_text()
    assert [pair["fallback"][side]["id"] for side in ("target", "draft")] == [1, 0]


@pytest.mark.live
def test_a_checkpoint_with_speculators_config_speculates_whatever_the_command_line_says(tmp_path: Path) -> None:
    """SL430: without any speculative setting the engine serves the verifier, with this checkpoint as its draft."""
    engine = pytest.importorskip("vllm.transformers_utils.config")
    proposal, verifier = {"proposal_type": "greedy", "speculative_tokens": 3}, {"name_or_path": "org/base-8b"}
    config = {
        "speculators_model_type": "eagle3",
        "speculators_config": {"proposal_methods": [proposal], "verifier": verifier},
        "transformer_layer_config": {"model_type": "llama"},
    }
    (tmp_path / "config.json").write_text(json.dumps(config))
    folder = str(tmp_path)
    model, tokenizer, found = engine.maybe_override_with_speculators(folder, None, False, vllm_speculative_config=None)
    assert (model, tokenizer) == ("org/base-8b", "org/base-8b")
    assert found == {"method": "eagle3", "num_speculative_tokens": 3, "model": folder}
    asked = {"method": "ngram", "num_speculative_tokens": 2, "model": "elsewhere"}
    found = engine.maybe_override_with_speculators(folder, None, False, vllm_speculative_config=asked)[2]
    assert (found["method"], found["model"]) == ("eagle3", folder)


@contextmanager
def _server(folder: Path, speculative: dict[str, Any]) -> Iterator[Path]:
    """A server with weights made up by the engine, for as long as the block; gives its log."""
    log = folder / "server.log"
    config = {**speculative, "model": str(folder / "draft"), "use_heterogeneous_vocab": True}
    with tempfile.TemporaryDirectory() as private, log.open("wb") as output:
        words = ["--model", str(folder / "target"), "--uds", f"{private}/s.sock", "--load-format", "dummy"]
        words += ["--enforce-eager", "--dtype", "float32", "--max-model-len", "256"]
        command = [sys.executable, "-m", "vllm.entrypoints.openai.api_server", *words]
        settings = {"VLLM_CPU_KVCACHE_SPACE": "1", "HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1"}
        process = subprocess.Popen(
            [*command, "--speculative-config", json.dumps(config)],
            stdout=output,
            stderr=output,
            env=os.environ | settings,
            start_new_session=True,
        )
        try:
            yield log
        finally:
            _stop(process)


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Politely, then the whole group: the engine and its workers are processes of their own."""
    process.terminate()
    with suppress(subprocess.TimeoutExpired):
        process.wait(30)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _awaited(line: re.Pattern[str], log: Path) -> re.Match[str]:
    end = time.monotonic() + DEADLINE
    while time.monotonic() < end:
        found = line.search(log.read_text())
        if found:
            return found
        time.sleep(0.5)
    raise AssertionError(f"{line.pattern} was not logged:\n{log.read_text()[-3000:]}")
