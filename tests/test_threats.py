"""The table of threats against approvals and results, each tried in a real repository with real OpenSSH signatures.

What needs more than one change, another clone or another policy has a test of its own: docs/results.md names one per threat.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from history_sample import Data, Repository, approval, data_of, made, parsed_once  # noqa: F401
from trust_sample import ALICE, SPEC, result

from speclint import emit
from speclint.canonical import entry_digest, heads
from specrun import manifest

pytestmark = pytest.mark.thorough


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    return made(tmp_path_factory.mktemp("threats"))


@pytest.fixture
def repository(original: Repository, tmp_path: Path) -> Repository:
    """A copy with a branch `change` checked out, which begins at `main`."""
    return original.copied(tmp_path / "r")


class Threat(NamedTuple):
    """What somebody does, and what is found: code, severity, pointer and words of the message."""

    attack: Callable[[Repository], object]
    code: str
    severity: str
    path: str
    words: str


def _published(repository: Repository) -> Path:
    """A result r3 whose run folder, as it was signed, stands beside the spec."""
    folder = repository.spec.parent / "runs" / "r3"
    (folder / "b01").mkdir(parents=True)
    (folder / "plan.json").write_text('{"id": "r3"}')
    (folder / "b01" / "records.jsonl").write_text('{"index": 0}\n')
    digest, count = manifest.write(folder)
    repository.add_result("r3", records={"manifest": digest, "files": count, "requests": 1})
    return folder


def _records_replaced(repository: Repository) -> None:
    (_published(repository) / "b01" / "records.jsonl").write_text('{"index": 1}\n')


def _records_and_list_replaced(repository: Repository) -> None:
    folder = _published(repository)
    (folder / "b01" / "records.jsonl").write_text('{"index": 1}\n')
    manifest.write(folder)


def _policy_of_main(repository: Repository, toml: str) -> None:
    repository.git("checkout", "-q", "main")
    repository.trust(repository.line("alice"), repository.line("bob"), toml=toml)
    repository.commit("policy")
    repository.branch("under-it")


def _runner_approves_himself(repository: Repository) -> None:
    _policy_of_main(repository, "[approvals]\nother_than_signer = true\n")
    repository.add_result("r3")


def _too_few_approve(repository: Repository) -> None:
    _policy_of_main(repository, "[approvals]\nmin = 2\n")
    repository.add_result("r3")


def _approved_afterwards(repository: Repository) -> None:
    late = approval(data_of(repository.spec), id="late", time="2026-11-30T10:30:00Z")
    repository.change("approvals", lambda rows: rows.append(repository.signed("approval", late)))
    repository.add_result("r3", started="2026-11-30T10:00:00Z")


def _approval_of_another_spec(repository: Repository) -> None:
    other = approval(data_of(repository.spec), id="other", spec="sha256:" + "0" * 64)
    repository.change("approvals", lambda rows: rows.append(repository.signed("approval", other)))
    repository.add_result("r3", approvals=[entry_digest(other)])


def _only_the_better_of_two(repository: Repository) -> None:
    repository.add_result("r3")
    repository.add_result("r4")
    repository.change("results", lambda rows: rows.pop(2))


def _in_anothers_name(repository: Repository) -> None:
    repository.add_result("r3", "mallory", signer=ALICE)


def _signature_of_an_approval(repository: Repository) -> None:
    repository.add_result("r3")
    repository.change("results", lambda rows: rows[2].update(signature=data_of(repository.spec)["approvals"][0]["signature"]))


def _approval_in_anothers_name(repository: Repository) -> None:
    entry = approval(data_of(repository.spec), id="a2")
    repository.change("approvals", lambda rows: rows.append(repository.signed("approval", entry, "mallory")))


def _changed_after_signing(repository: Repository) -> None:
    repository.add_result("r3")
    repository.change("results", lambda rows: rows[2]["attempts"].update(pair=1))


def _signed(change: Callable[[Data], object]) -> Callable[[Repository], None]:
    """A whole result r3, changed and then signed by its rightful signer."""

    def attack(repository: Repository) -> None:
        data = data_of(repository.spec)
        named = {"approvals": [entry_digest(data["approvals"][0])], "previous": heads(data["results"])}
        entry = result(data, "r3", **named)
        change(entry)
        repository.spec.write_text(repository.spec.read_text() + emit.entry(repository.signed("result", entry)))

    return attack


def _spec(old: str, new: str) -> Callable[[Repository], None]:
    """A spec of another name, as a formatter or somebody else would write it."""

    def attack(repository: Repository) -> None:
        text = SPEC.replace("name: qwen3-k3", "name: other")
        assert old in text
        (repository.top / "other.spec.yaml").write_text(text.replace(old, new, 1))

    return attack


REVISION = "revision: b968826d9c46dd6066d109eabc6255188de91218"
THREATS = {
    "records that are not here": Threat(
        lambda r: r.add_result("r3"), "SL609", "info", "/results/2/records", "the raw records are not here (runs/r3)"
    ),
    "records replaced": Threat(
        _records_replaced, "SL609", "error", "/results/2/records/manifest", "is not what was signed: b01/records.jsonl differs"
    ),
    "records and their list replaced": Threat(
        _records_and_list_replaced, "SL609", "error", "/results/2/records/manifest", "manifest.json differs"
    ),
    "run without approval": Threat(
        lambda r: r.add_result("r3", approvals=[]), "SL612", "warning", "/results/2/approvals", "this run was not approved"
    ),
    "run under an approval that nobody has seen": Threat(
        lambda r: r.add_result("r3", approvals=["sha256:" + "1" * 64]),
        "SL612", "error", "/results/2/approvals", "no approval here has digest sha256:1111",
    ),
    "run under the approval of another spec": Threat(
        _approval_of_another_spec, "SL612", "error", "/results/2/approvals", "is for another spec"
    ),
    "approved by the runner alone": Threat(
        _runner_approves_himself, "SL612", "warning", "/results/2/approvals", "0 approvers count, and speclint.toml asks for 1"
    ),
    "approved by too few": Threat(
        _too_few_approve, "SL612", "warning", "/results/2/approvals", "1 approvers count, and speclint.toml asks for 2"
    ),
    "approved once the result was known": Threat(
        _approved_afterwards, "SL613", "error", "/results/2/started", "began before the approval that it names was given"
    ),
    "the better of two runs published": Threat(
        _only_the_better_of_two, "SL605", "error", "/results/2/previous", "which is not among the results above"
    ),
    "signed by an outsider": Threat(
        lambda r: r.add_result("r3", "mallory"), "SL603", "error", "/results/2/signature", "is not listed"
    ),
    "signed in another's name": Threat(
        _in_anothers_name, "SL603", "error", "/results/2/signature", "is not listed for alice@example.com, who has another key"
    ),
    "approved in another's name": Threat(
        _approval_in_anothers_name, "SL603", "error", "/approvals/1/signature", "is not listed for alice@example.com"
    ),
    "the signature of an approval": Threat(
        _signature_of_an_approval, "SL602", "error", "/results/2/signature", "made for 'pair-spec-approval'"
    ),
    "a new result changed after it was signed": Threat(
        _changed_after_signing, "SL602", "error", "/results/2/signature", "these are not the bytes that were signed"
    ),
    "a better verdict than the interval, signed": Threat(
        _signed(lambda entry: entry["verdicts"][0]["cells"][0].update(low=0.88, high=0.93, value=0.9)),
        "SL608", "error", "/results/2/verdicts/0/cells/0/verdict", "`met` contradicts the interval [0.88, 0.93]",
    ),
    "a criterion left out, signed": Threat(
        _signed(lambda entry: entry["verdicts"].pop()), "SL608", "error", "/results/2/verdicts", "expected faster-alone"
    ),
    "figures that no run can give, signed": Threat(
        _signed(lambda entry: entry["verdicts"][4]["cells"][0].update(value=0.1)),
        "SL610", "error", "/results/2/verdicts/4/cells/0/value", "does not lie in its interval",
    ),
    "established without a check, signed": Threat(
        _signed(lambda entry: entry["established"].update(checks=[])),
        "SL611", "error", "/results/2/established/verdict", "established, and no check says so",
    ),
    "a whole number that readers round": Threat(
        _spec("top_k: 0, seed: 0}", "top_k: 0, seed: 9007199254740993}"),
        "SL105", "error", "/protocol/sampling/seed", "9007199254740993"
    ),
    "a whole number that readers round, where the engine takes anything": Threat(
        _spec("max_model_len: 4096, seed: 0}", "max_model_len: 4096, seed: 9007199254740993}"),
        "SL105", "error", "/pair/engine_args/seed", "9007199254740993 exceeds safe integer domain",
    ),
    "a formatter takes the quotes from a commit of digits": Threat(
        _spec(REVISION, "revision: " + "12" * 20), "SL004", "error", "/pair/target/revision", "not as text"
    ),
    "a spec of a newer format": Threat(
        _spec("pair-spec/v1", "pair-spec/v2"), "SL104", "error", "/schema", "`pair-spec/v2` is not allowed"
    ),
}  # fmt: skip


def told(repository: Repository) -> list[dict[str, Any]]:
    files = json.loads(repository.check("--format", "json").stdout)["files"]
    return [row for file in files for row in file["diagnostics"]]


@pytest.mark.parametrize("name", THREATS)
def test_a_threat_is_found(repository: Repository, name: str) -> None:
    threat = THREATS[name]
    threat.attack(repository)
    repository.commit()
    found = [row for row in told(repository) if (row["code"], row["path"]) == (threat.code, threat.path)]
    assert [row["severity"] for row in found] == [threat.severity] and threat.words in found[0]["message"], found


def test_the_same_without_the_attack_is_quiet(repository: Repository) -> None:
    """A whole result with its records beside it, and a spec of another name."""
    _published(repository)
    _signed(lambda _: None)(repository)
    _spec("", "")(repository)
    repository.change("results", lambda rows: rows.pop())
    repository.commit()
    assert repository.found() == []
    assert [row["path"] for row in told(repository) if row["code"] == "SL609"] == ["/results/0/records", "/results/1/records"]
