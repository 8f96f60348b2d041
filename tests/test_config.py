"""Configuration: where it is found, what it changes, what it refuses, and that its schema says the same."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import jsonschema
import pytest
from click.testing import CliRunner, Result
from spec_cases import dumped, overlaid

from speclint.cli import cli
from speclint.config import Config, ConfigError, load_config
from speclint.data import schemas_path

SCHEMA = json.loads((schemas_path() / "speclint.schema.json").read_text(encoding="utf-8"))


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    """A spec with the error SL518 and the warning SL514, in a folder of a repository."""
    (tmp_path / ".git").mkdir()
    path = tmp_path / "pilots" / "deep" / "x.spec.yaml"
    path.parent.mkdir(parents=True)
    path.write_bytes(dumped(overlaid({"/protocol/design/blocks": 5, "/pair/engine_args/enforce_eager": True})))
    return path


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(cli, ["check", *map(str, arguments)])


def found(result: Result) -> set[str]:
    return {code for code in ("SL514", "SL518", "SL601") if f"[{code}]" in result.stdout}


@pytest.mark.parametrize(("name", "table"), [("speclint.toml", "[lint]"), ("pyproject.toml", "[tool.speclint]")])
class TestKeys:
    def write(self, folder: Path, name: str, table: str, text: str) -> None:
        (folder / name).write_text(f"{table}\n{text}\n")

    def test_ignore(self, spec: Path, tmp_path: Path, name: str, table: str) -> None:
        self.write(tmp_path, name, table, 'ignore = ["SL518"]')
        assert found(run(spec)) == {"SL514", "SL601"} and run(spec).exit_code == 0

    def test_select_and_strict(self, spec: Path, tmp_path: Path, name: str, table: str) -> None:
        self.write(tmp_path, name, table, 'select = ["sl514"]\nstrict = true')
        assert found(run(spec)) == {"SL514", "SL601"} and run(spec).exit_code == 1

    def test_flags_win(self, spec: Path, tmp_path: Path, name: str, table: str) -> None:
        self.write(tmp_path, name, table, 'select = ["SL514"]\nignore = ["SL518"]\nstrict = true')
        assert found(run(spec, "--select", "SL518", "--ignore", "SL2")) == {"SL518", "SL601"}
        assert run(spec, "--no-strict").exit_code == 0

    def test_per_file_ignores(self, spec: Path, tmp_path: Path, name: str, table: str) -> None:
        self.write(tmp_path, name, table, 'per-file-ignores = {"pilots" = ["SL51"], "other/*" = ["SL2"]}')
        assert found(run(spec)) == {"SL601"}

    @pytest.mark.parametrize(
        "pattern", ["pilots", "pilots/", "pilots/*", "**/x.spec.yaml", "x.spec.yaml", "deep", "pilots/**/*.yaml"]
    )
    def test_exclude(self, spec: Path, tmp_path: Path, name: str, table: str, pattern: str) -> None:
        self.write(tmp_path, name, table, f"exclude = [{pattern!r}]")
        result = run(tmp_path, spec)
        assert result.exit_code == 0 and "0 files checked" in result.stdout
        assert result.stderr.count("excludes it") == 2

    @pytest.mark.parametrize("pattern", ["pilot", "x.spec", "eep", "deep/x.spec.yaml"])
    def test_not_excluded(self, spec: Path, tmp_path: Path, name: str, table: str, pattern: str) -> None:
        self.write(tmp_path, name, table, f"exclude = [{pattern!r}]")
        assert "1 file checked" in run(spec).stdout

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ('ignroe = ["SL5"]', "ignore"),
            ("strict = 1", "true or false"),
            ('select = "SL5"', "a list of codes"),
            ('ignore = ["SL999"]', "no rule begins with SL999"),
            ('ignore = ["SL602"]', "cannot be ignored"),
            ("per-file-ignores = {a = 1}", "a table of path patterns"),
            ("exclude = [1]", "a list of path patterns"),
            ("x = = 1", "line 2"),
        ],
    )
    def test_mistakes_are_bad_usage(self, spec: Path, tmp_path: Path, name: str, table: str, text: str, said: str) -> None:
        self.write(tmp_path, name, table, text)
        result = run(spec)
        assert result.exit_code == 2 and said in result.stderr and name in result.stderr
        assert result.stdout == ""

    def test_a_misspelt_key_is_shown_with_its_line(self, spec: Path, tmp_path: Path, name: str, table: str) -> None:
        self.write(tmp_path, name, table, 'strict = true\nselct = ["SL5"]')
        with pytest.raises(ConfigError, match=rf"{name}:3: .* `selct`; did you mean `select`"):
            load_config(spec)


def test_nearest_file_wins_and_the_repository_is_the_limit(spec: Path, tmp_path: Path) -> None:
    (tmp_path / "speclint.toml").write_text('[lint]\nignore = ["SL518"]\n')
    (tmp_path / "pilots" / "pyproject.toml").write_text('[tool.speclint]\nignore = ["SL514"]\n')
    assert load_config(spec).ignore == ("SL514",)
    (spec.parent / ".git").mkdir()
    inner = spec.parent / "y.spec.yaml"
    load_config.__globals__["_of_folder"].cache_clear()
    assert load_config(inner) == Config()


def test_trust_alone_configures_nothing_and_is_not_disturbed(spec: Path, tmp_path: Path) -> None:
    (tmp_path / "speclint.toml").write_text("[lint]\nstrict = true\n")
    (spec.parent / "speclint.toml").write_text("[trust]\n[approvals]\nmin = 2\n")
    assert load_config(spec).strict
    assert "approvers" not in run(spec).stdout  # none yet: nobody has approved it


def test_a_misspelt_table_would_trust_nobody_and_is_refused(spec: Path) -> None:
    (spec.parent / "speclint.toml").write_text('[trsut]\nallowed_signers = "a"\n')
    result = run(spec)
    assert result.exit_code == 2 and "did you mean `trust`" in result.stderr


def test_a_pyproject_of_others_is_left_alone(spec: Path, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "speclint"\n[tool.ruff]\nline-length = 100\n')
    assert load_config(spec) == Config()


def test_flags_are_checked_like_the_file() -> None:
    assert "cannot be ignored" in run(".", "--ignore", "SL6").stderr
    assert "did you mean `SL305`" in run(".", "--select", "SL3055").stderr


@pytest.mark.parametrize(
    ("text", "valid"),
    [
        ('[lint]\nselect = ["SL3"]\nstrict = true\nexclude = ["a"]\nper-file-ignores = {a = ["SL5"]}', True),
        ('[trust]\nallowed_signers = "a"\nrevoked = "b"\n[approvals]\nmin = 2\nother_than_signer = true', True),
        ("[lint]\nstrict = 1", False),
        ('[lint]\nselect = "SL5"', False),
        ("[lint]\nselcet = []", False),
        ("[lint]\nper-file-ignores = {a = 1}", False),
        ("[lnit]", False),
        ("lint = 1", False),
    ],
)
def test_published_schema_and_reader_agree(text: str, valid: bool, spec: Path) -> None:
    assert jsonschema.Draft202012Validator(SCHEMA).is_valid(tomllib.loads(text)) == valid
    (spec.parent / "speclint.toml").write_text(text)
    load_config.__globals__["_of_folder"].cache_clear()
    if valid:
        load_config(spec)
    else:
        with pytest.raises(ConfigError):
            load_config(spec)


def test_schema_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
