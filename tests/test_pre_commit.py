"""Real pre-commit on a scratch repository, with the hook as `.pre-commit-hooks.yaml` states it.

Only its language is changed, so that the hook runs the speclint of this environment and installs nothing.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from spec_cases import dumped, good, overlaid

ROOT = Path(__file__).parent.parent
PATH = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
PRE_COMMIT = shutil.which("pre-commit", path=PATH)

pytestmark = pytest.mark.skipif(PRE_COMMIT is None, reason="pre-commit is not installed")


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    who = {f"GIT_{role}_{key}": value for role in ("AUTHOR", "COMMITTER") for key, value in (("NAME", "a"), ("EMAIL", "a@b.c"))}
    own = {"PATH": PATH, "HOME": str(tmp_path), "PRE_COMMIT_HOME": str(tmp_path / "cache"), "GIT_CONFIG_GLOBAL": os.devnull}
    return own | who


@pytest.fixture
def repository(tmp_path: Path, environment: dict[str, str]) -> Path:
    """A repository that names a hook repository of ours in its configuration."""
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    stated = (ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8")
    assert "language: python\n" in stated
    (hooks / ".pre-commit-hooks.yaml").write_text(stated.replace("language: python\n", "language: unsupported\n"))
    rev = _committed(hooks, environment)
    folder = tmp_path / "repository"
    folder.mkdir()
    (folder / ".pre-commit-config.yaml").write_text(f"repos:\n- repo: {hooks}\n  rev: {rev}\n  hooks: [{{id: speclint}}]\n")
    return folder


def _committed(folder: Path, environment: dict[str, str]) -> str:
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "x"]):
        subprocess.run(["git", *words], cwd=folder, env=environment, check=True)
    told = subprocess.run(["git", "rev-parse", "HEAD"], cwd=folder, env=environment, check=True, capture_output=True, text=True)
    return told.stdout.strip()


def run(folder: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    assert PRE_COMMIT
    _committed(folder, environment)
    words = [PRE_COMMIT, "run", "--all-files", "--color", "never"]
    return subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_a_bad_spec_stops_the_commit(repository: Path, environment: dict[str, str]) -> None:
    (repository / "good.spec.yaml").write_bytes(dumped(good()))
    (repository / "bad.spec.yaml").write_bytes(dumped(overlaid({"/protocol/design/blocks": 5})))
    (repository / "worse.pairspec.yaml").write_text("not: [closed\n")
    (repository / "chart.yaml").write_text("a: [b\n")
    done = run(repository, environment)
    assert done.returncode == 1 and "speclint" in done.stdout
    assert "--> bad.spec.yaml:" in done.stdout and "error[SL518]" in done.stdout
    assert "--> worse.pairspec.yaml:" in done.stdout and "chart.yaml" not in done.stdout
    assert done.stdout.count("3 files checked") == 1  # one process for all files


def test_a_good_spec_passes(repository: Path, environment: dict[str, str]) -> None:
    (repository / "good.spec.yaml").write_bytes(dumped(good()))
    done = run(repository, environment)
    assert done.returncode == 0 and "Passed" in done.stdout


def test_configuration_of_the_repository_counts(repository: Path, environment: dict[str, str]) -> None:
    (repository / "bad.spec.yaml").write_bytes(dumped(overlaid({"/protocol/design/blocks": 5})))
    (repository / "speclint.toml").write_text('[lint]\nignore = ["SL518"]\n')
    assert run(repository, environment).returncode == 0
