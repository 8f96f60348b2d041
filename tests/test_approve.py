"""Approving with real OpenSSH keys."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from trust_sample import ALICE, BOB, NAMESPACES, SPEC, data_of, make_key, public, result, write_trust

from speclint.canonical import entry_digest, section_digests, spec_digest
from speclint.lint import check
from speclint.signature import NAMESPACES as NAMESPACES_OF
from speclint.signature import load_trust, statement, verify_entry
from specrun.append import append_entry
from specrun.approve import approve, describe, in_words
from specrun.errors import EnvironmentTrouble, NotWritten, Refused
from specrun.prepare import checked
from specrun.sign import fingerprint, principal_of, sign


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    """A spec whose allowed signers are Alice (key `alice`) and Bob (key `bob`)."""
    write_trust(tmp_path, alice=make_key(tmp_path, "alice"), bob=make_key(tmp_path, "bob"))
    path = tmp_path / "x.spec.yaml"
    path.write_text(SPEC)
    return path


def key(spec: Path, name: str = "alice") -> Path:
    return spec.parent / name


def test_an_approval_is_signed_appended_and_holds(spec: Path) -> None:
    shown: list[str] = []
    entry = approve(spec, key(spec), show=shown.append)
    data = data_of(spec)
    assert spec.read_text().startswith(SPEC)
    assert data["approvals"] == [entry]
    assert (entry["approver"], entry["spec"], entry["sections"]) == (ALICE, spec_digest(data), section_digests(data))
    assert (entry["suppressions"], entry["results_known"]) == ([], [])
    assert verify_entry("approval", data["name"], entry, load_trust(spec)).ok
    assert verify_entry("result", data["name"], entry, load_trust(spec)).code == "SL602"
    for words in (
        data["name"],
        spec_digest(data),
        fingerprint(key(spec)),
        ALICE,
        "faster-alone: request_duration_p50, pair / target",
    ):
        assert words in shown[0]


def test_a_cost_model_is_shown_as_one_before_it_is_approved(spec: Path) -> None:
    entry = approve(spec, key(spec), show=len)
    data = data_of(spec)
    invented = {**data, "protocol": {**data["protocol"], "kind": "cost_model"}}
    assert any("A cost model, not a measurement of a pair" in line for line in describe(invented, entry, {}))
    assert not any("cost model" in line for line in describe(data, entry, {}))


def test_a_second_approver_is_added_below(spec: Path) -> None:
    first, second = approve(spec, key(spec), show=len), approve(spec, key(spec, "bob"), show=len)
    assert [entry["approver"] for entry in data_of(spec)["approvals"]] == [ALICE, BOB]
    assert first["id"] != second["id"]
    assert first["spec"] == second["spec"]


def test_results_known_are_named(spec: Path) -> None:
    approval = approve(spec, key(spec), show=len)
    late = {"started": "2999-01-01T00:00:00Z", "ended": "2999-01-01T01:00:00Z"}
    known = result(data_of(spec), approvals=[entry_digest(approval)], **late)
    told = statement("result", data_of(spec)["name"], known["spec"], known)
    known["signature"] = sign(told, key(spec), NAMESPACES_OF["result"])
    append_entry(spec, "results", known)
    assert approve(spec, key(spec, "bob"), show=len)["results_known"] == [entry_digest(known)]
    assert list(data_of(spec))[-2:] == ["approvals", "results"]
    assert data_of(spec)["results"] == [known]


def test_suppressions_in_force_are_part_of_it(spec: Path) -> None:
    info = next(item for item in check(spec) if item.code == "SL204")
    lines = SPEC.split("\n")
    lines[info.line - 1] += "  # speclint: ignore[SL204] the lock comes later (until 2999-01-31)"
    spec.write_text("\n".join(lines))
    shown: list[str] = []
    entry = approve(spec, key(spec), show=shown.append)
    assert entry["suppressions"] == [{"code": "SL204", "path": info.path, "until": "2999-01-31"}]
    assert "ignored       SL204 at /pair/target/model until 2999-01-31: the lock comes later" in shown[0].splitlines()


def test_a_suppression_is_part_of_what_is_signed(spec: Path) -> None:
    """Taken out of the approval, extended or moved, the approval no longer holds."""
    spec.write_text(SPEC.replace("dtype: bfloat16}", "dtype: bfloat16}  # speclint: ignore[SL204] locked later"))
    entry = approve(spec, key(spec), show=len)
    name, trust = data_of(spec)["name"], load_trust(spec)
    (row,) = entry["suppressions"]
    assert row == {"code": "SL204", "path": "/pair/target/model", "until": None}
    assert verify_entry("approval", name, entry, trust).ok
    for rows in ([], [row | {"code": "SL501"}], [row | {"path": ""}], [row | {"until": "2999-01-31"}], [row, row]):
        assert verify_entry("approval", name, entry | {"suppressions": rows}, trust).code == "SL602"


def test_a_suppression_that_has_lapsed_is_not_approved_as_if_it_were_one(spec: Path) -> None:
    spec.write_text(SPEC.replace("dtype: bfloat16}", "dtype: bfloat16}  # speclint: ignore[SL204] for now (until 2020-01-31)"))
    with pytest.raises(Refused, match="SL903 at line 7: the suppression of SL204 ended on 2020-01-31"):
        approve(spec, key(spec), show=len)


def test_what_show_raises_stops_it_before_anything_is_signed(spec: Path) -> None:
    def no(text: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        approve(spec, key(spec), show=no)
    assert spec.read_text() == SPEC


def test_a_spec_with_errors_is_refused(spec: Path) -> None:
    spec.write_text(SPEC.replace("at_most: 0.9}", "at_most: fast}"))
    with pytest.raises(Refused, match=r"has errors, so it cannot be approved: SL10\d at line 33") as caught:
        approve(spec, key(spec), show=len)
    assert "speclint check" in caught.value.hint


@pytest.mark.parametrize("comment", ["", "  # speclint: ignore[SL105] no"])
def test_a_spec_without_a_digest_is_refused_whatever_is_suppressed(spec: Path, comment: str) -> None:
    args = "engine_args: {max_model_len: 4096, seed: 9007199254740993}"
    spec.write_text(SPEC.replace("engine_args: {max_model_len: 4096, seed: 0}", args + comment))
    with pytest.raises(Refused, match="9007199254740993 exceeds safe integer domain"):
        approve(spec, key(spec), show=len)
    with pytest.raises(Refused, match="9007199254740993 exceeds safe integer domain"):
        checked(spec)


@pytest.mark.parametrize(
    ("key_and_value", "wrong", "words"),
    [
        ("requests: 64", "requests: [64]", "load.requests has 1 for 2"),
        ("warmup: 16", "warmup: [8, 16, 32]", "design.warmup has 3 for 2"),
    ],
)
def test_a_level_without_a_number_is_refused_whatever_is_suppressed(
    spec: Path, key_and_value: str, wrong: str, words: str
) -> None:
    suppressed = "".join(
        "  # speclint: ignore[SL509] no\n" + line if key_and_value in line else line for line in SPEC.splitlines(keepends=True)
    )
    spec.write_text(suppressed.replace(key_and_value, wrong))
    for refused in (lambda: approve(spec, key(spec), show=len), lambda: checked(spec)):
        with pytest.raises(Refused, match=f"{words} levels of concurrency") as caught:
            refused()
        assert "one number for each level" in caught.value.hint


def test_local_models_need_a_lock(spec: Path) -> None:
    local = SPEC.replace(
        "Qwen/Qwen3-8B, revision: b968826d9c46dd6066d109eabc6255188de91218", './target, revision: "sha256:%s"' % ("0" * 64)
    )
    spec.write_text(local)
    with pytest.raises(Refused, match="SL20"):
        approve(spec, key(spec), show=len)
    assert spec.read_text() == local


def test_a_key_that_is_not_listed_is_refused_with_the_line_to_add(spec: Path) -> None:
    stranger = make_key(spec.parent, "carol")
    with pytest.raises(Refused, match="not among the allowed signers") as caught:
        approve(spec, stranger, show=len)
    assert f'namespaces="{NAMESPACES}" {public(stranger)}' in caught.value.hint
    with pytest.raises(Refused, match=r"may not approve with this key.*is not listed for alice") as caught:
        approve(spec, stranger, approver=ALICE, show=len)
    assert spec.read_text() == SPEC


def test_without_speclint_toml_the_hint_says_what_to_write(tmp_path: Path) -> None:
    (tmp_path / "x.spec.yaml").write_text(SPEC)
    (tmp_path / ".git").mkdir()
    with pytest.raises(Refused) as caught:
        approve(tmp_path / "x.spec.yaml", make_key(tmp_path, "k"), show=len)
    assert 'allowed_signers = "allowed_signers"' in caught.value.hint


def test_a_spec_that_changes_while_it_is_signed_is_not_approved(spec: Path) -> None:
    changed = SPEC.replace("requests: 64", "requests: 128")
    with pytest.raises(NotWritten, match="is for spec"):
        approve(spec, key(spec), show=lambda text: spec.write_text(changed))
    assert spec.read_text() == changed


def test_a_key_for_results_only_may_not_approve(spec: Path) -> None:
    allowed = spec.parent / "allowed_signers"
    allowed.write_text(f'{ALICE} namespaces="pair-spec-result" {public(key(spec))}\n')
    with pytest.raises(Refused, match="not among the allowed signers"):
        approve(spec, key(spec), show=len)
    with pytest.raises(Refused, match='allows namespaces "pair-spec-result"'):
        approve(spec, key(spec), approver=ALICE, show=len)


@pytest.mark.parametrize(
    ("criterion", "words"),
    [
        ({"id": "a", "metric": "ttft_p50", "compare": "ratio", "workload": "all", "concurrency": 4, "at_most": 1.25},
         "a: ttft_p50, pair / target, of all at concurrency 4, at most 1.25"),
        ({"id": "b", "metric": "acceptance_rate", "at_least": 0.4}, "b: acceptance_rate, at least 0.4"),
        ({"id": "c", "metric": "ttft_p50", "at_most": 0.4}, "c: ttft_p50, at most 0.4 s"),
    ],
)  # fmt: skip
def test_a_criterion_in_words(criterion: dict[str, object], words: str) -> None:
    assert in_words(criterion) == words


# --- keys ---


def test_a_missing_key_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentTrouble) as caught:
        sign(b"x", tmp_path / "gone", "n")
    assert "ssh-keygen -t ed25519" in caught.value.hint


def test_a_missing_ssh_keygen_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = make_key(tmp_path, "k")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EnvironmentTrouble, match="ssh-keygen is not installed"):
        sign(b"x", made, "n")


def test_a_file_that_is_no_key(tmp_path: Path) -> None:
    (tmp_path / "k").write_text("hello\n")
    (tmp_path / "k").chmod(0o600)
    with pytest.raises(EnvironmentTrouble, match="ssh-keygen:"):
        sign(b"x", tmp_path / "k", "n")
    with pytest.raises(EnvironmentTrouble) as caught:
        fingerprint(tmp_path / "k")
    assert "takes an OpenSSH key" in caught.value.hint


def test_a_key_that_others_can_read_is_refused_with_the_way_out(tmp_path: Path) -> None:
    made = make_key(tmp_path, "k")
    made.chmod(0o644)
    with pytest.raises(EnvironmentTrouble) as caught:
        sign(b"x", made, "n")
    assert "chmod 600" in caught.value.hint


@pytest.fixture
def agent(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    told = subprocess.run(["ssh-agent", "-s"], capture_output=True, text=True, check=True).stdout
    values = dict(part.split("=", 1) for line in told.splitlines() for part in line.split(";") if "=" in part)
    monkeypatch.setenv("SSH_AUTH_SOCK", values["SSH_AUTH_SOCK"])
    monkeypatch.setenv("SSH_AGENT_PID", values["SSH_AGENT_PID"])
    yield
    subprocess.run(["ssh-agent", "-k"], capture_output=True, env=dict(os.environ), check=True)


def test_a_key_in_the_agent_approves_by_its_public_half(spec: Path, agent: None) -> None:
    subprocess.run(["ssh-add", "-q", str(key(spec))], check=True, capture_output=True)
    key(spec).unlink()
    entry = approve(spec, spec.parent / "alice.pub", show=len)
    assert entry["approver"] == ALICE
    assert verify_entry("approval", data_of(spec)["name"], entry, load_trust(spec)).ok


def test_a_public_half_without_agent_says_so(spec: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    key(spec).unlink()
    with pytest.raises(EnvironmentTrouble) as caught:
        approve(spec, spec.parent / "alice.pub", show=len)
    assert "agent" in caught.value.hint


def test_principal_of_takes_a_name_never_a_pattern(tmp_path: Path) -> None:
    write_trust(tmp_path)
    made = make_key(tmp_path, "k")
    allowed, found = tmp_path / "allowed_signers", []
    for principals in ("*@example.com", "*@example.com,k@example.com", "!x,a b"):
        allowed.write_text(
            f"other@example.com {public(make_key(tmp_path, 'o' + str(len(found))))}\n{principals} {public(made)}\n"
        )
        found.append(principal_of(made, load_trust(tmp_path)))
    assert found == [None, "k@example.com", None]
    allowed.write_text(f"k@example.com cert-authority {public(made)}\n")
    assert principal_of(made, load_trust(tmp_path)) is None
