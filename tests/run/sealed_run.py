"""A finished, signed run for the tests of what leaves the machine: servers and shell hold credentials, prompts are private."""

from __future__ import annotations

import hashlib
import io
import json
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from stand_in import ENGINE
from stand_in_run import spec_text
from trust_sample import data_of, make_key, write_trust

from speclint import document, edit
from speclint.workload import generator_version, prompt_digests
from specrun import blocks, device, entry, run
from specrun.progress import Progress
from specrun.run import Run

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "tiny-draft.spec.yaml"
# By environment variable; what servers might find in files of the user's home has the same values.
CREDENTIALS = {
    "HF_TOKEN": "canary01-of-the-hub",
    "AWS_ACCESS_KEY_ID": "canary02-access-key",
    "AWS_SECRET_ACCESS_KEY": "canary03/secret+key",
    "AWS_SESSION_TOKEN": "canary04-session",
    "OPENAI_API_KEY": "canary05-api-key",
    "WANDB_API_KEY": "canary06-api-key",
    "GITHUB_TOKEN": "canary07-git",
    "HTTPS_PROXY": "http://me:canary08@proxy.example:3128",
    "PIP_INDEX_URL": "https://canary09@index.example/simple",
}


@dataclass(frozen=True, slots=True)
class Sealed:
    """The run, its spec file with the signed result, the key it was signed with, and what was shown meanwhile."""

    run: Run
    spec: Path
    key: Path
    progress: str


def sealed_run(place: Path) -> Sealed:
    """Two blocks on the stand-in server; the first workload's prompts are a private file. Every fifth request fails."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in CREDENTIALS.items():
            patch.setenv(name, value)
        patch.setattr(device, "PLACE", place)  # no run elsewhere on this machine is in its way
        spec, key = locked_spec(place), make_key(place, "alice")
        write_trust(place, alice=key)
        made = run.create(spec, data_of(spec), [], dict(ENGINE), place / "runs", str(leaky_interpreter(place)))
        blocks.measure(made, progress := Progress(blocks.steps(made), stream=io.StringIO()))
        entry.finish(made)
        entry.append(made, spec, key)
        return Sealed(made, spec, key, progress.stream.getvalue())


def locked_spec(place: Path) -> Path:
    """The stand-in's spec over two blocks with private prompts, and a lock with the digests of its own prompts."""
    for name in ("model", "draft"):
        (place / name).mkdir()
    text = spec_text(("blocks: 4", "blocks: 2"), ("{generator: repetitive, seed: 7}", private_prompts(place)))
    path = place / "stand-in.spec.yaml"
    protocol = document.parse(text.encode(), "").data["protocol"]
    own = {
        workload["id"]: {"generator": generator_version(workload), "blocks": prompt_digests(workload, protocol, place)}
        for workload in protocol["workloads"]
    }
    path.write_bytes(edit.replace_section(text.encode(), "lock", data_of(EXAMPLE)["lock"] | {"workloads": own}))
    return path


def private_prompts(place: Path) -> str:
    """A prompt file that is long enough for two blocks, as the spec names it."""
    text = "".join(json.dumps({"prompt": f"canary10 prompt number {n} of ours"}) + "\n" for n in range(14))
    (place / "ours.jsonl").write_text(text, encoding="utf-8")
    return f"{{file: ours.jsonl, sha256: {hashlib.sha256(text.encode()).hexdigest()}, private: true}}"


def leaky_interpreter(place: Path) -> Path:
    """A program that takes an interpreter's words and starts the stand-in that tells every credential."""
    (place / "credentials.json").write_text(json.dumps(CREDENTIALS), encoding="utf-8")
    words = [sys.executable, str(Path(__file__).with_name("leaky.py")), str(place / "credentials.json")]
    path = place / "python"
    path.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n', encoding="utf-8")
    path.chmod(0o755)
    return path
