"""docs/results.md: its script verifies and refuses, every test that it names exists, and its counts are those of the tests."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import test_history
import test_history_base
import test_history_policy
import test_signature
import test_threats
from history_sample import Data, Repository, data_of, made
from trust_sample import result

from speclint.emit import section

PAGE = (Path(__file__).parent.parent / "docs" / "results.md").read_text(encoding="utf-8")
TESTS = Path(__file__).parent
NUMBERS = [0.1, 1.5e-07, -2.5e-09, 0.00001, 1e-06, 1e22, 1.5e21, 123456789.0, 4.0, 0.0, -0.0, 1e20, 2**53 - 1, None, True]
TEXTS = ["a: b", "- x", '"q" \\ \t é \U0001f600', "# no comment", ""]


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    """A spec with an approval and three results, the last with numbers and text of every kind."""
    folder = tmp_path_factory.mktemp("page")
    repository = made(folder)
    script = re.search(r"```sh\n(d=\$\(mktemp.*?)```", PAGE, re.DOTALL)
    assert script
    (folder / "verify.sh").write_text(script[1])
    data = data_of(repository.spec)
    entry = repository.signed("result", result(data, "r3", host={"values": NUMBERS, "text": TEXTS}))
    repository.spec.write_text(repository.spec.read_text() + "  # by hand\n" + section("x", [entry]).removeprefix("x:\n"))
    return repository


def verify(repository: Repository, what: str, number: int) -> subprocess.CompletedProcess[str]:
    words = ["sh", str(repository.keys.parent / "verify.sh"), str(repository.spec), what, str(number)]
    return subprocess.run([*words, str(repository.top / "allowed_signers")], capture_output=True, text=True)


@pytest.mark.parametrize(("what", "number"), [("approvals", 0), ("results", 0), ("results", 1), ("results", 2)])
def test_the_script_verifies_every_entry(repository: Repository, what: str, number: int) -> None:
    done = verify(repository, what, number)
    assert done.returncode == 0 and 'Good "pair-spec-' in done.stdout, done.stderr


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data["results"][2]["figures"]["rows"][0].__setitem__(3, 0.0412346),
        lambda data: data["results"][2]["verdicts"][0].update(verdict="not_met"),
        lambda data: data["results"][2].update(signer="bob@example.com"),
        lambda data: data["results"][2].update(signature=data["results"][1]["signature"]),
        lambda data: data["results"][2]["host"]["values"].__setitem__(4, 1.000001e-06),
    ],
)
def test_the_script_refuses_what_was_not_signed(repository: Repository, change: Callable[[Data], object], tmp_path: Path) -> None:
    data, text = data_of(repository.spec), repository.spec.read_text()
    change(data)
    top = tmp_path / "changed"
    (top / "pairs").mkdir(parents=True)
    changed = repository._replace(top=top)
    changed.spec.write_text(text[: text.index("\nresults:")] + "\n" + section("results", data["results"]))
    (top / "allowed_signers").write_bytes((repository.top / "allowed_signers").read_bytes())
    done = verify(changed, "results", 2)
    assert done.returncode and "Could not verify signature" in done.stdout + done.stderr


def test_the_script_is_short() -> None:
    script = re.search(r"<<'END'.*?\n(.*?)END\n", PAGE, re.DOTALL)
    assert script and len(script[1].splitlines()) <= 24


def test_every_test_that_the_page_names_exists() -> None:
    named = set(re.findall(r"`(test_\w+)`", PAGE))
    there = {name for path in TESTS.glob("test_*.py") for name in re.findall(r"def (test_\w+)", path.read_text(encoding="utf-8"))}
    assert len(named) > 40 and named - there == set()


def test_counts_are_those_of_the_tests(repository: Repository) -> None:
    rows = re.findall(r"^\| (.*?) \| (\d+) \| 0 \|$", PAGE[PAGE.index("## Forgeries tried") :], re.MULTILINE)
    assert [int(count) for _, count in rows] == [
        sum(bool(code) for _, code in test_signature.FORGERIES.values()),
        len(list(test_signature.flips())),
        sum(not ok for *_, ok, _ in test_signature.LISTS.values()),
        len(list(test_signature.leaves(result(data_of(repository.spec))))),
        len(test_history.EDITS),
        sum(threat.severity != "info" for threat in test_threats.THREATS.values()),
        cases(test_history.test_signing_again_does_not_help),
        len(test_history_policy.CHANGES),
        cases(test_history_base.test_a_base_that_is_not_there),
    ]


def cases(test: Callable[..., object]) -> int:
    """How many cases a test is given."""
    (mark,) = test.pytestmark  # type: ignore[attr-defined]
    return len(mark.args[1])
