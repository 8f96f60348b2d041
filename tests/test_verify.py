"""`specrun verify`: which claims hold, on a file with a real approval and a real signed result."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from trust_sample import ALICE, SPEC, data_of, make_key, public, result, write_trust

from speclint.canonical import entry_digest, heads
from speclint.edit import replace_section
from speclint.lint import check
from speclint.signature import NAMESPACES, statement
from specrun import manifest
from specrun.append import append_entry
from specrun.approve import approve
from specrun.compare import interval_of
from specrun.errors import NotWritten
from specrun.rejudge import contradictions, unlike
from specrun.sign import sign
from specrun.verify import Row, by_its_maker, verify

RECORDS = "figures follow from the records"
PROMPTS = "prompts kept are the locked ones"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an approved spec that holds two results, and the run folder of the first."""
    folder = tmp_path_factory.mktemp("made")
    write_trust(folder, alice=make_key(folder, "alice"))
    path = folder / "x.spec.yaml"
    path.write_text(SPEC)
    approve(path, folder / "alice", show=len)
    run = folder / "runs" / "r1"
    (run / "b01").mkdir(parents=True)
    (run / "plan.json").write_text('{"id": "r1"}')
    (run / "b01" / "records.jsonl").write_text('{"index": 0}\n')
    digest, count = manifest.write(run)
    add_result(path, "r1", records={"manifest": digest, "files": count, "requests": 1})
    add_result(path, "r2")
    return folder


def add_result(path: Path, run: str, **changes: Any) -> None:
    data = data_of(path)
    approvals = [entry_digest(entry) for entry in data["approvals"]]
    later = {"started": "2999-01-01T00:00:00Z", "ended": "2999-01-01T01:00:00Z"}
    entry = result(data, run, approvals=approvals, previous=heads(data.get("results", [])), **later | changes)
    append_entry(path, "results", signed(path, data["name"], entry))


def signed(path: Path, name: str, entry: dict[str, Any]) -> dict[str, Any]:
    told = statement("result", name, entry["spec"], entry)
    return entry | {"signature": sign(told, path.parent / "alice", NAMESPACES["result"])}


@pytest.fixture
def spec(made: Path, tmp_path: Path) -> Path:
    """A copy to damage."""
    for name in ("x.spec.yaml", "speclint.toml", "allowed_signers", "alice", "alice.pub"):
        (tmp_path / name).write_bytes((made / name).read_bytes())
        (tmp_path / name).chmod(0o600)
    return tmp_path / "x.spec.yaml"


def failed(rows: list[Row]) -> list[str]:
    return [row.claim for row in rows if row.outcome == "failed"]


def rewrite(path: Path, section: str, change: Callable[[list[dict[str, Any]]], object]) -> None:
    entries = copy.deepcopy(data_of(path)[section])
    change(entries)
    path.write_bytes(replace_section(path.read_bytes(), section, entries))


def test_everything_holds_and_what_was_not_checked_is_said(spec: Path) -> None:
    rows = verify(spec)
    assert failed(rows) == []
    assert {row.claim for row in rows if row.outcome == "not_checked"} == {
        f"result {run}: {what}" for run in ("r1", "r2") for what in ("raw records", PROMPTS, RECORDS)
    }
    assert len(rows) == 2 + 2 * 8


def test_the_chain_names_the_result_before(spec: Path) -> None:
    assert [row.detail for row in verify(spec) if "follows" in row.claim] == ["it names none", "r1"]


@pytest.mark.parametrize(
    ("damage", "claims"),
    [
        (lambda results: results[0]["figures"]["rows"][0].__setitem__(3, 0.0412346), {"result r1: signed", "result r2: follows"}),
        (lambda results: results.pop(0), {"result r2: follows"}),
        (lambda results: results.reverse(), {"result r2: follows"}),
        (lambda results: results.append(results[0]), {"result r1: follows"}),
        (lambda results: results[0].__setitem__("signature", results[1]["signature"]), {"result r1: signed"}),
        (lambda results: results[1]["attempts"].__setitem__("pair", 1), {"result r2: signed"}),
        (lambda results: results[1]["verdicts"][0].update(verdict="not_met"), {"result r2: signed", "result r2: verdicts"}),
        (lambda results: results[1].__setitem__("approvals", []), {"result r2: signed", "result r2: ran under"}),
    ],
)  # fmt: skip
def test_a_change_of_the_results_is_found(spec: Path, damage: Callable[[list[dict[str, Any]]], object], claims: set[str]) -> None:
    rewrite(spec, "results", damage)
    assert {" ".join(claim.split()[:3]) for claim in failed(verify(spec))} >= {" ".join(c.split()[:3]) for c in claims}
    assert {claim.split(":")[0] for claim in failed(verify(spec))} <= {"result r1", "result r2"}


def leaves(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [leaf for key, child in children for leaf in leaves(child, (*at, key))] or [at]


def test_changing_any_single_figure_makes_verify_fail(spec: Path) -> None:
    source = spec.read_bytes()
    results = data_of(spec)["results"]
    numbers = [at for at in leaves(results[1]) if type(_get(results[1], at)) in (int, float)]
    assert len(numbers) > 60
    assert "SL602" not in [item.code for item in check(spec)]
    for count, at in enumerate(numbers[::3]):
        changed = copy.deepcopy(results)
        holder = _get(changed[1], at[:-1])
        holder[at[-1]] += 1 if isinstance(holder[at[-1]], int) else holder[at[-1]] * 1e-14
        spec.write_bytes(replace_section(source, "results", changed))
        assert failed(verify(spec)), at
        assert count % 5 or "SL602" in [item.code for item in check(spec)], at


def _get(value: Any, at: tuple[Any, ...]) -> Any:
    for key in at:
        value = value[key]
    return value


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("num_speculative_tokens: 3", "num_speculative_tokens: 5", "differing: pair"),
        ("requests: 64", "requests: 128", "differing: protocol"),
        ("at_most: 0.9}", "at_most: 0.99}", "differing: protocol, criteria"),
        ("name: qwen3-k3", "name: qwen3-k5", "differing: schema or name"),
    ],
)
def test_a_changed_spec_is_named_by_its_section(spec: Path, old: str, new: str, words: str) -> None:
    spec.write_text(spec.read_text().replace(old, new, 1))
    details = [row.detail for row in verify(spec) if "for this spec" in row.claim]
    assert len(details) == 3
    assert all(words in detail for detail in details)


def test_comments_spelling_and_order_are_free(spec: Path) -> None:
    text = (
        spec.read_text().replace("temperature: 0.0", "temperature: 0").replace("at_most: 0.9}", "at_most: 0.90}  # ten percent")
    )
    spec.write_text(text.replace("name: qwen3-k3", 'name: "qwen3-k3"').replace("purpose: Does", "purpose: did"))
    assert failed(verify(spec)) == []


def test_an_outsiders_signature_fails(spec: Path) -> None:
    outsider = make_key(spec.parent, "mallory")
    entries = data_of(spec)["results"]
    told = statement("result", data_of(spec)["name"], entries[0]["spec"], entries[0])
    rewrite(spec, "results", lambda results: results[0].update(signature=sign(told, outsider, NAMESPACES["result"])))
    row = next(row for row in verify(spec) if row.claim.startswith("result r1: signed"))
    assert (row.outcome, "alice@example.com, who has another key" in row.detail) == ("failed", True)


def test_a_key_that_expired_since_is_not_simply_believed(spec: Path) -> None:
    (spec.parent / "allowed_signers").write_text(f'{ALICE} valid-before="20200101" {public(spec.parent / "alice")}\n')
    assert any(row.claim.endswith("unchanged since") for row in verify(spec) if row.outcome == "failed")
    rewrite(spec, "results", lambda results: results.pop())
    old = signed(spec, data_of(spec)["name"], data_of(spec)["results"][0] | {"ended": "2019-06-01T00:00:00Z"})
    rewrite(spec, "results", lambda results: results.__setitem__(0, old))
    row = next(row for row in verify(spec) if row.claim.startswith("result r1: signed"))
    assert row.outcome == "not_checked"
    assert "the signer's word" in row.detail


def test_policy_counts_approvers(spec: Path) -> None:
    toml = spec.parent / "speclint.toml"
    toml.write_text(toml.read_text() + "[approvals]\nother_than_signer = true\n")
    assert "0 approvers count, 1 are needed" in " ".join(row.detail for row in verify(spec) if "ran under" in row.claim)


def test_an_approval_given_after_the_run_began_does_not_count(spec: Path) -> None:
    early = signed(spec, data_of(spec)["name"], data_of(spec)["results"][0] | {"started": "2000-01-01T00:00:00Z"})
    rewrite(spec, "results", lambda results: results.__setitem__(0, early))
    row = next(row for row in verify(spec) if row.claim.startswith("result r1: ran under"))
    assert "was given after the run began" in row.detail


def test_an_approval_of_another_spec_does_not_count(spec: Path) -> None:
    other = copy.deepcopy(data_of(spec)["approvals"][0]) | {"spec": "sha256:" + "0" * 64}
    rewrite(spec, "approvals", lambda approvals: approvals.__setitem__(0, other))
    late = signed(spec, data_of(spec)["name"], data_of(spec)["results"][0] | {"approvals": [entry_digest(other)]})
    rewrite(spec, "results", lambda results: results.__setitem__(0, late))
    row = next(row for row in verify(spec) if row.claim.startswith("result r1: ran under"))
    assert "is for another spec" in row.detail


def test_the_same_run_is_not_appended_twice(spec: Path) -> None:
    before = spec.read_bytes()
    with pytest.raises(NotWritten, match="r2 stands in results already"):
        append_entry(spec, "results", data_of(spec)["results"][1])
    assert spec.read_bytes() == before


def test_a_file_of_the_wrong_shape_is_one_row(spec: Path) -> None:
    spec.write_text("results:\n  - 3\n")
    assert [row.outcome for row in verify(spec)] == ["failed"]


# --- raw records ---


def rows_of(spec: Path, records: Path, found: Callable[[Path], dict[str, Any]] | None = None) -> dict[str, Row]:
    rows = verify(spec, records=records, recompute=found)
    return {row.claim.split(": ")[1]: row for row in rows if row.claim.startswith("result r1")}


@pytest.fixture
def runs(made: Path, tmp_path: Path) -> Path:
    for path in (made / "runs").rglob("*"):
        if path.is_file():
            target = tmp_path / path.relative_to(made)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(path.read_bytes())
    return tmp_path / "runs"


def test_records_as_signed(spec: Path, runs: Path) -> None:
    for records in (runs, runs / "r1"):
        assert rows_of(spec, records)["raw records"].outcome == "ok"
    assert rows_of(spec, spec.parent)["raw records"].outcome == "not_checked"


def test_the_folder_of_another_run_is_not_taken_for_it(spec: Path, runs: Path) -> None:
    (runs / "r1" / "plan.json").write_text('{"id": "r9"}')
    assert rows_of(spec, runs)["raw records"].outcome == "not_checked"


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda run: (run / "b01" / "records.jsonl").write_text("{}\n"), "b01/records.jsonl differs"),
        (lambda run: (run / "b01" / "records.jsonl").unlink(), "b01/records.jsonl is missing"),
        (lambda run: (run / "manifest.json").write_text('{"files": {}}'), "not the list that was signed"),
        (lambda run: (run / "manifest.json").write_text("[]"), "cannot be read"),
        (lambda run: (run / "manifest.json").unlink(), "cannot be read"),
    ],
)
def test_records_that_differ(spec: Path, runs: Path, damage: Callable[[Path], object], words: str) -> None:
    damage(runs / "r1")
    rows = rows_of(spec, runs, lambda folder: {})
    assert (rows["raw records"].outcome, words in rows["raw records"].detail) == ("failed", True)
    assert rows[RECORDS].outcome == rows[PROMPTS].outcome == "not_checked"


def test_figures_are_recomputed(spec: Path, runs: Path) -> None:
    stored = data_of(spec)["results"][0]
    same = {"figures": copy.deepcopy(stored["figures"]), "verdicts": stored["verdicts"]}
    assert rows_of(spec, runs, lambda folder: same)[RECORDS].outcome == "ok"
    same["figures"]["rows"][0][3] *= 1.001
    row = rows_of(spec, runs, lambda folder: same)[RECORDS]
    assert (row.outcome, row.detail.partition(";")[0]) == ("failed", "/figures/rows/0/3 differs")
    said = "specpair 0.1.0 made it, and this is 0.1.0: not what its records say, unless code was changed"
    assert row.detail.endswith(said)


def test_figures_of_another_version_name_both_and_the_way_out(spec: Path, runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stored = data_of(spec)["results"][0]
    changed = {"figures": copy.deepcopy(stored["figures"])}
    changed["figures"]["rows"][0][3] *= 1.001
    monkeypatch.setattr("specrun.verify.__version__", "9.0.0")
    row = rows_of(spec, runs, lambda folder: changed)[RECORDS]
    assert row.outcome == "failed" and row.detail.startswith("/figures/rows/0/3 differs; specpair 0.1.0 made it, this is 9.0.0")
    assert "`pip install specpair==0.1.0` and verify again" in row.detail
    assert rows_of(spec, runs, lambda folder: {"figures": stored["figures"]})[RECORDS].detail == "figures"


@pytest.mark.parametrize(
    ("maker", "is_version"),
    [
        ("0.1.0", True),
        ("1.0rc1.post2.dev3+cpu.1", True),
        ("0.1.0 --index-url http://evil", False),
        ("0.1.0\n", False),
        ("-r x", False),
    ],
)
def test_only_a_version_stands_in_a_command(maker: str, is_version: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("specrun.verify.__version__", "9.0.0")
    said = by_its_maker(maker)
    assert (f"`pip install specpair=={maker}`" in said, "pip install" in said) == (is_version, is_version)
    assert "\n" not in said and "this is 9.0.0" in said


def test_records_of_another_version_that_cannot_be_read_are_a_claim_that_fails(
    spec: Path, runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreadable(_: Path) -> dict[str, Any]:
        raise KeyError("slots")

    with pytest.raises(KeyError):  # of our own version: a fault of ours
        rows_of(spec, runs, unreadable)
    monkeypatch.setattr("specrun.verify.__version__", "9.0.0")
    row = rows_of(spec, runs, unreadable)[RECORDS]
    assert row.outcome == "failed" and row.detail.startswith(
        "the records cannot be read here (KeyError: 'slots'); specpair 0.1.0"
    )


def test_a_manifest_cannot_point_outside(runs: Path) -> None:
    (runs / "outside").write_text("x")
    assert manifest.differences(runs / "r1", {"../outside": "sha256:x"}) == ["../outside is missing"]


def test_the_manifest_lists_every_file_but_itself_and_hidden_ones(runs: Path) -> None:
    (runs / "r1" / ".x.tmp").write_text("")
    (runs / "r1" / "plan.json.part").write_text("")
    digest, count = manifest.write(runs / "r1")
    assert sorted(json.loads((runs / "r1" / "manifest.json").read_text())["files"]) == ["b01/records.jsonl", "plan.json"]
    assert (count, digest[:7]) == (2, "sha256:")


# --- verdicts from blocks ---


@pytest.fixture
def entry(spec: Path) -> dict[str, Any]:
    return copy.deepcopy(data_of(spec)["results"][0])


def cell(entry: dict[str, Any], criterion: int = 0) -> Any:
    return entry["verdicts"][criterion]["cells"][0]


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda e: cell(e).update(low=cell(e)["low"] * 1.001), "its blocks give"),
        (lambda e: cell(e)["blocks"].__setitem__(2, 0.99), "its blocks give"),
        (lambda e: cell(e)["blocks"].clear(), "its blocks give no interval"),
        (lambda e: cell(e).update(verdict="not_met"), "called not_met, its interval says met"),
        (lambda e: cell(e).update(value=None, low=None, high=None), "called met without an interval"),
        (lambda e: e["verdicts"][0].update(verdict="undecided"), "faster-alone: called undecided, its cells say met"),
        (lambda e: cell(e, 3).update(value=0.99), "capacity, - at None: its blocks give"),
        (lambda e: e["verdicts"].pop(), "not those of the spec"),
        (lambda e: e["established"].update(verdict="not_established"), "although the pair was not established"),
    ],
)
def test_contradictions_in_an_entry(spec: Path, entry: dict[str, Any], damage: Callable[[Any], object], words: str) -> None:
    protocol = data_of(spec)["protocol"]
    assert contradictions(entry, protocol) == []
    damage(entry)
    assert words in " ".join(contradictions(entry, protocol))


def test_met_on_one_start_and_void_cells_are_consistent(spec: Path, entry: dict[str, Any]) -> None:
    entry["verdicts"][0]["verdict"] = "met_one_start"
    void = cell(entry, 1)
    void.update(value=None, low=None, high=None, verdict="undecided", blocks=[None, None, 1.1, 1.2, 1.1, None])
    entry["verdicts"][1]["verdict"] = "undecided"
    assert contradictions(entry, data_of(spec)["protocol"]) == []


def test_no_verdict_may_rest_on_fewer_blocks_than_were_planned(spec: Path, entry: dict[str, Any]) -> None:
    protocol = copy.deepcopy(data_of(spec)["protocol"])
    protocol["design"]["blocks"] = 8
    found = contradictions(entry, protocol)
    assert "faster-alone: called met after 6 of 8 blocks" in found
    assert not any(text.startswith("capacity") for text in found)  # read at a start, of which there may be one
    entry["verdicts"][0]["verdict"] = "undecided"
    for row in entry["verdicts"][0]["cells"]:
        row.update(value=None, low=None, high=None, verdict="undecided")
    assert not any(text.startswith("faster-alone") for text in contradictions(entry, protocol))


def test_no_verdict_may_stand_beside_the_words_that_nothing_is_judged(spec: Path, entry: dict[str, Any]) -> None:
    protocol = data_of(spec)["protocol"]
    entry["scope"].append("Nothing is judged: the run was ended after 5 of 6 blocks.")
    assert contradictions(entry, protocol) == ["a verdict stands beside the words that nothing is judged"]


def test_over_two_cells_not_met_needs_the_wider_interval(spec: Path, entry: dict[str, Any]) -> None:
    blocks = [0.93, 0.99, 0.9, 0.98, 0.92, 0.94]
    value, low, high = interval_of(blocks, True, 0.95)
    assert low > 0.9 > interval_of(blocks, True, 0.975)[1]
    bad = {"workload": "repetitive", "concurrency": 1, "value": value, "low": low, "high": high, "blocks": blocks}
    verdict, protocol = entry["verdicts"][0], data_of(spec)["protocol"]
    verdict["cells"] = [bad | {"verdict": "not_met"}]
    verdict["verdict"] = "not_met"
    assert contradictions(entry, protocol) == []
    verdict["cells"].append(copy.deepcopy(cell(entry) | {"workload": "varied"}))
    assert "called not_met, its interval says undecided" in " ".join(contradictions(entry, protocol))


@pytest.mark.parametrize(
    ("stored", "found", "differing"),
    [
        (0.123456, 0.123457, []),
        (0.123456, 0.123458, ["/"]),
        (0.987654, 0.987655, []),
        (0.987654, 0.987656, ["/"]),
        (0.999999, 1.0, []),
        (-1.5e-07, 1.5e-07, ["/"]),
        (0, 0.0, []),
        (3, 3.0, []),
        (1, True, ["/"]),
        (None, 0.0, ["/"]),
        ({"a": [1, {"b": "x"}]}, {"a": [1, {"b": "y"}]}, ["/a/1/b"]),
        ({"a": 1}, {"a": 1, "b": 2}, ["/"]),
        ([1, 2], [1], ["/"]),
    ],
)
def test_unlike(stored: Any, found: Any, differing: list[str]) -> None:
    assert list(unlike(stored, found)) == differing
