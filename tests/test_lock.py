"""`speclint lock`, end to end on real tiny checkpoints: what it writes, what it refuses, what it leaves alone."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from tiny_checkpoints import PROSE, write_model, write_safetensors

from speclint import document, edit
from speclint.data import spec_schema
from speclint.lock.command import build_lock, changes, lock_file
from speclint.lock.errors import LockError

SPEC = """\
schema: pair-spec/v1   # kept
name: tiny
pair:
  engine: {name: vllm, version: "0.32.0"}
  target: {model: target, dtype: float32}
  speculative: {method: draft_model, model: draft, num_speculative_tokens: 3}
  vocabulary: {mode: shared}
  placement: {device: cpu}
protocol:
  kind: measurement
  request: {endpoint: completions, expect: {finish_reason: length}}
  sampling: {temperature: 0.0, top_p: 1.0, top_k: 0, seed: 0}
  workloads:
    - id: repetitive
      profile: short_repetitive
      prompts: {generator: repetitive, seed: 7}
      output: {tokens: 32, spread: 0.5, stop: length}
    - id: varied
      profile: varied_long
      prompts: {generator: varied, seed: 7}
      output: {tokens: 32, spread: 0.5, stop: length}
  load: {concurrency: [1, 4], requests: 32, prefix_caching: false}
  design: {blocks: 4, servers: restart, prompts: fresh, warmup: 4, controls: []}
  criteria:
    - {id: faster, metric: request_duration_p50, compare: ratio, workload: all, concurrency: all, at_most: 0.9}
  confidence: 0.95
"""
UNPINNED = 1
"""Status where nothing but the pins is left to do: `SPEC` states no revisions."""


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    write_model(tmp_path / "target")
    write_model(tmp_path / "draft", PROSE, size=280)
    path = tmp_path / "tiny.spec.yaml"
    path.write_text(SPEC)
    return path


def data(path: Path) -> dict[str, Any]:
    read = document.read(path)
    assert not read.problems
    return dict(read.data)


def lock(path: Path, *, check: bool = False, update: bool = False, upgrade: bool = False) -> tuple[int, str]:
    status, lines = lock_file(path, check=check, update=update, upgrade=upgrade)
    return status, "\n".join(lines)


def edit_json(path: Path, **values: Any) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


def test_the_lock_is_added_below_every_old_byte_and_fits_the_schema(spec: Path) -> None:
    status, told = lock(spec)
    assert (status, spec.read_text()[: len(SPEC)]) == (UNPINNED, SPEC)
    assert "lock written" in told
    assert not list(Draft202012Validator(spec_schema()).iter_errors(data(spec)))
    assert lock(spec, check=True)[0] == 1, "the revisions are still missing"


def test_it_states_what_rules_need(spec: Path) -> None:
    lock(spec)
    locked = data(spec)["lock"]
    assert locked["target"]["config"] | {"vocab_size": 300, "head_dim": 4, "dtype": "bfloat16"} == locked["target"]["config"]
    assert locked["target"]["weights"] == {
        "format": "safetensors", "bytes": 4816, "dtypes": {"BF16": 4816}, "embedding_rows": 300,
    }  # fmt: skip
    assert locked["target"]["tokenizer"]["lengths"] == {"base": 300, "with_added": 300, "config": 300}
    assert locked["target"]["tokenizer"]["stop"] == [[1, "</s>"]]
    assert locked["pair"]["ids_differ"] == 42
    assert list(locked["workloads"]) == ["repetitive", "varied"]
    assert len(set(locked["workloads"]["varied"]["blocks"])) == 4


def test_pasting_the_printed_revisions_makes_check_pass(spec: Path) -> None:
    told = lock(spec)[1]
    for line in told.splitlines():
        if ".revision is missing" in line:
            model = "target" if line.startswith("pair.target") else "draft"
            digest = line.split('"')[1]
            spec.write_text(spec.read_text().replace(f"model: {model},", f'model: {model}, revision: "{digest}",'))
    assert lock(spec, check=True) == (0, f"{spec}: the lock is up to date")


def test_a_wrong_revision_is_named_with_the_right_one(spec: Path) -> None:
    spec.write_text(SPEC.replace("model: draft,", f'model: draft, revision: "sha256:{"0" * 64}",'))
    told = lock(spec)[1]
    actual = data(spec)["lock"]["draft"]["revision"]
    assert f'pair.speculative.revision says sha256:{"0" * 64}, but draft is another; write  revision: "{actual}"' in told


def test_check_writes_nothing_and_says_what_changed_and_why(spec: Path) -> None:
    lock(spec)
    before = spec.read_bytes()
    edit_json(spec.parent / "target" / "config.json", max_position_embeddings=1024)
    status, told = lock(spec, check=True)
    assert (status, spec.read_bytes()) == (1, before)
    assert "target.config.max_position_embeddings: 512 -> 1024 (whether target and draft fit" in told
    assert "draft.config" not in told


def test_only_the_locks_own_lines_are_rewritten(spec: Path) -> None:
    lock(spec)
    spec.write_text(spec.read_text() + "# below\n")
    edit_json(spec.parent / "draft" / "config.json", vocab_size=288)
    assert lock(spec)[0] == UNPINNED
    assert spec.read_text().startswith(SPEC) and spec.read_text().endswith("# below\n")
    assert data(spec)["lock"]["draft"]["tokenizer"]["lengths"]["config"] == 288


def test_an_up_to_date_lock_is_not_written_again(spec: Path) -> None:
    lock(spec)
    spec.write_text(spec.read_text().replace("  format: 2", "  format: 2   # a reader's note"))
    before = spec.read_bytes()
    assert "up to date" in lock(spec, update=True)[1]
    assert spec.read_bytes() == before


def test_an_approved_lock_changes_only_when_asked(spec: Path) -> None:
    lock(spec)
    spec.write_text(spec.read_text() + 'approvals:\n  - {id: "a1"}\n')
    edit_json(spec.parent / "target" / "config.json", max_position_embeddings=1024)
    before = spec.read_bytes()
    status, told = lock(spec)
    assert (status, spec.read_bytes()) == (1, before)
    assert "--update" in told
    status, told = lock(spec, update=True)
    assert status == UNPINNED and "no longer hold: a1" in told
    assert data(spec)["lock"]["target"]["config"]["max_position_embeddings"] == 1024
    assert data(spec)["approvals"] == [{"id": "a1"}]


def test_a_spec_with_results_is_frozen(spec: Path) -> None:
    lock(spec)
    spec.write_text(spec.read_text() + 'results:\n  - {id: "r1"}\n')
    assert "frozen" not in lock(spec, update=True)[1], "nothing to change is no offence"
    edit_json(spec.parent / "target" / "config.json", max_position_embeddings=1024)
    before = spec.read_bytes()
    status, told = lock(spec, update=True)
    assert (status, spec.read_bytes()) == (1, before)
    assert "specrun fork" in told


def older(spec: Path) -> None:
    """Give the spec the lock that an older speclint would have written."""
    now = data(spec)
    spec.write_bytes(edit.replace_section(spec.read_bytes(), "lock", build_lock(now | {"lock": {"format": 1}}, spec.parent)))


def test_a_lock_of_a_later_format_is_left_alone(spec: Path) -> None:
    lock(spec)
    spec.write_text(spec.read_text().replace("  format: 2\n", "  format: 3\n"))
    before = spec.read_bytes()
    for options in ({}, {"update": True}, {"upgrade": True}, {"check": True}):
        status, told = lock(spec, **options)
        assert (status, spec.read_bytes()) == (2, before)
        assert "format 3" in told


def test_an_older_format_stays_until_it_is_upgraded(spec: Path) -> None:
    older(spec)
    before = spec.read_bytes()
    locked = data(spec)["lock"]
    assert locked["format"] == 1 and "texts" not in locked["pair"] and "attention" not in locked["target"]["config"]
    assert "tekken.json" not in locked["draft"]["files"]
    assert not list(Draft202012Validator(spec_schema()).iter_errors(data(spec)))
    status, told = lock(spec, update=True)
    assert (status, spec.read_bytes()) == (UNPINNED, before)
    assert "up to date" in told and "--upgrade" in told
    edit_json(spec.parent / "target" / "config.json", max_position_embeddings=1024)
    assert lock(spec)[0] == UNPINNED and data(spec)["lock"]["format"] == 1, "a change does not bring the new layout along"


def test_upgrade_says_what_it_adds_and_that_approvals_end(spec: Path) -> None:
    older(spec)
    spec.write_text(spec.read_text() + 'approvals:\n  - {id: "a1"}\n')
    before = spec.read_bytes()
    status, told = lock(spec, check=True, upgrade=True)
    assert (status, spec.read_bytes()) == (1, before) and "format: 1 -> 2 (another layout" in told
    status, told = lock(spec, upgrade=True)
    assert status == UNPINNED and "pair.texts.compared: nothing -> 48" in told and "no longer hold: a1" in told
    assert data(spec)["lock"]["format"] == 2
    spec.write_text(spec.read_text().replace("  format: 2\n", "  format: 1\n") + 'results:\n  - {id: "r1"}\n')
    assert lock(spec, upgrade=True)[0] == 1, "a spec with results is frozen"


def test_changed_prompts_are_drift(spec: Path) -> None:
    lock(spec)
    spec.write_text(spec.read_text().replace("{generator: varied, seed: 7}", "{generator: varied, seed: 8}"))
    status, told = lock(spec, check=True)
    assert status == 1
    assert "workloads.varied.blocks" in told and "other prompts would be measured" in told
    assert "workloads.repetitive" not in told


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("model: target,", "model: ./nowhere,", "./nowhere does not exist"),
        ("prompts: {generator: varied, seed: 7}", 'prompts: {file: no.jsonl, sha256: "%s"}' % ("0" * 64), "no.jsonl"),
    ],
)
def test_what_cannot_be_locked_is_said_and_the_file_kept(spec: Path, old: str, new: str, said: str) -> None:
    spec.write_text(SPEC.replace(old, new))
    before = spec.read_bytes()
    status, told = lock(spec)
    assert (status, spec.read_bytes()) == (2, before)
    assert said in told


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("schema: pair-spec/v1", "schema: &a pair-spec/v1", "SL003"),
        ("name: tiny\n", "name: [tiny]\n", "tiny.spec.yaml:2:7"),
        ("  load: {concurrency: [1, 4], requests: 32, prefix_caching: false}\n", "", "add `load`, such as `load: {"),
        ("  engine: {", "  engine: {{", "SL001"),
    ],
)
def test_an_unfinished_spec_gets_the_findings_of_check(spec: Path, old: str, new: str, said: str) -> None:
    spec.write_text(SPEC.replace(old, new))
    before = spec.read_bytes()
    for check in (False, True):
        status, told = lock(spec, check=check)
        assert (status, spec.read_bytes()) == (1, before)
        assert said in told and "no lock was made" in told and "is not of type" not in told


def test_what_tools_wrote_does_not_stand_in_the_way_of_a_lock(spec: Path) -> None:
    spec.write_text(SPEC + "lock: {format: 2, target: 7}\n")
    assert lock(spec)[0] == UNPINNED
    assert data(spec)["lock"]["target"]["config"]["vocab_size"] == 300


def test_a_file_changed_meanwhile_is_not_written(spec: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(spec_data: dict[str, Any], folder: Path) -> dict[str, Any]:
        spec.write_text(SPEC + "# someone else\n")
        return build_lock(spec_data, folder)

    monkeypatch.setattr("speclint.lock.command.build_lock", slow)
    status, told = lock(spec)
    assert status == 2 and "changed while it was being locked" in told
    assert spec.read_text() == SPEC + "# someone else\n"


def test_a_missing_file_is_trouble_not_a_traceback(tmp_path: Path) -> None:
    assert lock(tmp_path / "none.spec.yaml")[0] == 2


def test_ngram_has_no_draft(spec: Path) -> None:
    spec.write_text(SPEC.replace("draft_model, model: draft,", "ngram,").replace("mode: shared", "mode: none"))
    assert lock(spec)[0] == UNPINNED
    assert not {"draft", "pair"} & data(spec)["lock"].keys()


def test_sections_that_come_and_go_are_one_line_each(spec: Path) -> None:
    lock(spec)
    with_draft = spec.read_text()
    without = with_draft.replace("draft_model, model: draft,", "ngram,").replace("mode: shared", "mode: none")
    spec.write_text(without)
    told = lock(spec, check=True)[1].splitlines()
    assert [line.partition(":")[0] for line in told if "facts -> nothing" in line] == ["draft", "pair"]
    assert not [line for line in told if line.startswith(("draft.", "pair.ids"))]
    lock(spec)
    spec.write_text(spec.read_text().replace("ngram,", "draft_model, model: draft,").replace("mode: none", "mode: shared"))
    assert "draft: nothing -> " in lock(spec, check=True)[1]


def test_a_head_without_tokenizer_has_no_pair(spec: Path) -> None:
    head = spec.parent / "draft"
    (head / "tokenizer.json").unlink()
    write_safetensors(head / "model.safetensors", {"fc.weight": ("BF16", (8, 24)), "d2t": ("I64", (100,))})
    edit_json(head / "config.json", draft_vocab_size=100)
    spec.write_text(SPEC.replace("draft_model,", "eagle3,"))
    assert lock(spec)[0] == UNPINNED
    locked = data(spec)["lock"]
    assert locked["draft"]["tokenizer"] == {"kind": "none"} and "pair" not in locked
    assert locked["draft"]["config"]["draft_vocab_size"] == 100
    assert (locked["draft"]["weights"]["fused_width"], locked["draft"]["weights"]["draft_map_rows"]) == (24, 100)


def test_another_tokenizer_for_the_target_is_the_one_compared(spec: Path) -> None:
    spec.write_text(SPEC.replace("dtype: float32", "dtype: float32, tokenizer: {model: draft}"))
    lock(spec)
    locked = data(spec)["lock"]
    assert locked["pair"]["ids_differ"] == 0
    assert locked["target"]["tokenizer"]["model"] == "draft"
    assert locked["target"]["tokenizer"]["revision"] == locked["draft"]["revision"]


def test_unread_headers_never_displace_what_the_lock_knows(spec: Path) -> None:
    new = build_lock(data(spec), spec.parent)
    for role in ("target", "draft"):
        new[role]["revision"] = "1" * 40  # such gaps are those of a hub cache
    new["draft"]["config"]["base_model"] = "org/base"
    blind = json.loads(json.dumps(new))
    blind["target"]["weights"] = {"format": "safetensors", "headers": "unread"}
    del blind["draft"]["config"]["base_model"]
    assert changes(new, blind) == []
    assert [change.path for change in changes(None, blind) if "weights" in change.path][:2] == [
        "target.weights.format",
        "target.weights.headers",
    ]
    thin = {"target": {"revision": "1" * 40}}
    assert any(change.path == "target.weights.headers" for change in changes(thin, blind)), "nothing is known of it"
    blind["target"]["revision"] = "0" * 40
    assert any(change.path.startswith("target.weights") for change in changes(new, blind))


def test_locking_local_models_needs_no_torch_and_no_transformers(spec: Path) -> None:
    code = (
        "import sys, pathlib; from speclint.lock.command import lock_file;"
        f"print(lock_file(pathlib.Path({str(spec)!r}), check=False, update=False)[0],"
        "{'torch', 'transformers', 'huggingface_hub', 'specrun'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == f"{UNPINNED} set()\n"


def test_files_that_engine_arguments_name_are_pinned(spec: Path) -> None:
    found = data(spec)
    found["pair"]["engine_args"] = {"chat_template": "chat.jinja", "max_model_len": 64}
    (spec.parent / "chat.jinja").write_bytes(b"{{ text }}")
    locked = build_lock(found, spec.parent)["files"]
    assert locked == {"chat.jinja": "sha256:511c2f57780cbb1b4ac32df2cb8eca2a4e17895cf35d00862d8ad8998b941491"}
    (spec.parent / "chat.jinja").write_bytes(b"{{ other }}")
    assert build_lock(found, spec.parent)["files"] != locked
    (spec.parent / "chat.jinja").unlink()
    with pytest.raises(LockError, match=r"chat\.jinja"):
        build_lock(found, spec.parent)
