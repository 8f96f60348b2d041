"""Where the comparison with a base branch is offered: `specrun verify --base`, the pre-commit hook, the workflow."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from history_sample import Repository, made, parsed_once  # noqa: F401
from ruamel.yaml import YAML

from speclint.cli import cli as speclint
from specrun.cli import cli as specrun

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    return made(tmp_path_factory.mktemp("verify"))


@pytest.fixture
def repository(original: Repository, tmp_path: Path) -> Repository:
    """A copy with a branch `change` checked out, which has a file more than `main`."""
    copied = original.copied(tmp_path / "r")
    (copied.top / "README.md").write_text("about\n")
    copied.commit()
    return copied


def verify(repository: Repository, *flags: str) -> Result:
    return CliRunner().invoke(specrun, ["verify", str(repository.spec), *flags], standalone_mode=True)


def rows(done: Result) -> dict[str, str]:
    """The claims that are of interest here, to their outcome."""
    found = re.findall(r"^(ok|failed|not checked) +(.*?)  ", done.stdout, re.MULTILINE)
    return {claim: outcome for outcome, claim in found}


def test_verify_says_that_history_was_not_checked_and_how(repository: Repository) -> None:
    said = verify(repository).stdout
    assert "Not checked here: whether entries were removed" in said and "`--base origin/main`" in said
    assert "Not checked here" not in verify(repository, "--base", "main").stdout


def test_verify_against_a_base(repository: Repository) -> None:
    claim = f"every approval and result of main ({repository.git('rev-parse', 'main')[:7]}) stands in this repository as it was"
    assert rows(verify(repository, "--base", "main"))[claim] == "ok"
    other = repository.top / "other.spec.yaml"
    other.write_bytes(repository.spec.read_bytes())
    repository.change("results", lambda entries: entries.pop())
    found = rows(verify(repository, "--base", "main"))
    assert found[claim] == "failed"
    repository.spec.write_bytes(other.read_bytes())
    repository.change("results", lambda entries: entries.pop(), other)
    done = verify(repository, "--base", "main")
    assert rows(done)[claim] == "failed" and "leaves out result r2" in done.stdout  # another file's fault


def test_verify_goes_by_the_allowed_signers_of_the_base(repository: Repository) -> None:
    repository.trust(repository.line("mallory"))
    found = rows(verify(repository, "--base", "main"))
    assert found["result r1: signed by who it says, unchanged since"] == "ok"
    assert found["who may sign is what the base says"] == "not checked"
    assert rows(verify(repository))["result r1: signed by who it says, unchanged since"] == "failed"


def test_verify_judges_entries_of_the_base_at_their_own_time(repository: Repository) -> None:
    repository.git("checkout", "-q", "main")
    options = 'namespaces="pair-spec-approval,pair-spec-result",valid-before="20261130113000"'
    repository.trust(repository.line("alice", options))
    repository.commit()
    repository.branch("later")
    repository.add_result("r3")
    found = rows(verify(repository, "--base", "main"))
    claim = "signed by who it says, unchanged since"
    assert [found[f"result {run}: {claim}"] for run in ("r1", "r2", "r3")] == ["ok", "ok", "not checked"]


def test_verify_without_anything_to_compare_with_is_bad_usage(repository: Repository) -> None:
    done = verify(repository, "--base", "origin/main")
    assert done.exit_code == 2 and "there is no origin/main here" in done.stderr


def test_the_hook_sees_what_no_list_of_files_shows(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    hooks: list[dict[str, Any]] = YAML(typ="safe").load((ROOT / ".pre-commit-hooks.yaml").read_text())
    (hook,) = [hook for hook in hooks if hook["id"] == "speclint-history"]
    assert (hook["pass_filenames"], hook["always_run"], hook["stages"]) == (False, True, ["pre-push"])
    repository.git("update-ref", "refs/remotes/origin/main", "main")
    repository.spec.unlink()
    repository.commit()
    monkeypatch.chdir(repository.top)
    program, *words = [*hook["entry"].split(), *hook["args"]]
    done = CliRunner().invoke(speclint, words)
    assert program == "speclint" and done.exit_code == 1 and "pairs/x.spec.yaml at" in done.stdout


def test_the_workflow_compares_in_a_clone_with_its_whole_history() -> None:
    workflow = YAML(typ="safe").load((ROOT / "examples" / "github-action.yaml").read_text())
    steps = workflow["jobs"]["speclint"]["steps"]
    assert steps[0]["with"]["fetch-depth"] == 0
    checks = [step["run"] for step in steps if "speclint check" in step.get("run", "")]
    assert len(checks) == 3 and all('--base "$BASE"' in command for command in checks)
    assert "paths" not in (workflow["on"]["pull_request"] or {})
    assert "github.event.before" in workflow["env"]["BASE"] and "github.base_ref" in workflow["env"]["BASE"]
