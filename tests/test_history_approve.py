"""`specrun approve`, `run` and `append` with `--base`: who may is what that branch says. Real git and OpenSSH."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from history_sample import SHORT, Repository, data_of, made, parsed_once  # noqa: F401
from trust_sample import ALICE, BOB, SPEC, result

from speclint.canonical import entry_digest
from speclint.history import Base
from speclint.history_check import against
from specrun import entry, prepare, run, session
from specrun.cli import cli
from specrun.errors import Refused


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    return made(tmp_path_factory.mktemp("approve"))


@pytest.fixture
def repository(original: Repository, tmp_path: Path) -> Repository:
    """Checked out is `change`, as `main` is, with a spec that nobody has approved yet: y.spec.yaml."""
    copied = original.copied(tmp_path / "r")
    fresh(copied).write_text(SPEC)
    return copied


def fresh(repository: Repository) -> Path:
    return repository.top / "pairs" / "y.spec.yaml"


def approve(repository: Repository, *flags: str, key: str = "alice", file: Path | None = None) -> Result:
    words = ["approve", str(file or fresh(repository)), "--yes", "--key", str(repository.keys / key), *flags]
    return CliRunner().invoke(cli, words)


def refusal(done: Result) -> str:
    assert isinstance(done.exception, Refused), done.output
    return f"{done.exception.message}\n{done.exception.hint}"


# --- approve ---


def test_an_approval_is_judged_by_the_base(repository: Repository) -> None:
    repository.trust(repository.line("mallory"))  # the change says so of itself
    assert "is not among the allowed signers of main (" in refusal(approve(repository, "--base", "main", key="mallory"))
    assert fresh(repository).read_text() == SPEC
    done = approve(repository, "--base", "main")
    assert done.exit_code == 0 and f"judged by     the allowed signers of main ({repository.head()[:7]})" in done.stdout
    assert "specrun: compared with main (" in done.stderr
    assert [one["approver"] for one in data_of(fresh(repository))["approvals"]] == [ALICE]
    fresh(repository).write_text(SPEC)
    assert "allowed signers of the work tree" in refusal(approve(repository))
    assert approve(repository, key="mallory").exit_code == 0


def test_in_anothers_name_it_is_refused_with_the_list_of_the_base(repository: Repository) -> None:
    said = refusal(approve(repository, "--base", "main", "--approver", BOB, key="mallory"))
    assert "bob@example.com may not approve with this key" in said and "(main:allowed_signers)" in said
    assert "whoever keeps main:allowed_signers may add the line" in said


def test_a_clean_checkout_of_the_base_itself_can_be_approved(repository: Repository) -> None:
    """`check --base` refuses to compare a change with itself; here the change is the approval that is about to be made."""
    repository.commit()
    assert repository.check(base="change").exit_code == 2
    assert approve(repository, "--base", "change").exit_code == 0


def test_a_file_whose_entries_were_rewritten_is_not_approved(repository: Repository) -> None:
    repository.change("results", lambda rows: rows.pop())
    assert approve(repository, key="bob", file=repository.spec).exit_code == 0  # it alone does not show what it lacks
    repository.git("checkout", "-q", "--", "pairs")
    repository.change("results", lambda rows: rows.pop())
    assert "SL606" in refusal(approve(repository, "--base", "main", key="bob", file=repository.spec))


def test_a_base_that_is_not_there_is_bad_usage(repository: Repository) -> None:
    done = approve(repository, "--base", "origin/main")
    assert done.exit_code == 2 and "there is no origin/main here" in done.stderr
    assert fresh(repository).read_text() == SPEC


# --- run and append ---


@pytest.fixture
def policy(repository: Repository) -> Repository:
    """`main` asks for two approvers and a key of Bob's that has expired since; the change asks for one, and lists Mallory."""
    repository.git("checkout", "-q", "main")
    old = 'namespaces="pair-spec-approval,pair-spec-result",valid-before="20261130113000"'
    repository.trust(repository.line("alice"), repository.line("bob", old), toml="[approvals]\nmin = 2\n")
    repository.commit("two approvers")
    repository.branch("later")
    repository.trust(*map(repository.line, ("alice", "bob", "mallory")), toml="[approvals]\nmin = 1\n")
    return repository


def test_how_many_approvals_a_run_needs_is_what_the_base_says(policy: Repository) -> None:
    data = data_of(policy.spec)
    assert prepare.approvals(policy.spec, data, None) == [entry_digest(data["approvals"][0])]
    with against([policy.spec], "main") as history:
        base = history.base_of("pairs/x.spec.yaml")
        with pytest.raises(Refused, match=r"is not approved \(1 of 2 approvals\)"):
            prepare.approvals(policy.spec, data, None, base)
        assert session.approved(policy.spec, data, None, True, base) == []


def test_an_approval_of_the_base_counts_at_its_own_time_and_a_new_one_now(policy: Repository) -> None:
    """Bob's key has expired; what it approved before, and stands in the base, is approved."""
    policy.git("checkout", "-q", "-f", "main")
    text = policy.spec.read_text()
    policy.spec.write_text(text[: text.index("\nresults:")] + "\n")
    policy.add_approval("a2", "bob")
    policy.commit("bob approves in time")
    data = data_of(policy.spec)
    for base, count in (("main", 2), ("main~1", 1)):
        with against([policy.spec], base, unchanged=True) as history:
            judge = history.base_of("pairs/x.spec.yaml")
            if count == 2:
                assert len(prepare.approvals(policy.spec, data, None, judge)) == 2
            else:
                with pytest.raises(Refused, match=r"1 of 2 approvals.*a2 by bob@example.com: .*expired 2026-11-30"):
                    prepare.approvals(policy.spec, data, None, judge)


def test_a_run_is_refused_by_the_errors_that_the_base_shows(policy: Repository) -> None:
    policy.change("results", lambda rows: rows.pop())
    assert prepare.checked(policy.spec)
    with against([policy.spec], "main") as history, pytest.raises(Refused, match="SL606"):
        prepare.checked(policy.spec, history.base_of("pairs/x.spec.yaml"))


def test_who_may_sign_a_result_is_what_the_base_says(policy: Repository) -> None:
    data, keys = data_of(policy.spec), policy.keys
    assert session.may_sign(policy.spec, data, keys / "mallory", None) == "mallory@example.com"
    with against([policy.spec], "main") as history:
        base = history.base_of("pairs/x.spec.yaml")
        assert session.may_sign(policy.spec, data, keys / "alice", None, base) == ALICE
        with pytest.raises(Refused, match=r"belongs to none of the allowed signers of main \("):
            session.may_sign(policy.spec, data, keys / "mallory", None, base)
        with pytest.raises(Refused, match=r"expired 2026-11-30 11:30:00 UTC.*\(main:allowed_signers\)"):
            session.may_sign(policy.spec, data, keys / "bob", None, base)


def test_a_result_is_appended_by_those_whom_the_base_lists(policy: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run's own figures are of no interest here."""

    def unsigned(_: object, data: dict[str, object], signer: str) -> dict[str, object]:
        return result(data, "r3", previous=entry.heads(data["results"]), **SHORT) | {"signer": signer}  # type: ignore[arg-type]

    monkeypatch.setattr(entry, "unsigned", unsigned)
    ran = run.Run(policy.top, {})
    with against([policy.spec], "main") as history:
        base = history.base_of("pairs/x.spec.yaml")
        with pytest.raises(Refused, match="is not among the allowed signers of main"):
            entry.append(ran, policy.spec, policy.keys / "mallory", None, base)
        assert len(data_of(policy.spec)["results"]) == 2
        assert entry.append(ran, policy.spec, policy.keys / "alice", None, base)["signer"] == ALICE
    assert [one["id"] for one in data_of(policy.spec)["results"]] == ["r1", "r2", "r3"]


@pytest.mark.parametrize("command", ["run", "resume", "append"])
def test_the_commands_hand_the_base_on(repository: Repository, command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    handed: list[Base | None] = []

    def taken(*places: object, base: Base | None = None, **_: object) -> int:
        handed.append(base or next((place for place in places if isinstance(place, Base)), None))
        return 0

    def appended(*places: object) -> dict[str, str]:
        taken(*places)
        return {"id": "r3", "signer": ALICE}

    monkeypatch.setattr(session, "execute", taken)
    monkeypatch.setattr(session, "resumed", taken)
    monkeypatch.setattr(entry, "append", appended)
    monkeypatch.setattr(entry, "intact", lambda _: None)
    monkeypatch.setattr(run, "load", lambda folder: run.Run(folder, {"spec_file": str(repository.spec)}))
    words = {
        "run": ["run", str(repository.spec)],
        "resume": ["run", "--resume", "r3"],
        "append": ["append", str(repository.top), "--key", str(repository.keys / "alice")],
    }[command]
    for flags in ([], ["--base", "main"]):
        done = CliRunner().invoke(cli, [*words, *flags])
        assert done.exception is None or done.exit_code == 0, done.output
    without, base = handed
    assert without is None and base is not None
    assert base.ref.startswith("main (") and [one.name for one in base.own] == ["approval a1", "result r1", "result r2"]
