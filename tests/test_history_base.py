"""What `speclint check --base` compares with, and that it never passes because there was nothing to compare with."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from history_sample import GIT, QUIET, Repository, made, parsed_once  # noqa: F401
from trust_sample import SPEC


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    return made(tmp_path_factory.mktemp("base"))


@pytest.fixture
def repository(original: Repository, tmp_path: Path) -> Repository:
    """A copy with a branch `change` checked out, on which r2 was removed."""
    copied = original.copied(tmp_path / "répo 1")
    copied.change("results", lambda rows: rows.pop())
    copied.commit()
    return copied


def refused(repository: Repository, base: str, path: Path | None = None) -> str:
    """The message of a check that found nothing to compare with."""
    done = repository.check(base=base, path=path)
    assert done.exit_code == 2 and done.stdout == "", done.output
    return done.stderr


def clone(repository: Repository, *options: str) -> Repository:
    """A clone through git's transport, with `change` checked out."""
    to = repository.top.parent / "clone"
    command = ["git", *QUIET, "clone", "-q", *options, "--branch", "change", f"file://{repository.top}", str(to)]
    subprocess.run(command, env=GIT, check=True, capture_output=True)
    return Repository(to, repository.keys)


def test_the_change_is_seen(repository: Repository) -> None:
    assert repository.codes() == ["SL606"]


def test_head_itself(repository: Repository) -> None:
    for base in ("change", "HEAD", repository.git("rev-parse", "HEAD")):
        assert "would be compared with itself and anything would pass" in refused(repository, base)


def test_head_that_is_part_of_the_base_already(repository: Repository) -> None:
    repository.branch("ahead", "change")
    (repository.top / "README.md").write_text("about\n")
    repository.commit()
    repository.git("checkout", "-q", "change")
    assert "HEAD is part of ahead already" in refused(repository, "ahead")


def test_uncommitted_changes_are_compared_with_head(repository: Repository) -> None:
    repository.change("results", lambda rows: rows.clear())
    assert repository.codes(base="HEAD") == ["SL606"]
    repository.git("checkout", "-q", "--", ".")
    repository.trust(repository.line("mallory"))
    assert set(repository.codes(base="HEAD")) == {"SL606"}
    repository.git("checkout", "-q", "--", ".")
    repository.spec.write_bytes(repository.spec.read_bytes().replace(b"\n", b"\r\n"))
    assert "compared with itself" in refused(repository, "HEAD")  # line ends are no change


def test_a_shallow_clone_is_told_how_to_fetch_the_rest(repository: Repository) -> None:
    shallow = clone(repository, "--depth", "1", "--no-single-branch")
    told = refused(shallow, "origin/main")
    assert "the history is cut off here (a shallow clone)" in told
    (command,) = re.findall("`(git fetch .*)`", told)
    shallow.git(*shlex.split(command)[1:])
    assert shallow.codes(base="origin/main") == ["SL606"]


def test_a_shallow_clone_that_lacks_the_base_too(repository: Repository) -> None:
    shallow = clone(repository, "--depth", "1")
    told = refused(shallow, "origin/main")
    assert "there is no origin/main here" in told
    (command,) = re.findall("`(git fetch .*)`", told)
    assert command == "git fetch --unshallow origin +refs/heads/main:refs/remotes/origin/main"
    shallow.git(*shlex.split(command)[1:])
    assert shallow.codes(base="origin/main") == ["SL606"]


def test_a_shallow_clone_that_holds_the_base_itself_is_enough(repository: Repository) -> None:
    shallow = clone(repository, "--depth", "2")
    assert shallow.codes(base="HEAD~1") == ["SL606"]  # as a merge commit that a forge makes: its parent is the branch's tip


@pytest.mark.parametrize(
    ("base", "words"),
    [
        (
            "origin/main",
            "there is no origin/main here, so nothing can be compared: `git fetch origin +refs/heads/main:refs/re",
        ),
        ("0" * 40, "0000000 is no commit: a push that makes a branch has none before it"),
        ("1" * 40, f"`git fetch origin {'1' * 40}`"),
        ("-x", "'-x' names no commit"),
        ("", "'' names no commit"),
        ("HEAD:pairs", "there is no HEAD:pairs here"),
        ("a'b c", """`git fetch origin 'a'"'"'b c'`"""),
    ],
)
def test_a_base_that_is_not_there(repository: Repository, base: str, words: str) -> None:
    assert words in refused(repository, base)


def test_histories_without_a_common_commit(repository: Repository) -> None:
    repository.git("checkout", "-q", "--orphan", "alone")
    repository.commit()
    assert (
        "alone and HEAD have no commit in common" in (repository.git("checkout", "-q", "change"), refused(repository, "alone"))[1]
    )


def test_outside_of_any_repository_and_before_the_first_commit(repository: Repository, tmp_path: Path) -> None:
    spec = tmp_path / "x.spec.yaml"
    spec.write_text(SPEC)
    assert "not a git repository" in refused(repository, "main", spec)
    subprocess.run(["git", "init", "-q", str(tmp_path)], env=GIT, check=True)
    assert "has no commit yet" in refused(repository, "main", spec)


def test_files_of_two_repositories(repository: Repository, tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(repository.top, other)
    assert "lie in several repositories" in repository.check(str(other)).stderr


def test_without_git(repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "git is not installed" in refused(repository, "main")


def test_another_release_is_another_question(repository: Repository) -> None:
    assert "ask one at a time" in repository.check("--to", "latest").stderr


def test_the_remote_is_named_without_credentials_and_so_is_a_second_one(repository: Repository) -> None:
    repository.git("remote", "add", "origin", "https://someone:secret@example.org/fork.git")
    repository.git("update-ref", "refs/remotes/origin/main", "main")
    told = repository.check(base="origin/main").stderr
    assert (
        f"compared with origin/main ({repository.git('rev-parse', 'main')[:7]}) of https://example.org/fork.git, merge base"
        in told
    )
    assert "secret" not in told
    repository.git("remote", "add", "upstream", "https://example.org/real.git")
    told = repository.check(base="origin/main").stderr
    assert "(remotes too: upstream; if origin is a fork, compare with the one it goes to)" in told


# --- wherever it runs ---


def test_from_a_sub_folder_by_relative_paths(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(repository.spec.parent)
    assert [row["file"] for row in repository.found(path=Path("x.spec.yaml"))] == ["x.spec.yaml"]
    other = repository.top / "other.spec.yaml"
    other.write_text(SPEC)
    assert [row["file"] for row in repository.found(path=Path("../other.spec.yaml"))] == ["x.spec.yaml"]


def test_variables_of_a_hook_lead_nowhere_else(repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY"):
        monkeypatch.setenv(name, str(tmp_path / "elsewhere"))
    monkeypatch.setenv("GIT_LITERAL_PATHSPECS", "1")
    assert repository.codes() == ["SL606"]


def test_names_of_files_are_taken_as_they_are(repository: Repository) -> None:
    odd = repository.top / "pairs" / "a\"b\\ \t'ü*.spec.yaml"
    repository.git("checkout", "-q", "main")
    repository.spec.rename(odd)
    repository.commit()
    repository.branch("next")
    odd.unlink()
    repository.commit()
    assert "ü*.spec.yaml" in repository.found()[0]["message"]


def test_a_name_that_is_no_text_is_told_all_the_same(repository: Repository) -> None:
    odd = Path(os.fsdecode(bytes(repository.spec.parent) + b"/\xff.spec.yaml"))
    repository.git("checkout", "-q", "main")
    repository.spec.rename(odd)
    repository.commit()
    repository.branch("next")
    odd.unlink()
    repository.commit()
    assert "?.spec.yaml at" in repository.found()[0]["message"]


def test_a_checkout_with_windows_line_ends(repository: Repository) -> None:
    repository.git("checkout", "-q", "main")
    repository.branch("crlf")
    repository.add_result("r3")
    repository.commit()
    repository.git("config", "core.autocrlf", "true")
    for path in ("pairs/x.spec.yaml", "allowed_signers", "speclint.toml"):
        (repository.top / path).unlink()
    repository.git("checkout", "-q", "--", ".")
    assert b"\r\n" in repository.spec.read_bytes() and b"\r\n" in (repository.top / "allowed_signers").read_bytes()
    assert repository.found() == []


def test_submodules_are_left_alone(repository: Repository, original: Repository) -> None:
    repository.git("checkout", "-q", "main")
    repository.git("submodule", "-q", "add", f"file://{original.top}", "sub")
    repository.commit()
    repository.branch("next")
    repository.git("rm", "-qf", "sub")
    repository.commit()
    assert repository.found() == []


def test_a_sparse_checkout_loses_nothing(repository: Repository) -> None:
    repository.git("checkout", "-q", "main")
    other = repository.top / "other" / "y.spec.yaml"
    other.parent.mkdir()
    other.write_text(SPEC.replace("name: qwen3-k3", "name: y"))
    repository.commit()
    repository.branch("sparse")
    other.write_text(other.read_text() + "# changed\n")
    repository.commit()
    repository.git("sparse-checkout", "set", "other")
    assert not repository.spec.exists()
    assert repository.found() == []


def test_replaced_objects_are_not_believed(repository: Repository) -> None:
    repository.git("replace", "main", "change")
    assert repository.codes(base="main") == ["SL606"]


def test_no_trace_is_left(repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    before = sorted(tmp_path.iterdir())
    index = (repository.top / ".git" / "index").read_bytes()
    repository.check()
    assert sorted(tmp_path.iterdir()) == before and (repository.top / ".git" / "index").read_bytes() == index


def test_a_pull_request_that_compares_nothing_is_warned(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    from click.testing import CliRunner

    from speclint.cli import cli

    assert "SL606" not in CliRunner().invoke(cli, ["check", str(repository.spec)]).stdout
    monkeypatch.setenv("GITHUB_BASE_REF", "main")
    done = CliRunner().invoke(cli, ["check", str(repository.spec)])
    assert done.exit_code == 0 and "warning[SL606]: this is a pull request to main" in done.stdout
    assert CliRunner().invoke(cli, ["check", "--strict", str(repository.spec)]).exit_code == 1
    assert "this is a pull request" not in repository.check().stdout
