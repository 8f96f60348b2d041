"""The command line: exit statuses, formats, discovery, and every subcommand once."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from spec_cases import dumped, good, overlaid

from speclint import __main__, checking
from speclint import cli as commands
from speclint.rules import rules


@pytest.fixture
def bad(tmp_path: Path) -> Path:
    path = tmp_path / "bad.spec.yaml"
    path.write_bytes(dumped(overlaid({"/protocol/design/blocks": 5})))
    return path


@pytest.fixture
def clean(tmp_path: Path) -> Path:
    path = tmp_path / "good.spec.yaml"
    path.write_bytes(dumped(good()))
    return path


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(commands.cli, [str(argument) for argument in arguments])


def test_exit_statuses(clean: Path, bad: Path, tmp_path: Path) -> None:
    assert run("check", clean).exit_code == 0  # SL601 is info
    assert run("check", bad).exit_code == 1
    assert run("check", tmp_path / "none.spec.yaml").exit_code == 2
    assert run("check", bad, tmp_path / "none.spec.yaml").exit_code == 2
    assert run("check").exit_code == 2
    assert run("check", clean, "--select", "XX1").exit_code == 2


def test_strict_makes_warnings_fail(tmp_path: Path) -> None:
    path = tmp_path / "warn.spec.yaml"
    path.write_bytes(dumped(overlaid({"/pair/engine_args/enforce_eager": True})))
    assert run(path).exit_code == 0
    assert run(path, "--strict").exit_code == 1


def test_a_file_alone_is_checked(bad: Path) -> None:
    result = run(bad)
    assert result.exit_code == 1 and "error[SL518]" in result.output
    assert "1 file checked: 1 error, 1 info" in result.output


def test_json_is_one_document(bad: Path, clean: Path) -> None:
    found = json.loads(run("check", "--format", "json", bad, clean).stdout)
    assert [Path(row["file"]).name for row in found["files"]] == ["bad.spec.yaml", "good.spec.yaml"]
    assert found["summary"] == {"error": 1, "warning": 0, "info": 2}


def test_github_format(bad: Path) -> None:
    assert "::error file=" in run("check", "--format", "github", bad).stdout


def test_folders_are_searched(bad: Path, clean: Path, tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "x.pairspec.yaml").write_bytes(clean.read_bytes())
    (tmp_path / ".hidden").mkdir()
    (tmp_path / ".hidden" / "y.spec.yaml").write_bytes(bad.read_bytes())
    (tmp_path / "other.yaml").write_text("a: 1\n")
    assert "3 files checked" in run(tmp_path).output


def test_a_yaml_of_others_is_skipped_with_a_note(tmp_path: Path) -> None:
    path = tmp_path / "openapi.spec.yaml"
    path.write_text("openapi: 3.0.0\npaths: {}\n")
    result = run(path)
    assert result.exit_code == 0 and "skipped" in result.stderr and "0 files checked" in result.stdout


def test_a_spec_without_its_first_line_is_not_skipped(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_bytes(dumped(good()).replace(b"schema: pair-spec/v1\n", b""))
    result = run(path)
    assert result.exit_code == 1 and "lacks `schema`" in result.output


def test_explain_rules_schema() -> None:
    assert "greedily" in run("explain", "sl305").output
    assert run("explain", "heterogeneous-needs-greedy-draft").exit_code == 0
    unknown = run("explain", "SL3055")
    assert unknown.exit_code == 2 and "did you mean `SL305`" in unknown.output
    listed = run("rules").output.splitlines()
    assert len(listed) == len(rules()) and listed[0].startswith("SL001")
    assert json.loads(run("schema").output)["title"] == "pair spec v1"
    assert json.loads(run("schema", "--config").output)["title"] == "speclint.toml"
    assert json.loads(run("schema", "--report").output)["$id"] == "urn:pair-spec-report:v1"


def test_releases() -> None:
    assert "0.32.0" in run("releases").output.split()
    assert "fly" in run("releases", "--diff", "0.32.0", "0.33.0").output
    unknown = run("releases", "--diff", "0.32.0", "0.99.0")
    assert unknown.exit_code == 2 and "nearest" in unknown.output


def test_a_fault_of_ours_is_status_3(monkeypatch: pytest.MonkeyPatch, bad: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def broken(*arguments: object, **options: object) -> None:
        raise RuntimeError("broken rule")

    monkeypatch.setattr(checking, "inspect", broken)
    monkeypatch.setattr(sys, "argv", ["speclint", str(bad)])
    with pytest.raises(SystemExit) as stopped:
        __main__.main()
    assert stopped.value.code == 3 and "fault of speclint" in capsys.readouterr().err


def test_colours_only_on_a_terminal(bad: Path) -> None:
    done = subprocess.run([sys.executable, "-m", "speclint", str(bad)], capture_output=True, text=True)
    assert done.returncode == 1 and "\x1b" not in done.stdout and "error[SL518]" in done.stdout


def test_neither_the_runner_nor_heavy_libraries_are_imported(bad: Path) -> None:
    code = (
        "import sys; import speclint.cli, speclint.__main__\n"
        "from pathlib import Path; from speclint.lint import check; check(Path(sys.argv[1]))\n"
        "heavy = {'specrun', 'vllm', 'torch', 'transformers', 'huggingface_hub', 'tokenizers'} & set(sys.modules)\n"
        "sys.exit(', '.join(heavy) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(bad)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


class TestTo:
    def test_text_names_what_turns_and_where(self, clean: Path) -> None:
        early = run("check", "--to", "0.12.0", clean)
        assert early.exit_code == 1 and ": error: " in early.stdout and "turned at" in early.stdout
        assert "means the same" in run("check", "--to", "0.32.0", clean).stdout

    def test_json(self, clean: Path) -> None:
        found = json.loads(run("check", "--to", "0.24.0", "--format", "json", clean).stdout)
        assert found["to"] == "0.24.0" and {"path", "line", "release", "severity"} <= found["files"][0]["changes"][0].keys()

    def test_strict_counts_warnings(self, clean: Path) -> None:
        worst = {row["severity"] for row in self.changes(clean, "0.25.0")}
        assert "warning" in worst and "error" not in worst
        assert [run("check", "--to", "0.25.0", *flags, clean).exit_code for flags in ([], ["--strict"])] == [0, 1]

    def changes(self, path: Path, to: str) -> list[dict[str, str]]:
        rows: list[dict[str, str]] = json.loads(run("check", "--to", to, "--format", "json", path).stdout)["files"][0]["changes"]
        return rows

    def test_unknown_releases(self, clean: Path, tmp_path: Path) -> None:
        unknown = run("check", "--to", "0.99.0", clean)
        assert unknown.exit_code == 2 and "nearest" in unknown.stderr
        assert run("check", "--to", "latest", "--format", "sarif", clean).exit_code == 2
        other = tmp_path / "a.spec.yaml"
        other.write_bytes(dumped(overlaid({"/pair/engine/version": "0.99.0"})))
        both = run("check", "--to", "latest", other, clean)
        assert both.exit_code == 1 and "release 0.99.0 is not known" in both.stdout and str(clean) in both.stdout


class TestTranslate:
    LINE = "vllm serve Qwen/Qwen3-8B --speculative-model Qwen/Qwen3-0.6B --num-speculative-tokens 3"

    def test_line_file_and_standard_input(self, tmp_path: Path) -> None:
        script = tmp_path / "serve.sh"
        script.write_text(f"#!/bin/sh\nexec {self.LINE}\n")
        said = run("translate", self.LINE)
        assert said.exit_code == 0 and 'model: "Qwen/Qwen3-0.6B"' in said.stdout
        assert run("translate", script).stdout == said.stdout
        assert CliRunner().invoke(commands.cli, ["translate", "-"], input=self.LINE).stdout == said.stdout

    def test_what_starts_no_server(self) -> None:
        assert run("translate", "echo hello").exit_code == 2


def test_any_yaml_that_begins_as_a_spec_is_found(clean: Path, tmp_path: Path) -> None:
    commented = b"# a pair\n\n" + clean.read_bytes()
    (tmp_path / "pair.yml").write_bytes(b"\xef\xbb\xbf" + commented)
    (tmp_path / "later.yaml").write_bytes(b"a: 1\n" + commented)
    assert "2 files checked" in run(tmp_path).output
    empty = tmp_path / "empty"
    empty.mkdir()
    assert "holds no pair spec" in run(empty).stderr
