"""`speclint check --base`: entries of the merge base must stand here, whatever the change does to them. Real git and OpenSSH."""

from __future__ import annotations

import copy
import re
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from history_sample import GIT, Data, Repository, approval, data_of, made, parsed_once  # noqa: F401
from trust_sample import SPEC, make_key, public

from speclint import document, edit
from speclint.canonical import entry_digest, heads
from specrun.errors import Refused
from specrun.prepare import approvals


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    return made(tmp_path_factory.mktemp("history"))


@pytest.fixture
def repository(original: Repository, tmp_path: Path) -> Repository:
    """A copy with a branch `change` checked out, which begins at `main`."""
    copied = original.copied(tmp_path / "répo 1")
    return copied


def only(rows: list[dict[str, Any]]) -> dict[str, Any]:
    assert len(rows) == 1, rows
    return rows[0]


# --- what a change may do ---


def test_a_new_result_passes(repository: Repository) -> None:
    repository.add_result("r3")
    repository.commit()
    done = repository.check()
    assert done.exit_code == 0 and "SL606" not in done.stdout
    assert "3 approvals and results in 1 file there, 1 new here" in done.stderr


def test_a_change_of_something_else_passes(repository: Repository) -> None:
    (repository.top / "README.md").write_text("about\n")
    repository.commit()
    assert repository.found() == []


def test_comments_quotes_and_numbers_may_be_respelt(repository: Repository) -> None:
    text = (
        repository.spec.read_text()
        .replace("temperature: 0.0", "temperature: 0")
        .replace("at_most: 0.9}", "at_most: 0.90}  # ten")
    )
    repository.spec.write_text("# reviewed\n" + text.replace("name: qwen3-k3", 'name: "qwen3-k3"').replace('id: "r1"', "id: r1"))
    repository.commit()
    assert repository.found() == []


def test_a_renamed_file_passes(repository: Repository) -> None:
    repository.git("mv", "pairs/x.spec.yaml", "y.spec.yaml")
    repository.commit()
    assert repository.found() == []


def test_a_file_that_is_not_called_a_spec_is_one_by_its_first_key(repository: Repository) -> None:
    repository.git("mv", "pairs/x.spec.yaml", "pairs/pair.yml")
    repository.commit()
    assert repository.found() == []
    repository.branch("next", "change")
    (repository.top / ".gitattributes").write_text("*.yml binary\n")
    (repository.top / "pairs" / "pair.yml").unlink()
    repository.commit()
    assert "r1" in only(repository.found(base="change"))["message"]


# --- what it may not ---


def _set_figure(entry: Data, value: float) -> None:
    entry["figures"]["rows"][0][2] = value


EDITS: dict[str, tuple[str, Callable[[list[Data]], object], str, str]] = {
    "a figure": ("results", lambda r: _set_figure(r[0], 0.03), "/results/0/figures/rows/0/2", "result r1"),
    "a verdict": ("results", lambda r: r[1]["established"].update(verdict="x"), "/results/1/established/verdict", "result r2"),
    "a key more": ("results", lambda r: r[1]["host"].update(gpu="H200"), "/results/1/host/gpu", "result r2 is not"),
    "an approval": ("approvals", lambda a: a[0].update(time="2026-11-28T10:00:00Z"), "/approvals/0/time", "approval a1 is not"),
    "removed": ("results", lambda r: r.pop(0), "/results", "result r1 of pairs/x.spec.yaml"),
    "truncated": ("results", lambda r: r.pop(), "/results", "result r2 of pairs/x.spec.yaml"),
    "all removed": ("results", lambda r: r.clear(), "/results", "result r1, result r2 of"),
    "approval removed": ("approvals", lambda a: a.clear(), "/approvals", "approval a1 of"),
    "reordered": ("results", lambda r: r.reverse(), "/results/0/id", "result r2 stands above result r1"),
}  # fmt: skip


@pytest.mark.parametrize("name", EDITS)
def test_an_entry_of_the_base_is_not_touched(repository: Repository, name: str) -> None:
    section, change, path, words = EDITS[name]
    repository.change(section, change)
    found = [row for row in repository.found() if row["code"] == "SL606"]
    assert only(found)["path"] == path and words in found[0]["message"] and found[0]["severity"] == "error"


@pytest.mark.parametrize(
    ("name", "words", "here"),
    [
        ("a figure", "/figures/rows/0/2 was 0.0412345, is 0.03", "0 new, 1 edited here"),
        ("a verdict", '/established/verdict was "not_established", is "x"', "0 new, 1 edited here"),
        ("a key more", '/host/gpu was absent, is "H200"', "0 new, 1 edited here"),
        ("an approval", '/time was "2026-11-29T10:00:00Z", is "2026-11-28T10:00:00Z"', "0 new, 1 edited here"),
        ("removed", "", "0 new, 1 gone here"),
        ("all removed", "", "0 new, 2 gone here"),
        ("reordered", "", "0 new here"),
    ],
)
def test_old_and_new_value_are_said_and_counted(repository: Repository, name: str, words: str, here: str) -> None:
    section, change, _, _ = EDITS[name]
    repository.change(section, change)
    told = repository.check()
    assert words in told.stdout and told.stderr.rstrip().endswith(f"in 1 file there, {here}")


def test_several_values_of_an_entry_are_one_finding_that_counts_them(repository: Repository) -> None:
    repository.change("results", lambda rows: rows[0].update(scope=[], started="2026-11-30T09:00:00Z", host={}))
    row = only([row for row in repository.found() if row["code"] == "SL606"])
    assert row["message"].endswith('/started was "2026-11-30T10:00:00Z", is "2026-11-30T09:00:00Z", and 3 more values')


def test_a_value_that_was_taken_out_is_absent(repository: Repository) -> None:
    repository.change("results", lambda rows: rows[0]["host"].pop("memory_bytes"))
    row = only([row for row in repository.found() if row["code"] == "SL606"])
    assert (
        row["message"].endswith("/host/memory_bytes was 137438953472, is absent")
        and row["path"] == "/results/0/host/memory_bytes"
    )


def test_an_edited_entry_beside_a_new_and_a_deleted_file_are_counted(repository: Repository) -> None:
    repository.add_result("r3")
    repository.change("results", EDITS["a figure"][1])
    assert repository.check().stderr.rstrip().endswith("there, 1 new, 1 edited here")
    repository.spec.unlink()
    assert "there, 0 new, 3 gone here\n" in repository.check().stderr


@pytest.mark.parametrize("name", ["a figure", "removed", "all removed", "approval removed", "reordered"])
def test_the_way_out_is_a_command_that_works_from_any_folder(repository: Repository, name: str) -> None:
    section, change, _, _ = EDITS[name]
    repository.change(section, change)
    repository.commit()
    row = next(row for row in repository.found() if row["code"] == "SL606")
    (command,) = re.findall("^`(git checkout .*)` brings the file back as it was; then add what is new", row["help"])
    subprocess.run(shlex.split(command), cwd=repository.spec.parent, env=GIT, check=True, capture_output=True)
    repository.commit()
    (repository.top / "README.md").write_text("about\n")
    assert repository.found() == []


def test_the_way_out_of_a_renamed_file_shows_what_it_was(repository: Repository) -> None:
    repository.git("mv", "pairs/x.spec.yaml", "y z.spec.yaml")
    repository.change("results", lambda rows: rows.pop(), repository.top / "y z.spec.yaml")
    repository.commit()
    row = next(row for row in repository.found() if row["code"] == "SL606")
    (command,) = re.findall("^`(git show .*)` shows the file as it was", row["help"])
    done = subprocess.run(shlex.split(command), cwd=repository.top, env=GIT, check=True, capture_output=True)
    (repository.top / "y z.spec.yaml").write_bytes(done.stdout)
    assert repository.found() == []


@pytest.mark.parametrize("name", ["a figure", "an approval", "removed", "reordered"])
def test_signing_again_does_not_help(repository: Repository, name: str) -> None:
    section, change, path, _ = EDITS[name]
    repository.change(section, change)
    kind = "result" if section == "results" else "approval"
    repository.change(
        section, lambda rows: rows.__setitem__(slice(None), [repository.signed(kind, _unsigned(row)) for row in rows])
    )
    repository.commit()
    assert ("SL606", path) in [(row["code"], row["path"]) for row in repository.found()]


def _unsigned(entry: Data) -> Data:
    return {key: value for key, value in entry.items() if key != "signature"}


def test_an_edited_entry_is_one_finding(repository: Repository) -> None:
    repository.change("results", EDITS["a figure"][1])
    assert [row["code"] for row in repository.found() if row["path"].startswith("/results/0")] == ["SL606"]


@pytest.mark.parametrize("name", ["removed", "an approval"])
def test_what_follows_from_a_lost_entry_is_not_told_as_well(repository: Repository, name: str) -> None:
    section, change, path, _ = EDITS[name]
    repository.change(section, change)
    assert [(row["code"], row["path"]) for row in repository.found()] == [("SL606", path)]


def test_a_removed_approval_is_not_said_to_be_lacking_as_well(repository: Repository) -> None:
    repository.branch("approved", "main")
    repository.change("results", lambda rows: rows.clear())
    text = repository.spec.read_text()
    repository.spec.write_text(text[: text.index("results:")])
    repository.commit()
    repository.branch("removed", "approved")
    repository.change("approvals", lambda rows: rows.clear())
    repository.commit()
    done = repository.check(base="approved")
    assert done.exit_code == 1 and "SL606" in done.stdout and "SL601" not in done.stdout


def test_a_deleted_file_is_missed(repository: Repository) -> None:
    repository.git("rm", "-q", "pairs/x.spec.yaml")
    repository.commit()
    row = only(repository.found())
    assert row["code"] == "SL606" and row["file"].endswith("x.spec.yaml")
    assert "is gone, and with it approval a1, result r1, result r2" in row["message"]
    (command,) = re.findall("^bring it back: `(git checkout .*)`$", row["help"])
    subprocess.run(shlex.split(command), cwd=repository.top, env=GIT, check=True, capture_output=True)
    (repository.top / "README.md").write_text("about\n")
    assert repository.found() == []


def test_rename_and_drop(repository: Repository) -> None:
    repository.git("mv", "pairs/x.spec.yaml", "y.spec.yaml")
    repository.change("results", lambda rows: rows.pop(), repository.top / "y.spec.yaml")
    repository.commit()
    row = only([row for row in repository.found() if row["code"] == "SL606"])
    assert row["file"].endswith("y.spec.yaml") and "result r2 of pairs/x.spec.yaml at" in row["message"]


def test_rename_and_drop_all_names_the_likely_new_name(repository: Repository) -> None:
    text = repository.spec.read_text()
    (repository.top / "y.spec.yaml").write_text(text[: text.index("approvals:")])
    repository.spec.unlink()
    repository.commit()
    assert "; y.spec.yaml looks like its new name" in only(repository.found())["message"]


def test_renamed_to_no_spec(repository: Repository) -> None:
    repository.git("mv", "pairs/x.spec.yaml", "pairs/x.txt")
    repository.commit()
    assert "is gone" in only(repository.found())["message"]


def test_moved_to_an_ignored_file(repository: Repository) -> None:
    (repository.top / ".gitignore").write_text("old/\n")
    (repository.top / "old").mkdir()
    repository.spec.rename(repository.top / "old" / "x.spec.yaml")
    repository.commit()
    assert "SL606" in repository.codes()


def test_replaced_by_a_link_out_of_the_repository(repository: Repository, tmp_path: Path) -> None:
    repository.spec.rename(tmp_path / "x.spec.yaml")
    repository.spec.symlink_to(tmp_path / "x.spec.yaml")
    repository.commit()
    assert "SL606" in repository.codes()


def test_split_into_two_files(repository: Repository) -> None:
    (repository.top / "graveyard.spec.yaml").write_bytes(repository.spec.read_bytes())
    repository.change("results", lambda rows: rows.pop(1))
    repository.change("results", lambda rows: rows.pop(0), repository.top / "graveyard.spec.yaml")
    repository.commit()
    found = [row for row in repository.found() if row["code"] == "SL606"]
    assert any("result r2 of" in row["message"] and "it stands in graveyard.spec.yaml now" in row["message"] for row in found)


@pytest.mark.parametrize("kept", [1, 0])
def test_thinned_out_beside_a_whole_copy(repository: Repository, kept: int) -> None:
    (repository.top / "archive.spec.yaml").write_bytes(repository.spec.read_bytes())
    repository.change("results", lambda rows: rows.__delitem__(slice(kept, None)))
    if not kept:
        repository.change("approvals", lambda rows: rows.clear())
    repository.commit()
    row = next(row for row in repository.found() if row["code"] == "SL606" and row["path"] == "/results")
    assert row["file"].endswith("x.spec.yaml") and "in archive.spec.yaml now" in row["message"]


def test_another_spec_may_take_the_name_once_the_file_was_renamed(repository: Repository) -> None:
    repository.git("mv", "pairs/x.spec.yaml", "pairs/old.spec.yaml")
    repository.spec.write_text(SPEC.replace("name: qwen3-k3", "name: another"))
    repository.commit()
    assert repository.found() == []


@pytest.mark.parametrize("section", ["results", "approvals only"])
def test_cherry_picked_into_a_copy(repository: Repository, section: str) -> None:
    copied = repository.top / "best.spec.yaml"
    copied.write_bytes(repository.spec.read_bytes())
    repository.change("results", lambda rows: rows.clear() if section == "approvals only" else rows.pop(), copied)
    repository.commit()
    row = only([row for row in repository.found() if row["code"] == "SL606"])
    assert row["file"].endswith("best.spec.yaml") and row["path"] == "/name"
    assert "takes approval a1" in row["message"] and "leaves out result" in row["message"]


def test_a_whole_copy_hides_nothing(repository: Repository) -> None:
    (repository.top / "copy.spec.yaml").write_bytes(repository.spec.read_bytes())
    repository.commit()
    assert repository.found() == []


def test_a_file_that_cannot_be_read_any_more_lost_its_entries(repository: Repository) -> None:
    other = repository.top / "other.spec.yaml"
    other.write_text("schema: pair-spec/v1\n")
    repository.spec.write_text("? [\n" + repository.spec.read_text())
    repository.commit()
    row = only([row for row in repository.found(path=other) if row["file"].endswith("x.spec.yaml")])
    assert row["code"] == "SL606" and "cannot be read" in row["message"] and "result r2" in row["message"]
    assert "SL001" in repository.codes()  # said of itself, where it is checked


def test_a_file_that_could_not_be_read_in_the_base_may_be_mended(repository: Repository) -> None:
    good = repository.spec.read_bytes()
    repository.spec.write_bytes(b"? [\n" + good)
    repository.commit()
    repository.branch("mended", "change")
    repository.spec.write_bytes(good)
    repository.commit()
    row = only(repository.found(base="change"))
    assert (row["code"], row["severity"]) == ("SL606", "warning") and "nothing is known of entries" in row["message"]


def test_the_whole_repository_is_judged_whatever_is_named(repository: Repository) -> None:
    other = repository.top / "other.spec.yaml"
    other.write_bytes(repository.spec.read_bytes()[: repository.spec.read_bytes().index(b"approvals:")])
    repository.add_result("r3", "mallory")
    repository.change("results", lambda rows: rows.pop(0))
    repository.commit()
    found = [row for row in repository.found(path=other) if row["file"].endswith("x.spec.yaml")]
    assert {"SL603", "SL606"} <= {row["code"] for row in found}


def test_a_file_that_readers_understand_differently_is_told_too(repository: Repository) -> None:
    other = repository.top / "other.spec.yaml"
    other.write_text(SPEC.replace("name: qwen3-k3", "name: other"))
    repository.spec.write_text(repository.spec.read_text() + "results: []\n")
    repository.commit()
    assert [row["code"] for row in repository.found(path=other)] == ["SL002"]


def test_a_result_does_not_count_among_the_approvals(repository: Repository) -> None:
    data = data_of(repository.spec)
    repository.change("approvals", lambda rows: rows.append(data["results"][1]))
    repository.change("results", lambda rows: rows.pop())
    repository.commit()
    assert any(row["code"] == "SL606" and "result r2 of" in row["message"] for row in repository.found())


def test_old_faults_of_files_that_nobody_named_are_left_alone(repository: Repository) -> None:
    repository.spec.write_bytes(repository.spec.read_bytes() + b"zzz: 1\n")  # SL607: results are not last
    repository.commit()
    repository.branch("next", "change")
    other = repository.top / "other.spec.yaml"
    other.write_bytes(repository.spec.read_bytes()[: repository.spec.read_bytes().index(b"approvals:")])
    repository.commit()
    assert [row for row in repository.found(base="change", path=other) if row["file"].endswith("x.spec.yaml")] == []


def test_configuration_of_the_base_can_leave_files_out(repository: Repository) -> None:
    toml = repository.top / "speclint.toml"
    toml.write_text(toml.read_text() + '[lint]\nexclude = ["fixtures"]\n')
    (repository.top / "fixtures").mkdir()
    (repository.top / "fixtures" / "f.spec.yaml").write_bytes(repository.spec.read_bytes())
    repository.commit()
    repository.branch("next", "change")
    repository.change("results", lambda rows: rows[0].update(scope=[]), repository.top / "fixtures" / "f.spec.yaml")
    repository.commit()
    assert repository.found(base="change") == []


# --- branches ---


def test_removal_is_judged_at_the_merge_base_so_a_stale_branch_removes_nothing(repository: Repository) -> None:
    (repository.top / "README.md").write_text("about\n")
    repository.commit()
    repository.git("checkout", "-q", "main")
    repository.add_result("r3")
    repository.commit()
    repository.git("checkout", "-q", "change")
    assert repository.found() == []


@pytest.mark.parametrize("way", ["merge", "squash", "rebase"])
def test_results_stay_valid_however_they_are_merged(repository: Repository, way: str) -> None:
    repository.add_result("r3")
    repository.commit()
    repository.git("checkout", "-q", "main")
    (repository.top / "README.md").write_text("about\n")
    repository.commit()
    before = repository.head()
    if way == "rebase":
        repository.git("rebase", "-q", "main", "change")
        repository.git("checkout", "-q", "main")
        repository.git("merge", "-q", "--ff-only", "change")
    elif way == "squash":
        repository.git("merge", "-q", "--squash", "change")
        repository.commit()
    else:
        repository.git("merge", "-q", "--no-ff", "change", "-m", "merged")
    assert [entry["id"] for entry in data_of(repository.spec)["results"]] == ["r1", "r2", "r3"]
    assert repository.found(base=before) == []


def test_two_branches_that_each_add_a_result_are_merged_without_key_or_run_folder(repository: Repository) -> None:
    repository.add_result("rA")
    repository.commit()
    repository.branch("other", "main")
    repository.add_result("rB", "bob")
    repository.commit()
    repository.git("merge", "change", check=False)
    repository.git("checkout", "--conflict=diff3", "--", "pairs/x.spec.yaml")
    lines = repository.spec.read_text().splitlines(keepends=True)
    markers = [line for line in lines if line.startswith(("<<<<<<< ", "||||||| ", "=======", ">>>>>>> "))]
    assert len(markers) == 4
    repository.spec.write_text("".join(line for line in lines if line not in markers))
    repository.commit("merged by hand")
    results = data_of(repository.spec)["results"]
    assert [entry["id"] for entry in results] == ["r1", "r2", "rB", "rA"]
    assert repository.found() == [] and repository.found(base="change") == []
    assert heads(results) == [entry_digest(entry) for entry in results[2:]]
    repository.add_result("r5")
    repository.commit()
    assert repository.found() == []


def test_a_union_merge_that_loses_lines_is_refused(repository: Repository) -> None:
    (repository.top / ".gitattributes").write_text("*.spec.yaml merge=union\n")
    repository.commit()
    for branch, key in (("one", "alice"), ("two", "bob")):
        repository.branch(branch, "change")
        repository.add_result(f"r-{branch}", key)
        repository.commit()
    repository.git("merge", "-q", "one", "-m", "merged by git alone")
    other = repository.top / "other.spec.yaml"
    other.write_text(SPEC.replace("name: qwen3-k3", "name: other"))
    for path in (None, other):
        assert "SL102" in [row["code"] for row in repository.found(base="one", path=path)]


def test_two_first_results_are_merged_by_deleting_the_second_key(repository: Repository) -> None:
    text = repository.spec.read_text()
    repository.spec.write_text(text[: text.index("results:")])
    repository.commit("a spec without results")
    for branch, key in (("one", "alice"), ("two", "bob")):
        repository.branch(branch, "change")
        repository.add_result(f"r-{branch}", key)
        repository.commit()
    repository.git("merge", "one", check=False)
    repository.git("checkout", "--conflict=diff3", "--", "pairs/x.spec.yaml")
    lines = repository.spec.read_text().splitlines(keepends=True)
    kept = [line for line in lines if not line.startswith(("<<<<<<< ", "||||||| ", "=======", ">>>>>>> "))]
    second = len(kept) - 1 - kept[::-1].index("results:\n")
    repository.spec.write_text("".join(kept[:second] + kept[second + 1 :]))
    repository.commit("merged by hand")
    assert [entry["id"] for entry in data_of(repository.spec)["results"]] == ["r-two", "r-one"]
    for base in ("one", "two~1"):
        assert [(row["code"], row["severity"]) for row in repository.found(base=base)] == [("SL605", "warning")]


def test_a_result_that_merges_cleanly_onto_a_changed_spec_is_refused(repository: Repository) -> None:
    repository.add_result("r3")
    repository.commit()
    repository.git("checkout", "-q", "main")
    repository.spec.write_text(repository.spec.read_text().replace("requests: 64", "requests: 80"))
    repository.commit()
    repository.git("merge", "-q", "change", "-m", "merged cleanly")
    assert repository.codes(base="main~1").count("SL614") == 3


MORE = "{id: more, metric: ttft_p50, compare: ratio, workload: all, concurrency: 1, at_most: 2}"
LESS = "    - {id: capacity, metric: kv_capacity_tokens, compare: ratio, at_least: 0.85}\n"
K = "num_speculative_tokens"
# name: (what is replaced, by what, words, the text that is marked)
CHANGED_SPECS = {
    "a threshold": ("at_most: 1.25}", "at_most: 1.5}", "criterion first-token, at_most was 1.25, is 1.5", "1.5"),
    "a criterion more": ("  confidence:", f"    - {MORE}\n  confidence:", "criterion more is new", MORE),
    "a criterion less": (LESS, "", "criterion capacity is gone", "criteria:"),
    "confidence": ("confidence: 0.95", "confidence: 0.9", "/protocol/confidence was 0.95, is 0.9", "0.9"),
    "the pair": (f"{K}: 3", f"{K}: 4", f"/pair/speculative/{K} was 3, is 4", "4"),
}  # fmt: skip


@pytest.mark.parametrize("name", CHANGED_SPECS)
def test_what_was_changed_in_a_spec_with_results_is_named(repository: Repository, name: str) -> None:
    old, new, words, marked = CHANGED_SPECS[name]
    repository.spec.write_text(repository.spec.read_text().replace(old, new, 1))
    found = [row for row in repository.found() if row["code"] == "SL614"]
    assert [row["message"] for row in found] == [f"the spec was changed after this result: {words}"] * 2
    places = {(place["line"], place["column"]) for row in found for place in row["related"]}
    lines = repository.spec.read_text().splitlines()
    assert {lines[line - 1][column - 1 :].rstrip("}") for line, column in places} == {marked.rstrip("}")}


def test_without_the_base_the_section_is_named_and_how_to_learn_more(repository: Repository) -> None:
    repository.spec.write_text(repository.spec.read_text().replace("at_most: 1.25}", "at_most: 1.5}"))
    repository.commit()
    done = repository.check("--format", "json", base="HEAD~1")
    assert "criterion first-token" in done.stdout
    repository.branch("later", "change")
    (repository.top / "README.md").write_text("about\n")
    repository.commit()
    row = next(row for row in repository.found(base="change") if row["code"] == "SL614")
    assert (
        row["message"].endswith("after this result: criteria") and "`--base REF`, a branch that has it as it was" in row["help"]
    )


def test_entries_of_every_merge_base_count(repository: Repository) -> None:
    """Two branches that merged each other have two merge bases, each with a result of its own."""
    repository.add_result("rA")
    toml = repository.top / "speclint.toml"
    toml.write_text(f"{toml.read_text()}[approvals]\nmin = 1\n")
    repository.commit()
    a = repository.head()
    repository.branch("other", "main")
    b_spec = SPEC.replace("name: qwen3-k3", "name: b")
    entry = repository.signed("approval", approval(document.parse(b_spec.encode(), "").data), name="b")
    (repository.top / "b.spec.yaml").write_bytes(edit.add_entry(b_spec.encode(), "approvals", entry))
    repository.commit()
    b = repository.head()
    repository.git("merge", "-q", a, "-m", "other takes change")
    repository.git("checkout", "-q", "change")
    repository.git("merge", "-q", b, "-m", "change takes other")
    assert len(repository.git("merge-base", "--all", "other", "change").split()) == 2
    repository.git("rm", "-q", "b.spec.yaml")
    repository.change("results", lambda rows: rows.pop())
    toml.write_text(toml.read_text().replace("min = 1", "min = 0"))
    repository.commit()
    said = " ".join(row["message"] for row in repository.found(base="other"))
    assert "policy changes together with approvals or results: approvals.min: " in said
    assert "b.spec.yaml" in said and "result rA of" in said


# --- signatures and time ---


def test_signed_anew_is_told_and_leaves_digest_and_chain(repository: Repository) -> None:
    make_key(repository.keys, "alice-ecdsa", "ecdsa") if not (repository.keys / "alice-ecdsa").exists() else None
    options = 'namespaces="pair-spec-result"'
    repository.git("checkout", "-q", "main")
    line = f"alice@example.com {options} {public(repository.keys / 'alice-ecdsa')}"
    repository.trust(repository.line("alice"), repository.line("bob"), line)
    repository.commit("alice has a second key")
    repository.branch("again")
    repository.change("results", lambda rows: rows.__setitem__(0, repository.signed("result", _unsigned(rows[0]), "alice-ecdsa")))
    repository.commit()
    row = only(repository.found())
    assert (row["code"], row["severity"], row["path"]) == ("SL606", "warning", "/results/0/signature")
    repository.change("results", lambda rows: rows[0].update(signature=rows[1]["signature"]))
    assert {"SL602", "SL606"} == set(repository.codes())


OLD = 'namespaces="pair-spec-approval,pair-spec-result",valid-before="20261130113000"'


def test_a_key_that_expired_serves_old_entries_and_no_new_ones(repository: Repository) -> None:
    repository.git("checkout", "-q", "main")
    repository.trust(repository.line("alice", OLD), repository.line("bob"))  # r1 and r2 ended before, at 11:00
    repository.commit("alice's key has expired")
    repository.branch("late")
    repository.add_result("r3", "bob")
    repository.commit()
    assert repository.found() == []
    repository.add_result("r4")  # dated 11:00 too
    repository.commit()
    row = only(repository.found())
    assert row["code"] == "SL603" and row["path"] == "/results/3/signature"
    assert "expired 2026-11-30 11:30:00" in row["message"] and "is the signer's word" in row["message"]


def test_a_new_entry_must_hold_at_its_own_time_too(repository: Repository) -> None:
    repository.git("checkout", "-q", "main")
    repository.trust(
        repository.line("alice"), repository.line("bob", 'namespaces="pair-spec-result",valid-after="20261130113000"')
    )
    repository.commit("bob may sign from 11:30")
    repository.branch("early")
    repository.add_result("r3", "bob")
    repository.commit()
    assert "is valid from 2026-11-30 11:30:00" in only(repository.found())["message"]


def test_a_revoked_key_serves_nothing(repository: Repository) -> None:
    repository.git("checkout", "-q", "main")
    (repository.top / "revoked").write_text(f"{public(repository.keys / 'alice')}\n")
    toml = repository.top / "speclint.toml"
    toml.write_text(toml.read_text() + 'revoked = "revoked"\n')
    repository.commit("alice's key is lost")
    repository.git("checkout", "-q", "change")
    (repository.top / "README.md").write_text("about\n")
    repository.commit()
    found = repository.found()
    assert {row["code"] for row in found} == {"SL603"} and len(found) == 3
    assert all("is revoked (main:revoked)" in row["message"] for row in found)


def test_a_result_in_another_spec_is_refused(repository: Repository) -> None:
    repository.spec.write_text(repository.spec.read_text().replace("num_speculative_tokens: 3", "num_speculative_tokens: 5"))
    other = repository.top / "other.spec.yaml"
    repository.spec.rename(other)
    repository.git("checkout", "-q", "--", "pairs")
    other.write_text(other.read_text().replace("requests: 64", "requests: 80"))
    repository.commit()
    found = [row["code"] for row in repository.found() if row["file"].endswith("other.spec.yaml")]
    assert found.count("SL604") == 2
    other.write_text(other.read_text().replace("name: qwen3-k3", "name: another"))
    assert {"SL602", "SL604"} <= {row["code"] for row in repository.found() if row["file"].endswith("other.spec.yaml")}


def test_the_same_run_twice(repository: Repository) -> None:
    repository.change("results", lambda rows: rows.append(copy.deepcopy(rows[1])))
    repository.commit()
    assert "SL605" in repository.codes()


def test_a_renamed_spec_is_another(repository: Repository) -> None:
    repository.spec.write_text(repository.spec.read_text().replace("name: qwen3-k3", "name: qwen3"))
    repository.commit()
    found = repository.found()
    assert {"SL602", "SL614"} <= {row["code"] for row in found}
    assert any(row["message"].endswith('changed after this result: /name was "qwen3-k3", is "qwen3"') for row in found)


def test_keys_that_were_not_signed(repository: Repository) -> None:
    repository.change("results", lambda rows: rows[1].update(reviewed_by="carol"))
    repository.commit()
    assert {"SL101", "SL606"} <= set(repository.codes())


def test_a_suppression_that_nobody_approved(repository: Repository) -> None:
    """The comment is outside the digest; an approver signs the suppressions that are in force."""
    text, comment = repository.spec.read_text(), "dtype: bfloat16}  # speclint: ignore[SL204] locked later"
    repository.spec.write_text(text[: text.index("\napprovals:")].replace("dtype: bfloat16}", comment))
    repository.add_approval("a1")
    assert "approved without ignore[SL204] at /pair/target/model" in repository.check().stdout
    with pytest.raises(Refused, match=r"a1 was given without ignore\[SL204\] at /pair/target/model"):
        approvals(repository.spec, data_of(repository.spec), None)
    repository.add_approval("a2", "bob", suppressions=[{"code": "SL204", "path": "/pair/target/model", "until": None}])
    assert "approved without" not in repository.check().stdout
    assert approvals(repository.spec, data_of(repository.spec), None) == [entry_digest(data_of(repository.spec)["approvals"][1])]
