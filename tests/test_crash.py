"""A crash at any system call of a tool that writes a spec file leaves the old file or the new one, and the next try works."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from killed import at_every_system_call
from spec_cases import good
from trust_sample import SPEC, data_of, make_key, result, write_trust

from speclint import document, edit, replace
from speclint.lock import command
from speclint.signature import statement
from specrun import ledger
from specrun.append import append_entry
from specrun.approve import approve
from specrun.sign import sign

pytestmark = pytest.mark.thorough

STEPS = 20  # a replacement opens, writes, syncs, renames: fewer system calls than this and the test has not seen it


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    path = tmp_path / "x.spec.yaml"
    path.write_text(SPEC)
    write_trust(tmp_path, alice=make_key(tmp_path, "alice"))
    return path


def test_every_system_call_of_a_rewrite(tmp_path: Path) -> None:
    path, old, new = tmp_path / "x.spec.yaml", SPEC.encode(), SPEC.encode() + b"# new\n"
    path.write_bytes(old)
    path.chmod(0o640)
    seen = []
    for _ in at_every_system_call(lambda: edit.rewrite(path, lambda source: source + b"# new\n")):
        seen.append(path.read_bytes())
        assert seen[-1] in (old, new)
        assert stat.S_IMODE(path.stat().st_mode) == 0o640
        path.write_bytes(old)  # keeps the mode
    assert old in seen and new in seen and len(seen) >= STEPS
    assert path.read_bytes() == new
    assert list(tmp_path.iterdir()) == [path]  # the last writer lived, and cleared away what the killed ones had left


def test_what_a_killed_writer_leaves_is_cleared_by_the_next_and_nothing_else_is(tmp_path: Path) -> None:
    path, old = tmp_path / "x.spec.yaml", SPEC.encode()
    path.write_bytes(old)
    killed = at_every_system_call(lambda: edit.rewrite(path, lambda source: source + b"# new\n"))
    left = next(found for _ in killed if (found := [other for other in tmp_path.iterdir() if other != path]))
    assert len(left) == 1 and path.read_bytes() == old
    others = ["x.spec.yaml.tmp", ".x.spec.yaml.swp", ".x.spec.yaml.tmp", ".x.spec.yaml.Abcdefgh.tmp", ".y.spec.yaml.abcdefgh.tmp"]
    others += [".xxspec.yaml.abcdefgh.tmp", ".x.spec.yaml.abcdefghi.tmp"]
    for name in others:
        (tmp_path / name).write_bytes(b"somebody's")
    (tmp_path / ".x.spec.yaml.linked__.tmp").symlink_to(path)
    (tmp_path / ".x.spec.yaml.folder__.tmp").mkdir()
    kept = sorted(other for other in tmp_path.iterdir() if other not in left)
    edit.rewrite(path, lambda source: source)  # even one that has nothing to change
    assert sorted(tmp_path.iterdir()) == kept and path.read_bytes() == old


def test_a_writer_at_work_keeps_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another one that waits for the lock clears nothing away."""
    path = tmp_path / "x.spec.yaml"
    path.write_text(SPEC)
    real = replace._take_after

    def meanwhile(file: Path, fd: int) -> None:
        with pytest.raises(replace.FileBusy):
            edit.rewrite(path, lambda source: source + b"# theirs\n")
        real(file, fd)

    monkeypatch.setattr(replace, "PATIENCE", 0.0)
    monkeypatch.setattr(replace, "_take_after", meanwhile)
    edit.rewrite(path, lambda source: source + b"# ours\n")
    assert path.read_text() == SPEC + "# ours\n" and list(tmp_path.iterdir()) == [path]


def approval_of(spec: Path) -> None:
    approve(spec, spec.parent / "alice", show=lambda _: None)


def result_of(spec: Path) -> None:
    entry = result(data_of(spec))
    told = statement("result", "qwen3-k3", entry["spec"], entry)
    append_entry(spec, "results", entry | {"signature": sign(told, spec.parent / "alice", "pair-spec-result")})


def lock_of(spec: Path) -> None:
    assert command.lock_file(spec, check=False, update=True)[0] == 0


@pytest.mark.parametrize(("write", "section"), [(approval_of, "approvals"), (result_of, "results"), (lock_of, "lock")])
def test_every_system_call_of_a_command_that_writes(
    write: Callable[[Path], None], section: str, spec: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is to be written is made once, and written by one child after the other, each killed a step later than the last."""
    real, before, seen = replace._replace, document.parse(spec.read_bytes(), "").data, []

    def killed_again_and_again(path: Path, old: bytes, new: bytes) -> None:
        for _ in at_every_system_call(lambda: real(path, old, new)):
            seen.append(path.read_bytes())
            assert seen[-1] in (old, new)
            path.write_bytes(old)
        path.write_bytes(old)
        real(path, old, new)

    monkeypatch.setattr(command, "build_lock", lambda *_: good()["lock"])
    monkeypatch.setattr(replace, "_replace", killed_again_and_again)
    write(spec)
    assert len(seen) >= STEPS and len(set(seen)) == 2
    after = data_of(spec)
    assert after.pop(section) and after == before


def test_every_system_call_of_an_attempt(tmp_path: Path) -> None:
    path, data = tmp_path / "runs" / "ledger.jsonl", document.parse(SPEC.encode(), "").data
    count, durable = 0, []
    for stop in at_every_system_call(lambda: ledger.add(path, "killed", data, "t")):
        rows = list(ledger.attempts(path)) if path.exists() else []
        assert all(row["run"] in ("killed", "next") and row["pair"] for row in rows)
        durable.append(any(row["run"] == "killed" for row in rows))
        known = ledger.add(path, "next", data, "t")
        assert known == {"pair": 1 + durable[-1], "spec": 1 + durable[-1]}, stop
        assert path.read_bytes().endswith(b"\n")
        path.unlink()
        count += 1
    assert True in durable and durable == sorted(durable) and count >= 10


def test_owner_and_mode_are_the_old_files_from_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The new file has them before it takes the old one's place, and the owner before the mode: chown clears set-user-ID."""
    path = tmp_path / "x.spec.yaml"
    path.write_text(SPEC)
    path.chmod(0o664)
    done: list[Any] = []
    monkeypatch.setattr(os, "fchown", lambda fd, uid, gid: done.append((uid, gid)))
    monkeypatch.setattr(os, "fchmod", lambda fd, mode: done.append(mode))
    monkeypatch.setattr(Path, "replace", lambda self, to: done.append("rename"))
    edit.rewrite(path, lambda source: source + b"#\n")
    assert done == [(os.getuid(), path.stat().st_gid), 0o664, "rename"]


def test_a_file_of_another_owner_is_written_if_the_folder_allows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    path = tmp_path / "x.spec.yaml"
    path.write_text(SPEC)
    monkeypatch.setattr(os, "fchown", forbidden)
    edit.rewrite(path, lambda source: source + b"#\n")
    assert path.read_text() == SPEC + "#\n"
