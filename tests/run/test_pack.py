"""A run travels as one file: the same bytes each time, and only its own files on the other side, whatever the file holds."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import shutil
import tarfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from sealed_run import Sealed
from trust_sample import data_of, make_key, write_trust

from speclint import edit
from specrun import cli, manifest
from specrun import pack as packing
from specrun.errors import EnvironmentTrouble, SpecrunError
from specrun.pack import Damaged, pack, unpack

Members = list[tuple[tarfile.TarInfo, bytes]]


@pytest.fixture
def packed(sealed: Sealed, tmp_path: Path) -> Path:
    pack(sealed.run.folder, tmp_path / "run.tar.gz")
    return tmp_path / "run.tar.gz"


def contents(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def specrun(*words: object) -> Result:
    return CliRunner().invoke(cli.cli, [str(word) for word in words], standalone_mode=False)


def test_a_run_comes_out_as_it_went_in(sealed: Sealed, packed: Path, tmp_path: Path) -> None:
    folder = unpack(packed, tmp_path / "there")
    assert folder == tmp_path / "there" / sealed.run.plan["id"]
    before = {name: inner for name, inner in contents(sealed.run.folder).items() if not name.startswith(".")}
    assert contents(folder) == before and len(before) > 50
    assert [path.name for path in (tmp_path / "there").iterdir()] == [folder.name]


def test_the_same_run_gives_the_same_bytes(sealed: Sealed, packed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time", lambda: 2e9)
    copy = shutil.copytree(sealed.run.folder, tmp_path / "renamed", copy_function=shutil.copyfile)
    (copy / "b01" / "block.json").chmod(0o600)
    pack(copy, tmp_path / "again.tar.gz")
    assert (tmp_path / "again.tar.gz").read_bytes() == packed.read_bytes()
    with tarfile.open(packed) as tar:
        facts = {(m.type, m.mode, m.uid, m.gid, m.uname, m.gname, m.mtime) for m in tar}
    assert facts == {(tarfile.REGTYPE, 0o644, 0, 0, "", "", 0)}


def test_measured_here_signed_there_and_verified(sealed: Sealed, packed: Path, tmp_path: Path) -> None:
    there = tmp_path / "there"
    there.mkdir()
    spec = there / "moved.spec.yaml"
    spec.write_bytes(edit.replace_section(sealed.spec.read_bytes(), "results", []))
    key = make_key(there, "bob")
    write_trust(there, bob=key)
    assert specrun("unpack", packed, "--into", there / "runs").exit_code == 0
    folder = there / "runs" / sealed.run.plan["id"]
    assert specrun("append", folder, "--key", key, "--file", spec).exit_code == 0
    entry = data_of(spec)["results"][0]
    assert entry["signer"] == "bob@example.com"
    own = {key: value for key, value in entry.items() if key not in ("signer", "signature")}
    assert own == {key: value for key, value in data_of(sealed.spec)["results"][0].items() if key not in ("signer", "signature")}
    done = specrun("verify", spec, "--records", there / "runs")
    rows = [line for line in done.output.splitlines() if line.startswith(("ok ", "failed ", "not checked "))]
    assert any(row.startswith("ok") and "raw records" in row for row in rows)
    assert any(row.startswith("ok") and "figures follow from the records" in row for row in rows)
    assert any("prompts kept" in row and row.endswith("not checked, because private: repetitive") for row in rows)
    assert [row for row in rows if row.startswith("failed")] == [row for row in rows if "approvals that stand here" in row]


def test_what_was_run_is_elsewhere_is_said(sealed: Sealed, packed: Path, tmp_path: Path) -> None:
    folder = unpack(packed, tmp_path)
    plan = json.loads((folder / "plan.json").read_text()) | {"spec_file": "/gone/x.spec.yaml"}
    (folder / "plan.json").write_text(json.dumps(plan))
    done = specrun("append", folder, "--key", sealed.key)
    assert "name the spec with --file" in str(done.exception)


def changed_figure(conclusion: dict[str, Any]) -> None:
    conclusion["figures"]["rows"][0][4] += 1


def changed_check(conclusion: dict[str, Any]) -> None:
    conclusion["established"]["verdict"] = "established"


@pytest.mark.parametrize("change", [changed_figure, changed_check])
def test_a_conclusion_that_does_not_follow_is_not_signed(
    sealed: Sealed, packed: Path, tmp_path: Path, change: Callable[[dict[str, Any]], None]
) -> None:
    folder = unpack(packed, tmp_path)
    conclusion = json.loads((folder / "conclusion.json").read_text())
    change(conclusion)
    (folder / "conclusion.json").write_text(json.dumps(conclusion))
    spec = shutil.copy(sealed.spec, tmp_path)
    words = ("append", folder, "--key", sealed.key, "--file", spec)
    with pytest.raises(Damaged, match=r"conclusion\.json differs"):
        raise specrun(*words).exception or AssertionError
    manifest.write(folder)  # whoever changes the one may change the other
    with pytest.raises(Damaged, match="does not follow from its records"):
        raise specrun(*words).exception or AssertionError
    assert Path(spec).read_bytes() == sealed.spec.read_bytes()


@pytest.mark.parametrize("name", ["manifest.json", "b01/pair/start.json"])
def test_an_unfinished_or_changed_run_is_not_packed(sealed: Sealed, tmp_path: Path, name: str) -> None:
    folder = shutil.copytree(sealed.run.folder, tmp_path / "run")
    (folder / name).unlink()
    with pytest.raises(Damaged, match=f"{name} (cannot be read|is missing)"):
        pack(folder, tmp_path / "x.tar.gz")
    assert not (tmp_path / "x.tar.gz").exists()


def test_a_file_that_is_there_is_not_overwritten(sealed: Sealed, packed: Path, tmp_path: Path) -> None:
    before = packed.read_bytes()
    with pytest.raises(EnvironmentTrouble, match="File exists"):
        pack(sealed.run.folder, packed)
    assert packed.read_bytes() == before
    unpack(packed, tmp_path / "there")
    with pytest.raises(SpecrunError, match="exists"):
        unpack(packed, tmp_path / "there")


def test_a_full_disk_leaves_no_half_file(sealed: Sealed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tarfile.TarFile, "addfile", full)
    with pytest.raises(EnvironmentTrouble, match="No space left"):
        pack(sealed.run.folder, tmp_path / "x.tar.gz")
    assert list(tmp_path.iterdir()) == []


# --- files that somebody else made ---


def members(packed: Path) -> Members:
    with tarfile.open(packed) as tar:
        return [(member, (tar.extractfile(member) or io.BytesIO()).read()) for member in tar]


def written(path: Path, members: Members) -> Path:
    with tarfile.open(path, "w:gz") as tar:
        for member, content in members:
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return path


def extra(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> Callable[[Members], object]:
    def add(found: Members) -> None:
        member = tarfile.TarInfo(name.replace("RUN", found[0][0].name.partition("/")[0]))
        member.type, member.linkname = kind, link
        found.append((member, b"x" if kind == tarfile.REGTYPE else b""))

    return add


def listed(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> Callable[[Members], object]:
    """An extra member that the manifest lists, too."""

    def add(found: Members) -> None:
        whole = json.loads(found[0][1])
        whole["files"][name] = "sha256:" + hashlib.sha256(b"x").hexdigest()
        found[0] = (found[0][0], json.dumps(whole).encode())
        extra(f"RUN/{name}", kind, link)(found)

    return add


def renamed(found: Members) -> None:
    for member, _ in found:
        member.name = "other/" + member.name.partition("/")[2]


def changed(found: Members) -> None:
    at = next(number for number, (member, _) in enumerate(found) if member.name.endswith("records.jsonl"))
    found[at] = (found[at][0], found[at][1].replace(b'"index":0', b'"index":1'))


FORGERIES: dict[str, tuple[Callable[[Members], object], str]] = {
    "a changed record": (changed, "records.jsonl differs"),
    "a missing file": (lambda found: found.pop(), "is missing"),
    "no manifest": (lambda found: found.pop(0), "does not begin with the manifest.json"),
    "manifest not first": (lambda found: found.append(found.pop(0)), "does not begin with the manifest.json"),
    "a manifest that is none": (lambda found: found.__setitem__(0, (found[0][0], b"[]")), "manifest.json cannot be read"),
    "a file twice": (lambda found: found.append(found[1]), "holds it twice"),
    "a file that is not listed": (extra("RUN/more"), "does not list"),
    "another run's folder": (extra("other/plan.json"), "does not list"),
    "a run under another name": (renamed, "holds another run than other"),
    "a path that leads out": (listed("../out"), "does not list"),
    "a path that leads out, deeper": (listed("b01/../../out"), "does not list"),
    "an absolute path": (extra("/tmp/specrun-out"), "does not list"),
    "a hidden file": (listed(".lock"), "does not list"),
    "a link": (listed("link", tarfile.SYMTYPE, "/etc/passwd"), "is no regular file"),
    "a hard link": (listed("link", tarfile.LNKTYPE, "/etc/passwd"), "is no regular file"),
    "a device": (listed("null", tarfile.CHRTYPE), "is no regular file"),
    "a folder": (listed("folder", tarfile.DIRTYPE), "is no regular file"),
    "a file below a file": (listed("plan.json/x"), "cannot be unpacked"),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forged_file_is_refused_and_leaves_nothing(packed: Path, tmp_path: Path, name: str) -> None:
    change, words = FORGERIES[name]
    found = members(packed)
    change(found)
    with pytest.raises(SpecrunError, match=words):
        unpack(written(tmp_path / "forged.tar.gz", found), tmp_path / "there")
    assert list((tmp_path / "there").iterdir()) == []
    assert {path.name for path in tmp_path.iterdir()} == {"run.tar.gz", "forged.tar.gz", "there"}


def test_what_is_no_packed_run_is_said(packed: Path, tmp_path: Path) -> None:
    whole = packed.read_bytes()
    for source in (b"", b"x" * 2000, gzip.compress(b"x" * 2000), whole[: len(whole) // 2], whole[:300] + b"\0" * 300):
        packed.write_bytes(source)
        with pytest.raises(Damaged, match="is no packed run, or is damaged"):
            unpack(packed, tmp_path / "there")
    with pytest.raises(EnvironmentTrouble, match="No such file"):
        unpack(tmp_path / "gone", tmp_path / "there")
    assert list((tmp_path / "there").iterdir()) == []


def test_a_bomb_costs_neither_memory_nor_disk(packed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    header = tarfile.TarInfo("x")
    header.type, header.size = tarfile.XHDTYPE, 2**30  # an extended header of a gigabyte
    packed.write_bytes(gzip.compress(header.tobuf()))
    with pytest.raises(Damaged, match="a header is too large"):
        unpack(packed, tmp_path / "there")
    manifest_of_a_gigabyte = tarfile.TarInfo("r1/manifest.json")
    manifest_of_a_gigabyte.size = 2**30
    packed.write_bytes(gzip.compress(manifest_of_a_gigabyte.tobuf()))
    with pytest.raises(Damaged, match="does not begin with"):
        unpack(packed, tmp_path / "there")
    monkeypatch.setattr(packing, "MOST_BYTES", 1000)
    with pytest.raises(Damaged, match="holds more than"):
        unpack(written(packed, [*members(written_whole(tmp_path))]), tmp_path / "there")


def written_whole(place: Path) -> Path:
    """A tiny run with one large file."""
    files = {"plan.json": b'{"id": "r1"}', "big": b"\0" * 2000}
    listing = {name: "sha256:" + hashlib.sha256(content).hexdigest() for name, content in files.items()}
    every = {"manifest.json": json.dumps({"files": listing}).encode(), **files}
    return written(place / "big.tar.gz", [(tarfile.TarInfo(f"r1/{name}"), content) for name, content in every.items()])


def test_unpacked_files_are_the_callers_own(packed: Path, tmp_path: Path) -> None:
    found = members(packed)
    for member, _ in found:
        member.mode, member.uid = 0o7777, 12345
    folder = unpack(written(tmp_path / "odd.tar.gz", found), tmp_path / "there")
    states = [path.stat() for path in folder.rglob("*") if path.is_file()]
    assert {state.st_uid for state in states} == {os.getuid()}
    assert not any(state.st_mode & 0o7111 for state in states)
