"""Who may sign is what the base branch says, and a change of that is seen. Real git and OpenSSH."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from history_sample import Repository, made, parsed_once  # noqa: F401
from trust_sample import SPEC, public

from speclint import config, signature
from speclint.history_git import of_work_tree
from speclint.history_policy import changes, policy
from speclint.signers import allowed, too_wide


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    return made(tmp_path_factory.mktemp("policy"))


@pytest.fixture
def repository(original: Repository, tmp_path: Path) -> Repository:
    """A copy with a branch `change` checked out, which begins at `main`."""
    copied = original.copied(tmp_path / "r")
    return copied


def only(rows: list[dict[str, Any]]) -> dict[str, Any]:
    assert len(rows) == 1, rows
    return rows[0]


def write(repository: Repository, name: str, text: str) -> None:
    path = repository.top / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)


MINE = '[trust]\nallowed_signers = "mine"\n'
TRUST = '[trust]\nallowed_signers = "allowed_signers"\n'

# name: (what the change does to policy, the file that is named, words)
CHANGES: dict[str, tuple[Callable[[Repository], object], str, str]] = {
    "a signer added": (
        lambda r: r.trust(r.line("alice"), r.line("bob"), r.line("mallory")),
        "allowed_signers", "adds mallory@example.com (key SHA256:",
    ),
    "a signer removed": (lambda r: r.trust(r.line("alice")), "allowed_signers", "removes bob@example.com (key SHA256:"),
    "another key for a signer": (
        lambda r: r.trust(r.line("alice"), r.line("mallory").replace("mallory@", "bob@")),
        "allowed_signers", "adds bob@example.com (key SHA256:",
    ),
    "validity": (
        lambda r: r.trust(r.line("alice"), r.line("bob", 'namespaces="pair-spec-result",valid-before="20300101"')),
        "allowed_signers", "for pair-spec-result, until 2030-01-01 00:00:00 UTC",
    ),
    "a line that no reader understands": (
        lambda r: r.trust(r.line("alice"), r.line("bob"), "carol@example.com no-such-option ssh-x AAAA"),
        "allowed_signers", "adds the line `carol@example.com no-such-option",
    ),
    "a revocation list": (
        lambda r: (write(r, "revoked", public(r.keys / "bob")), write(r, "speclint.toml", TRUST + 'revoked = "revoked"\n')),
        "revoked", "adds key SHA256:",
    ),
    "fewer approvals": (
        lambda r: write(r, "speclint.toml", TRUST + "[approvals]\nmin = 0\n"),
        "speclint.toml", "approvals.min: unset before, 0 now",
    ),
    "another list": (
        lambda r: (write(r, "mine", r.line("mallory")), write(r, "speclint.toml", MINE)),
        "speclint.toml", "trust.allowed_signers: 'allowed_signers' before, 'mine' now",
    ),
    "a nearer policy": (
        lambda r: (write(r, "pairs/mine", r.line("mallory")), write(r, "pairs/speclint.toml", MINE)),
        "pairs/speclint.toml", "trust.allowed_signers: unset before, 'mine' now",
    ),
    "files left out": (
        lambda r: write(r, "speclint.toml", TRUST + '[lint]\nexclude = ["pairs"]\n'),
        "speclint.toml", "lint.exclude: unset before, ['pairs'] now",
    ),
    "rules ignored in pyproject.toml": (
        lambda r: write(r, "pyproject.toml", '[tool.speclint]\nignore = ["SL5"]\n'),
        "pyproject.toml", "tool.speclint.ignore: unset before, ['SL5'] now",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CHANGES)
def test_what_a_change_is_said_to_do(repository: Repository, name: str) -> None:
    change, file, words = CHANGES[name]
    before = policy(of_work_tree(repository.top))
    change(repository)
    said = {row.path: row.said for row in changes(before, policy(of_work_tree(repository.top)))}
    assert words in said[file]


@pytest.mark.parametrize("name", ["a signer added", "a revocation list", "files left out"])
def test_alone_it_is_a_warning_that_says_what_changes(repository: Repository, name: str) -> None:
    change, file, words = CHANGES[name]
    change(repository)
    repository.commit()
    rows = [row for row in repository.found() if row["code"] == "SL606"]
    row = only([row for row in rows if row["file"].endswith(file) and words in row["message"]])
    assert {row["severity"] for row in rows} == {"warning"} and row["message"].startswith("policy changes: ")


@pytest.mark.parametrize("name", ["a signer added", "files left out", "rules ignored in pyproject.toml", "a nearer policy"])
def test_together_with_entries_it_is_an_error(repository: Repository, name: str) -> None:
    CHANGES[name][0](repository)
    repository.add_result("r3", "mallory" if "signer" in name or "nearer" in name else "alice")
    repository.commit()
    found = repository.found()
    assert any(row["message"].startswith("policy changes together with") for row in found if row["code"] == "SL606")
    judged = [row for row in found if row["code"] == "SL603"]
    if "signer" in name or "nearer" in name:
        assert "is not listed" in only(judged)["message"] and "(main:allowed_signers)" in judged[0]["message"]
    else:
        assert judged == []


def test_together_with_a_removed_entry_too(repository: Repository) -> None:
    repository.trust(repository.line("alice"))
    repository.change("results", lambda rows: rows.pop())
    repository.commit()
    found = [row for row in repository.found() if row["code"] == "SL606"]
    assert [row["severity"] for row in found] == ["error", "error"]


def test_a_key_revocation_list_is_compared_by_its_bytes(repository: Repository) -> None:
    krl = repository.top / "revoked.krl"
    write(repository, "speclint.toml", TRUST + 'revoked = "revoked.krl"\n')
    for name in ("bob", "mallory"):
        command = ["ssh-keygen", "-q", "-k", "-f", str(krl), str(repository.keys / f"{name}.pub")]
        subprocess.run(command, check=True)
        repository.commit()
    row = only([row for row in repository.found(base="HEAD~1") if row["code"] == "SL606"])
    assert row["file"].endswith("revoked.krl") and "adds a binary list (sha256 " in row["message"]


def test_comments_and_line_ends_change_nothing(repository: Repository) -> None:
    for name in ("speclint.toml", "allowed_signers"):
        path = repository.top / name
        path.write_bytes(b"# who may sign\r\n" + path.read_bytes().replace(b"\n", b"\r\n"))
    repository.commit()
    assert repository.found() == []


def test_a_policy_that_changed_on_main_is_no_change_of_the_branch(repository: Repository) -> None:
    repository.git("checkout", "-q", "main")
    repository.trust(repository.line("alice"), repository.line("bob"), repository.line("mallory"))
    repository.commit()
    repository.git("checkout", "-q", "change")
    repository.add_result("r3", "mallory")  # main lists her by now
    repository.commit()
    assert repository.found() == []


def test_a_signer_who_was_removed_from_main_meanwhile_adds_nothing_any_more(repository: Repository) -> None:
    repository.git("checkout", "-q", "main")
    repository.trust(repository.line("alice"))
    repository.commit()
    repository.git("checkout", "-q", "change")
    repository.add_result("r3", "bob")
    repository.commit()
    row = only(repository.found())
    assert row["code"] == "SL603" and "is not listed (main:allowed_signers)" in row["message"]


def test_how_many_approvals_count_is_mains_word(repository: Repository) -> None:
    repository.git("checkout", "-q", "main")
    write(repository, "speclint.toml", TRUST + "[approvals]\nmin = 2\n")
    repository.commit()
    repository.branch("next")
    repository.add_result("r3")
    repository.commit()
    assert {row["code"] for row in repository.found()} == {"SL612"}
    write(repository, "speclint.toml", TRUST + "[approvals]\nmin = 1\n")
    assert {"SL612", "SL606"} == set(repository.codes())


def test_the_configuration_of_the_change_silences_nothing(repository: Repository) -> None:
    repository.spec.write_text(repository.spec.read_text().replace("blocks: 6", "blocks: 5"))
    write(repository, "speclint.toml", TRUST + '[lint]\nignore = ["SL518"]\n')
    repository.commit()
    assert "SL518" in repository.codes()
    config._of_folder.cache_clear()
    write(repository, "speclint.toml", "[lint]\nselect = 3\n")
    assert repository.check().exit_code == 2  # it must be readable all the same


def test_a_policy_that_is_broken_on_main_trusts_nobody(repository: Repository) -> None:
    repository.git("checkout", "-q", "main")
    (repository.top / "allowed_signers").unlink()
    repository.commit()
    repository.branch("next")
    repository.add_result("r3")
    repository.trust(repository.line("alice"))
    repository.commit()
    found = repository.found()
    assert {row["code"] for row in found} == {"SL603", "SL606"}
    assert any("main:speclint.toml names main:allowed_signers, which is not there" in row["message"] for row in found)


# --- the first pull request ---


@pytest.fixture
def empty(repository: Repository) -> Repository:
    """`main` holds neither spec nor policy; `first` brings both."""
    files = {path: (repository.top / path).read_bytes() for path in ("speclint.toml", "allowed_signers", "pairs/x.spec.yaml")}
    repository.git("checkout", "-q", "--orphan", "root")
    repository.git("rm", "-rqf", ".")
    repository.git("commit", "-q", "--allow-empty", "-m", "nothing")
    repository.branch("first", "root")
    repository.spec.parent.mkdir(exist_ok=True)
    for path, content in files.items():
        (repository.top / path).write_bytes(content)
    return repository


def test_the_first_change_with_entries_finds_nobody_trusted(empty: Repository) -> None:
    empty.commit()
    found = empty.found(base="root")
    assert {row["code"] for row in found} == {"SL603", "SL606"}
    assert all(
        re.search(r"well formed, by key SHA256:.* nobody is trusted yet: root \(.*: land it there first", row["message"])
        for row in found
        if row["code"] == "SL603"
    )  # fmt: skip
    assert "none there yet, 3 new here" in empty.check(base="root").stderr


def test_a_first_change_that_brings_policy_alone_lists_everybody(empty: Repository) -> None:
    empty.spec.write_text(SPEC)
    empty.commit()
    found = [row for row in empty.found(base="root") if row["code"] == "SL606"]
    assert {row["severity"] for row in found} == {"warning"}
    assert any("adds alice@example.com" in row["message"] and "bob@example.com" in row["message"] for row in found)


def test_the_first_spec_after_the_policy_passes(empty: Repository) -> None:
    spec = empty.spec.read_bytes()
    empty.spec.unlink()
    empty.commit()
    empty.branch("second", "first")
    empty.spec.write_bytes(spec)
    empty.commit()
    assert empty.found(base="first") == []


# --- lines that are too wide ---


@pytest.mark.parametrize(
    ("principals", "options", "words"),
    [
        ("*@example.com", 'namespaces="pair-spec-*" ', "lets one key sign in the name of anybody"),
        ("alic?@example.com", 'namespaces="pair-spec-*" ', "lets one key sign"),
        ("alice@example.com", "", "names no namespaces"),
        ("alice@example.com", 'namespaces="*" ', "names no namespaces"),
        ("alice@example.com", 'namespaces="pair-spec-*" ', ""),
        ("alice@example.com,al@example.com", 'namespaces="git,pair-spec-*" ', ""),
        ("*@example.com", 'cert-authority,namespaces="pair-spec-*" ', ""),
    ],
)
def test_what_is_too_wide(original: Repository, principals: str, options: str, words: str) -> None:
    (line,) = allowed(f"{principals} {options}{public(original.keys / 'bob')}\n")
    assert bool(too_wide(line)) is bool(words) and words in too_wide(line)


@pytest.mark.parametrize(
    ("principals", "options", "severity"),
    [
        ("*@example.com", 'namespaces="pair-spec-*"', "error"),
        ("alice@example.com", "", "warning"),
    ],
)
def test_a_line_that_allows_more_than_one_person_to_sign_for_us(
    repository: Repository, principals: str, options: str, severity: str
) -> None:
    repository.git("checkout", "-q", "main")
    repository.trust(" ".join(filter(None, (principals, options, public(repository.keys / "alice")))))
    repository.commit()
    repository.branch("next")
    repository.add_result("r3")
    repository.commit()
    found = repository.found()
    assert [(row["code"], row["severity"]) for row in found] == [("SL615", severity)]
    assert principals in found[0]["message"] and "key SHA256:" in found[0]["message"]


def test_a_narrow_line_beside_a_wide_one_is_enough(repository: Repository) -> None:
    repository.git("checkout", "-q", "main")
    repository.trust(f"*@example.com {public(repository.keys / 'alice')}", repository.line("alice"))
    repository.commit()
    repository.branch("next")
    repository.add_result("r3")
    repository.commit()
    assert repository.found() == []


def test_wide_lines_are_told_where_they_are_added(repository: Repository) -> None:
    repository.trust(repository.line("alice"), repository.line("bob"), f"*@example.org {public(repository.keys / 'mallory')}")
    repository.commit()
    found = repository.found()
    assert [(row["code"], row["severity"], row["line"]) for row in found] == [("SL606", "warning", 3), ("SL615", "error", 3)]
    assert found[0]["file"].endswith("allowed_signers")


# --- how often OpenSSH is asked ---


def test_each_entry_is_verified_once(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[list[str]] = []
    real = signature._ssh_keygen
    monkeypatch.setattr(signature, "_ssh_keygen", lambda words, message: calls.append(words) or real(words, message))
    repository.add_result("r3")
    repository.commit()
    assert repository.found() == []
    # a1, r1, r2 and r3 at their own times, r3 now as well
    assert [words[0] for words in calls] == ["verify"] * 5
    assert len({words[1] for words in calls}) == 3
