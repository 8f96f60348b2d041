"""The wheel as a stranger gets it: installed into an empty environment, it lints with no file of the checkout at hand."""

from __future__ import annotations

import json
import subprocess
import sys
import venv
from pathlib import Path

import pytest

pytestmark = pytest.mark.thorough

ROOT = Path(__file__).resolve().parents[1]
GOOD = ROOT / "tests" / "rules" / "good.spec.yaml"
BASE = {"click", "jsonschema", "ruamel.yaml", "rfc8785", "specpair"}


def run(*words: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(list(map(str, words)), cwd=cwd, capture_output=True, text=True, check=False, timeout=300)


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment that holds the freshly built wheel and its dependencies, nothing else."""
    folder = tmp_path_factory.mktemp("wheel")
    built = run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, ROOT, cwd=folder)
    assert built.returncode == 0, built.stdout[-2000:] + built.stderr[-2000:]
    venv.create(folder / "env", with_pip=True)
    made = folder / "env" / "bin" / "python"
    wheel = next(folder.glob("specpair-*.whl"))
    installed = run(made, "-m", "pip", "install", "--quiet", wheel, cwd=folder)
    assert installed.returncode == 0, installed.stderr[-2000:]
    return made


def test_base_install_is_four_dependencies(python: Path) -> None:
    listed = json.loads(run(python, "-m", "pip", "list", "--format", "json", cwd=python.parent).stdout)
    names = {row["name"].lower().replace("_", ".").replace("-", ".") for row in listed}
    assert names >= BASE
    of_jsonschema = {"attrs", "jsonschema.specifications", "referencing", "rpds.py", "typing.extensions"}
    assert names - BASE - of_jsonschema <= {"pip", "setuptools", "wheel"}


def test_the_wheel_lints_and_holds_every_schema(python: Path, tmp_path: Path) -> None:
    (tmp_path / "a.spec.yaml").write_bytes(GOOD.read_bytes())
    checked = run(python.with_name("speclint"), "check", "--format", "json", "a.spec.yaml", cwd=tmp_path)
    found = json.loads(checked.stdout)
    assert checked.returncode in (0, 1), checked.stderr
    assert not [d for d in found["files"][0]["diagnostics"] if d["code"].startswith(("SL0", "SL1"))]
    (tmp_path / "a.spec.yaml").write_bytes(GOOD.read_bytes().replace(b"num_speculative_tokens", b"num_speculative_token"))
    checked = run(python.with_name("speclint"), "check", "--format", "json", "a.spec.yaml", cwd=tmp_path)
    assert "SL401" in {d["code"] for d in json.loads(checked.stdout)["files"][0]["diagnostics"]}
    releases = run(python.with_name("speclint"), "releases", cwd=tmp_path).stdout
    assert {p.stem for p in (ROOT / "schemas" / "vllm").glob("0.*.json")} <= set(releases.split())


def test_an_editable_install_finds_the_same_schemas() -> None:
    code = "from speclint.data import schemas_path; print(schemas_path())"
    assert Path(run(sys.executable, "-c", code, cwd=Path("/")).stdout.strip()) == ROOT / "schemas"
