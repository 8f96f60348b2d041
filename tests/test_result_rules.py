"""Rules about approvals and results, on entries that are signed as the tools sign them, then changed in one place."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from spec_cases import dumped
from trust_sample import ALICE, BOB, SPEC, make_key, result, write_trust

from speclint import document
from speclint.canonical import entry_digest, section_digests, spec_digest
from speclint.diagnostic import Diagnostic
from speclint.lint import inspect
from speclint.signature import NAMESPACES, Kind, statement
from specrun.sign import sign

Data = dict[str, Any]
Signer = Callable[[Kind, Data, Data], Data]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("trusted")
    write_trust(path, alice=make_key(path, "alice"))
    make_key(path, "bob")
    return path


@pytest.fixture
def signed(folder: Path) -> Signer:
    def signer(kind: Kind, data: Data, entry: Data) -> Data:
        who = str(entry["signer" if kind == "result" else "approver"]).partition("@")[0]
        key = folder / who
        return entry | {"signature": sign(statement(kind, data["name"], entry["spec"], entry), key, NAMESPACES[kind])}

    return signer


@pytest.fixture
def data(signed: Signer) -> Data:
    """An approved spec with two results, the second after the first."""
    spec: Data = document.parse(SPEC.encode(), "").data
    approval = signed("approval", spec, _approval(spec))
    named = {"approvals": [entry_digest(approval)]}
    first = signed("result", spec, result(spec, "r1", **named))
    second = signed("result", spec, result(spec, "r2", previous=[entry_digest(first)], **named))
    whole: Data = json.loads(json.dumps(spec | {"approvals": [approval], "results": [first, second]}))
    return whole


def _approval(data: Data, **changes: Any) -> Data:
    entry = {
        "id": "a1",
        "approver": ALICE,
        "time": "2026-11-29T10:00:00Z",
        "spec": spec_digest(data),
        "sections": section_digests(data),
        "suppressions": [],
        "results_known": [],
    }
    return entry | changes


def lint(data: Data, folder: Path) -> list[Diagnostic]:
    """Errors and warnings; that the sample has no lock is an info."""
    found = inspect(document.parse(dumped(data), "x.spec.yaml"), folder).diagnostics
    return [item for item in found if item.severity != "info"]


def codes(data: Data, folder: Path) -> set[str]:
    return {item.code for item in lint(data, folder)}


def test_signed_spec_passes_without_a_word(data: Data, folder: Path) -> None:
    assert lint(data, folder) == []


def _leaves(value: Any, keys: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [leaf for key, child in children for leaf in _leaves(child, (*keys, key))] or [keys]


def test_changing_any_value_of_a_result_breaks_its_signature(data: Data, folder: Path) -> None:
    leaves = [leaf for leaf in _leaves(data["results"][1]) if leaf[0] not in ("signature", "signer")]
    assert len(leaves) > 100
    for leaf in leaves[:: len(leaves) // 12]:
        changed = copy.deepcopy(data)
        holder = changed["results"][1]
        for key in leaf[:-1]:
            holder = holder[key]
        holder[leaf[-1]] = 7.25 if isinstance(holder[leaf[-1]], (int, float)) else "changed"
        assert "SL602" in codes(changed, folder), leaf


def test_damaged_signature(data: Data, folder: Path) -> None:
    data["approvals"][0]["signature"] = data["approvals"][0]["signature"].replace("A", "B", 1)
    assert "SL602" in codes(data, folder)


def test_result_signature_does_not_serve_an_approval(data: Data, folder: Path) -> None:
    data["approvals"][0]["signature"] = data["results"][0]["signature"]
    assert "SL602" in codes(data, folder)


def test_signer_who_is_not_allowed(data: Data, folder: Path, signed: Signer) -> None:
    spec = {key: data[key] for key in ("schema", "name", "pair", "protocol", "purpose")}
    data["approvals"].append(signed("approval", spec, _approval(spec, id="a2", approver=BOB)))
    assert codes(data, folder) == {"SL603"}


def test_signature_under_anothers_name(data: Data, folder: Path, signed: Signer) -> None:
    spec = {key: data[key] for key in ("schema", "name", "pair", "protocol", "purpose")}
    entry = _approval(spec, id="a2", approver=ALICE)
    forged = sign(statement("approval", spec["name"], entry["spec"], entry), folder / "bob", NAMESPACES["approval"])
    data["approvals"].append(entry | {"signature": forged})
    assert codes(data, folder) == {"SL603"}


def test_without_any_trust_no_signature_counts(data: Data, tmp_path: Path) -> None:
    assert codes(data, tmp_path) == {"SL603"}


def test_result_of_another_spec(data: Data, folder: Path, signed: Signer) -> None:
    other = copy.deepcopy(data)
    other["pair"]["speculative"]["num_speculative_tokens"] = 5
    other["protocol"]["load"]["requests"] = 128
    foreign = result(other, "r3", previous=[entry_digest(data["results"][1])], approvals=data["results"][0]["approvals"])
    data["results"].append(signed("result", data, foreign))
    assert codes(data, folder) == {"SL604", "SL612"}


@pytest.mark.parametrize(
    ("path", "value", "section"),
    [
        (("protocol", "criteria", 0, "at_most"), 0.95, "criteria"),
        (("pair", "speculative", "num_speculative_tokens"), 4, "pair"),
        (("protocol", "load", "requests"), 80, "protocol"),
    ],
)
def test_spec_changed_after_results(data: Data, folder: Path, path: tuple[Any, ...], value: Any, section: str) -> None:
    holder: Any = data
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = value
    found = [item for item in lint(data, folder) if item.code == "SL614"]
    assert len(found) == 2 and found[0].message.endswith(f": {section}")


def test_comments_and_purpose_may_change(data: Data, folder: Path) -> None:
    data["purpose"] = "Said better."
    assert lint(data, folder) == []


def test_removed_result_breaks_the_chain(data: Data, folder: Path) -> None:
    del data["results"][0]
    assert codes(data, folder) == {"SL605"}


def test_reordered_results_break_the_chain(data: Data, folder: Path) -> None:
    data["results"].reverse()
    assert "SL605" in codes(data, folder)


def test_same_entry_twice(data: Data, folder: Path) -> None:
    data["approvals"].append(data["approvals"][0])
    assert codes(data, folder) == {"SL605"}


def test_two_branches_that_each_added_a_first_result_are_a_warning(data: Data, folder: Path, signed: Signer) -> None:
    data["results"][1] = signed("result", data, data["results"][1] | {"previous": []})
    assert [(item.code, item.severity) for item in lint(data, folder)] == [("SL605", "warning")]


def test_unapproved_result(data: Data, folder: Path, signed: Signer) -> None:
    data["results"][1] = signed("result", data, data["results"][1] | {"approvals": []})
    assert [(item.code, item.severity) for item in lint(data, folder)] == [("SL612", "warning")]
    data["results"][1] = signed("result", data, data["results"][1] | {"approvals": ["sha256:" + "0" * 64]})
    assert [(item.code, item.severity) for item in lint(data, folder)] == [("SL612", "error")]


def test_approved_after_the_run(data: Data, folder: Path, signed: Signer) -> None:
    late = signed("approval", data, _approval(data, id="late", time="2026-11-30T10:30:00Z"))
    data["approvals"].append(late)
    data["results"][1] = signed("result", data, data["results"][1] | {"approvals": [entry_digest(late)]})
    assert codes(data, folder) == {"SL613"}


def _changed(data: Data, path: tuple[Any, ...], value: Any) -> Data:
    holder: Any = data["results"][1]
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = value
    return data


CELL = ("verdicts", 0, "cells", 0)
FIGURES = {"columns": ["workload", "concurrency", "arm", "mean_accepted_length", "acceptance_rate"]}


@pytest.mark.parametrize(
    ("path", "value", "code"),
    [
        ((*CELL, "verdict"), "not_met", "SL608"),
        ((*CELL, "high"), 0.93, "SL608"),
        (("verdicts", 0, "verdict"), "not_met", "SL608"),
        (("verdicts", 0, "id"), "another", "SL608"),
        (("established", "verdict"), "not_established", "SL608"),
        ((*CELL, "value"), 0.2, "SL610"),
        ((*CELL, "low"), -0.1, "SL610"),
        (("figures",), FIGURES | {"rows": [["varied", 1, "pair", 4.2, 0.5]]}, "SL610"),
        (("figures",), FIGURES | {"rows": [["varied", 1, "pair", 2.2, 1.5]]}, "SL610"),
        (("figures",), FIGURES | {"rows": [["varied", 1, "target", None, 0.5]]}, "SL610"),
        (("figures",), FIGURES | {"rows": [["varied", 1, "pair", 2.2]]}, "SL610"),
        (("established", "checks"), [], "SL611"),
        (("established", "checks", 0, "outcome"), "failed", "SL611"),
    ],
)
def test_figures_that_contradict_themselves(
    data: Data, folder: Path, signed: Signer, path: tuple[Any, ...], value: Any, code: str
) -> None:
    data = _changed(data, path, value)
    data["results"][1] = signed("result", data, data["results"][1])
    assert code in codes(data, folder) and "SL602" not in codes(data, folder)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("verdicts", 0, "verdict"), "met_one_start"),
        (("figures",), FIGURES | {"rows": [["varied", 1, "pair", 4.0, 1.0], ["varied", 1, "target", None, None]]}),
        ((*CELL, "reason"), "sign-flip p 0.03"),
    ],
)
def test_figures_that_are_possible(data: Data, folder: Path, signed: Signer, path: tuple[Any, ...], value: Any) -> None:
    data = _changed(data, path, value)
    data["results"][1] = signed("result", data, data["results"][1])
    assert lint(data, folder) == []


def test_beyond_the_threshold_may_stay_undecided_over_several_cells(data: Data, folder: Path, signed: Signer) -> None:
    cell = data["results"][1]["verdicts"][0]["cells"][0]
    cell |= {"value": 0.95, "low": 0.91, "high": 0.99, "verdict": "undecided"}
    data["results"][1]["verdicts"][0]["verdict"] = "undecided"
    data["results"][1] = signed("result", data, data["results"][1])
    assert lint(data, folder) == []


def test_results_last(data: Data, folder: Path) -> None:
    data["approvals"] = data.pop("approvals")
    assert codes(data, folder) == {"SL607"}


class TestPolicy:
    """`[approvals]` of speclint.toml: how many approvers count, before a run (SL601) and after it (SL612)."""

    @pytest.fixture
    def asking(self, folder: Path, tmp_path: Path) -> Callable[[str], Path]:
        def ask(policy: str) -> Path:
            (tmp_path / "speclint.toml").write_text(f'[trust]\nallowed_signers = "allowed_signers"\n[approvals]\n{policy}\n')
            (tmp_path / "allowed_signers").write_text((folder / "allowed_signers").read_text())
            return tmp_path

        return ask

    def infos(self, data: Data, folder: Path) -> list[str]:
        found = inspect(document.parse(dumped(data), "x.spec.yaml"), folder).diagnostics
        return [item.message for item in found if item.code == "SL601"]

    def test_before_a_run(self, data: Data, asking: Callable[[str], Path]) -> None:
        before = {key: value for key, value in data.items() if key != "results"}
        assert self.infos(before, asking("min = 1")) == []
        assert self.infos(before, asking("min = 2")) == ["1 of the 2 approvers that speclint.toml asks for"]
        before["approvals"] = []
        assert self.infos(before, asking("min = 0")) == []
        assert self.infos(before, asking("min = 1")) == ["nobody has approved this spec yet"]

    def test_the_same_approver_counts_once(self, data: Data, asking: Callable[[str], Path]) -> None:
        before = {key: value for key, value in data.items() if key != "results"}
        before["approvals"] = [*before["approvals"], before["approvals"][0] | {"id": "a2"}]
        assert len(self.infos(before, asking("min = 2"))) == 1

    def test_after_a_run(self, data: Data, asking: Callable[[str], Path]) -> None:
        assert "SL612" not in codes(data, asking("min = 1"))
        assert "SL612" in codes(data, asking("min = 2"))
        assert "SL612" in codes(data, asking("other_than_signer = true"))


def test_another_specs_result_is_said_before_its_signature(data: Data, folder: Path) -> None:
    data["pair"]["speculative"]["num_speculative_tokens"] = 5
    data["protocol"]["load"]["requests"] = 128
    data["results"][1]["scope"] = []
    found = [item.code for item in lint(data, folder) if item.path.startswith("/results/1/")]
    assert {"SL602", "SL604"} <= set(found) and found.index("SL604") < found.index("SL602")
