"""Files of another version of this program: older ones hold, of newer ones it is said what they are. Real git and OpenSSH."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from click.testing import CliRunner
from history_sample import SHORT, Repository, data_of, made, parsed_once  # noqa: F401
from spec_cases import good
from trust_sample import SPEC, result

from speclint import __version__, emit, shape
from speclint.canonical import entry_digest, heads
from speclint.cli import cli as speclint
from speclint.data import spec_schema
from specrun.cli import cli as specrun
from specrun.errors import SpecrunError
from specrun.verify import verify


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    return made(tmp_path_factory.mktemp("versions"))


@pytest.fixture
def repository(original: Repository, tmp_path: Path) -> Repository:
    """A copy with a branch `change` checked out, which begins at `main`."""
    return original.copied(tmp_path / "r")


def said_by_every_command(file: Path, key: Path) -> dict[str, str]:
    """What each command that reads a spec says of it: never a traceback, never success."""
    commands = {
        "check": [], "lock": [], "approve": ["--yes", "--key", str(key)], "run": [], "plan": [], "verify": [], "report": [],
    }  # fmt: skip
    told = {}
    for command, flags in commands.items():
        cli = speclint if command in ("check", "lock") else specrun
        with mock.patch("huggingface_hub.constants.HF_HUB_OFFLINE", True):
            done = CliRunner().invoke(cli, [command, *flags, str(file)], standalone_mode=False)
        error = done.exception
        assert error is None or isinstance(error, SpecrunError | SystemExit), (command, done.output, error)
        status = error.status if isinstance(error, SpecrunError) else done.return_value or done.exit_code
        assert status not in (0, 3), (command, done.output)
        told[command] = done.output + (f"{error.message} {error.hint}" if isinstance(error, SpecrunError) else "")
    return told


# --- an older version's file ---


def test_results_of_this_version_hold_for_a_newer_one(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    """A newer version has a larger schema; what is signed names its own version, and nothing compares it with the reader's."""
    grown = copy.deepcopy(spec_schema())
    grown["$defs"]["result"]["properties"]["energy"] = {"type": "number", "title": "Energy", "description": "J."}
    grown["$defs"]["approval"]["properties"]["role"] = {"type": "string", "title": "Role", "description": "Of the approver."}
    monkeypatch.setattr(shape, "spec_schema", lambda: grown)
    for module in ("speclint", "speclint.newer", "specrun.verify", "specrun.run"):
        monkeypatch.setattr(f"{module}.__version__", "9.0.0")
    repository.add_result("r3", energy=3.5, tool={"specpair": "9.0.0"})
    repository.commit()
    assert repository.found() == []
    assert [row for row in verify(repository.spec) if row.outcome == "failed"] == []


# --- a newer version's file ---


@pytest.mark.parametrize(
    ("changes", "code", "words"),
    [
        ({"energy": 3.5}, "SL101", "unknown key `energy`"),
        ({"established": {"verdict": "half", "checks": []}}, "SL104", "`half` is not allowed"),
        ({"scope": "in one word"}, "SL103", "expected a list"),
    ],
)
def test_a_result_of_a_newer_version_is_told_from_a_damaged_one(
    repository: Repository, changes: dict[str, Any], code: str, words: str
) -> None:
    repository.add_result("r3", **changes, tool={"specpair": "9.0.0"})
    repository.commit()
    row = next(row for row in repository.found() if row["code"] == code)
    assert words in row["message"]
    assert row["help"] == f"specpair 9.0.0 made this result, this is {__version__}: read it with that one or a newer one"
    assert "SL602" not in repository.codes()  # it is as it was signed
    told = said_by_every_command(repository.spec, repository.keys / "alice")
    assert "specpair 9.0.0 made this result" in told["check"] and "specpair 9.0.0 made this result" in told["verify"]


def test_of_our_own_version_the_usual_help_is_given(repository: Repository) -> None:
    repository.add_result("r3", scop=[], tool={"specpair": __version__})
    row = next(row for row in repository.found() if row["code"] == "SL101")
    assert row["help"].startswith("known here: id, attempts")


def test_a_spec_of_a_newer_format_is_left_alone(repository: Repository) -> None:
    for file in (repository.spec, repository.top / "y.spec.yaml"):
        text = file.read_text() if file.exists() else SPEC
        file.write_text(text.replace("pair-spec/v1", "pair-spec/v2"))
        before = file.read_bytes()
        told = said_by_every_command(file, repository.keys / "alice")
        for command in ("check", "lock", "verify"):
            assert "`pair-spec/v2` is not allowed; expected `pair-spec/v1`" in told[command]
            assert f"specpair {__version__} knows pair-spec/v1: read the file with a newer one" in told[command]
        assert "pair-spec/v2" in told["approve"] and "pair-spec/v2" in told["run"]
        assert file.read_bytes() == before
    repository.commit()
    assert "SL606" not in [row["code"] for row in repository.found()]  # every entry still stands


def test_a_file_that_only_claims_another_format_is_helped_as_before(repository: Repository) -> None:
    repository.spec.write_text(repository.spec.read_text().replace("pair-spec/v1", "pair-spec/v0"))
    assert "a newer one" not in repository.check().stdout


def test_a_lock_of_a_newer_version_is_left_alone(repository: Repository) -> None:
    file = repository.top / "locked.spec.yaml"
    lock = good()["lock"] | {"format": 3, "energy": {"joules": 1}}
    file.write_text(SPEC.replace("name: qwen3-k3", "name: locked") + "\n" + emit.section("lock", lock))
    repository.commit()
    row = next(row for row in repository.found() if row["path"] == "/lock/format")
    assert row["message"] == "`3` is not allowed; expected `1` or `2`"
    assert row["help"] == f"a newer speclint than {__version__} wrote the lock: use that one, and leave the lock as it is"
    before = file.read_bytes()
    said_by_every_command(file, repository.keys / "alice")
    for flags in ([], ["--check"], ["--update"], ["--upgrade"]):
        done = CliRunner().invoke(speclint, ["lock", *flags, str(file)])
        assert done.exit_code == 2 and "its lock has format 3, this speclint knows 2" in done.output
    assert file.read_bytes() == before


def test_a_result_under_a_lock_of_a_newer_version_is_for_another_spec_to_nobody(repository: Repository) -> None:
    """The digests are of the file's own values, whatever of them this version knows."""
    file = repository.top / "locked.spec.yaml"
    file.write_text(SPEC.replace("name: qwen3-k3", "name: locked") + "\n" + emit.section("lock", {"format": 3, "energy": 1}))
    data = data_of(file)
    entry = repository.signed("result", result(data, "r1", previous=heads([]), **SHORT), name="locked")
    file.write_text(file.read_text() + "\n" + emit.section("results", [entry]))
    repository.commit()
    found = [row["code"] for row in repository.found() if row["file"].endswith("locked.spec.yaml")]
    assert not {"SL602", "SL603", "SL604", "SL614"} & set(found) and "SL104" in found
    assert entry_digest(entry) == entry_digest(data_of(file)["results"][0])
