"""A repository with an approved spec that holds two signed results, for the tests of its history: real git, real OpenSSH."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from click.testing import CliRunner, Result
from trust_sample import ALICE, NAMESPACES, SPEC, make_key, public, result

from speclint import document, emit
from speclint.canonical import entry_digest, heads, section_digests, spec_digest
from speclint.cli import cli
from speclint.signature import NAMESPACES as NAMESPACE_OF
from speclint.signature import Kind, statement
from specrun.sign import sign

Data = dict[str, Any]
WHO = {f"GIT_{role}_{key}": f"{key}@example.com".lower() for role in ("AUTHOR", "COMMITTER") for key in ("NAME", "EMAIL")}
GIT = {"PATH": os.environ["PATH"], "HOME": os.devnull, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"} | WHO
QUIET = [
    "-c",
    "init.defaultBranch=main",
    "-c",
    "advice.detachedHead=false",
    "-c",
    "protocol.file.allow=always",
    "-c",
    "gc.auto=0",
]

SHORT: Data = {
    "established": {"verdict": "not_established", "checks": [{"check": "drafts", "outcome": "failed", "detail": "none"}]},
    "figures": {"columns": ["workload", "arm", "ttft_p50"], "rows": [["varied", "target", 0.0412345]]},
    "verdicts": [],
    "diagnosis": [],
    "ratios": [],
}
"""A result of a few lines, so that a test takes no time to read it."""


def data_of(path: Path) -> Data:
    """What a file says now; the same bytes are parsed once."""
    data: Data = json.loads(_parsed(path.read_bytes()))
    return data


@cache
def _parsed(source: bytes) -> str:
    return json.dumps(_document(source, "").data)


@pytest.fixture(autouse=True)
def parsed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same bytes are parsed once in all tests, which saves half of their time."""
    monkeypatch.setattr(document, "parse", _document)


_document = cache(document.parse)


class Repository(NamedTuple):
    """A work tree and the keys of the people around it (`alice`, `bob`, `mallory`)."""

    top: Path
    keys: Path

    @property
    def spec(self) -> Path:
        return self.top / "pairs" / "x.spec.yaml"

    def git(self, *words: str, check: bool = True) -> str:
        done = subprocess.run(["git", *QUIET, *words], cwd=self.top, env=GIT, capture_output=True, text=True)
        assert done.returncode == 0 or not check, done.stderr
        return done.stdout.strip()

    def commit(self, message: str = "change") -> None:
        self.git("add", "-A")
        self.git("commit", "-qm", message)

    def head(self) -> str:
        return self.git("rev-parse", "HEAD")

    def branch(self, name: str = "change", start: str = "main") -> None:
        self.git("checkout", "-qb", name, start)

    def check(self, *flags: str, base: str = "main", path: Path | None = None) -> Result:
        return CliRunner().invoke(cli, ["check", "--base", base, *flags, str(path or self.top)])

    def found(self, *flags: str, base: str = "main", path: Path | None = None) -> list[dict[str, Any]]:
        """Errors and warnings, with the file's path from the top."""
        done = self.check("--format", "json", *flags, base=base, path=path)
        assert done.exit_code in (0, 1), done.output
        rows = [row | {"file": file["file"]} for file in json.loads(done.stdout)["files"] for row in file["diagnostics"]]
        assert done.exit_code == int(any(row["severity"] == "error" for row in rows))
        return [row for row in rows if row["severity"] != "info"]

    def codes(self, *flags: str, base: str = "main", path: Path | None = None) -> list[str]:
        return [row["code"] for row in self.found(*flags, base=base, path=path)]

    def signed(self, kind: Kind, entry: Data, key: str = "alice", name: str = "qwen3-k3") -> Data:
        told = statement(kind, name, entry["spec"], entry)
        return entry | {"signature": sign(told, self.keys / key, NAMESPACE_OF[kind])}

    def add_result(self, run: str, key: str = "alice", **changes: Any) -> None:
        """Append a signed result as `specrun append` would, on any key's word."""
        data = data_of(self.spec)
        approvals = [entry_digest(entry) for entry in data.get("approvals", [])]
        entry = result(data, run, approvals=approvals, previous=heads(data.get("results", [])), **SHORT)
        entry |= {"signer": f"{key}@example.com"} | changes
        self._append("results", data, self.signed("result", entry, key))

    def add_approval(self, name: str, key: str = "alice", **changes: Any) -> None:
        data = data_of(self.spec)
        entry = approval(data, id=name, approver=f"{key}@example.com") | changes
        self._append("approvals", data, self.signed("approval", entry, key))

    def _append(self, section: str, data: Data, entry: Data) -> None:
        """As text at the end: the section must be the last one."""
        head = "" if section in data else f"\n{section}:\n"
        self.spec.write_text(self.spec.read_text() + head + emit.entry(entry))

    def change(self, section: str, change: Callable[[list[Data]], object], path: Path | None = None) -> None:
        """Rewrite approvals and results of the spec after a change of those of one section."""
        file = path or self.spec
        data, text = data_of(file), file.read_text()
        change(data[section])
        sections = [f"\n{emit.section(name, data[name])}" for name in ("approvals", "results") if name in data]
        file.write_text(text[: text.index("\napprovals:")] + "".join(sections))

    def trust(self, *lines: str, toml: str = "") -> None:
        (self.top / "allowed_signers").write_text("".join(f"{line}\n" for line in lines))
        (self.top / "speclint.toml").write_text('[trust]\nallowed_signers = "allowed_signers"\n' + toml)

    def line(self, name: str, options: str = f'namespaces="{NAMESPACES}"') -> str:
        return f"{name}@example.com {options} {public(self.keys / name)}"

    def copied(self, to: Path) -> Repository:
        shutil.copytree(self.top, to, symlinks=True)
        return Repository(to, self.keys)


def approval(data: Data, **changes: Any) -> Data:
    entry = {
        "id": "a1", "approver": ALICE, "time": "2026-11-29T10:00:00Z", "spec": spec_digest(data),
        "sections": section_digests(data), "suppressions": [], "results_known": [],
    }  # fmt: skip
    return entry | changes


def made(folder: Path) -> Repository:
    """Allowed signers Alice and Bob, one spec, approval a1, results r1 and r2 on `main`; checked out is `change`, the same."""
    keys, top = folder / "keys", folder / "a repository, né"
    keys.mkdir()
    for name in ("alice", "bob", "mallory"):
        make_key(keys, name)
    repository = Repository(top, keys)
    repository.spec.parent.mkdir(parents=True)
    repository.git("init", "-q", "--template=")
    repository.trust(repository.line("alice"), repository.line("bob"))
    repository.spec.write_text(SPEC)
    repository.add_approval("a1")
    repository.add_result("r1")
    repository.add_result("r2")
    repository.commit("a pair with two results")
    repository.branch()
    return repository
