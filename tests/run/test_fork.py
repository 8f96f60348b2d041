"""A fork keeps every byte but approvals, results and the name."""

from __future__ import annotations

from pathlib import Path

import pytest

from speclint import document
from specrun.errors import Refused
from specrun.fork import fork

HEAD = 'schema: pair-spec/v1\nname: old   # its name\npurpose: "a"\npair:\n  target: {model: m}\nprotocol:\n  confidence: 0.95\n'
TAIL = (
    '# about approvals\napprovals:\n  - id: "a-1"\n    signature: |\n      -----BEGIN\n      x\n\n'
    'results:\n- id: "r"\n  text: |\n    # not a comment\n    results: none\n'
)


def made(folder: Path, text: str) -> Path:
    path = folder / "old.spec.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_what_tools_wrote_is_left_behind_and_the_rest_kept(tmp_path: Path) -> None:
    path = made(tmp_path, HEAD + TAIL)
    assert fork(path, tmp_path / "new.spec.yaml") == "new"
    text = (tmp_path / "new.spec.yaml").read_text(encoding="utf-8")
    assert text.startswith(HEAD.replace("name: old", "name: new"))
    assert "approvals" not in document.read(tmp_path / "new.spec.yaml").data
    assert "BEGIN" not in text and "not a comment" not in text
    assert path.read_text(encoding="utf-8") == HEAD + TAIL


def test_results_before_other_sections_are_cut_alone(tmp_path: Path) -> None:
    path = made(tmp_path, "results:\n  - id: r\n" + HEAD)
    fork(path, tmp_path / "b.spec.yaml", "b")
    assert document.read(tmp_path / "b.spec.yaml").data == document.parse(HEAD.encode(), "x").data | {"name": "b"}


@pytest.mark.parametrize(
    ("new", "name"),
    [("old.spec.yaml", None), ("New.spec.yaml", None), ("x.spec.yaml", "old"), ("x.spec.yaml", "a b")],
)
def test_refused_and_nothing_written(tmp_path: Path, new: str, name: str | None) -> None:
    path = made(tmp_path, HEAD + TAIL)
    with pytest.raises(Refused):
        fork(path, tmp_path / new, name)
    assert path.read_text(encoding="utf-8") == HEAD + TAIL
    assert [p.name for p in tmp_path.iterdir()] == ["old.spec.yaml"]
