"""Credentials and private prompts: planted wherever a run could meet them, and looked for in all that it leaves."""

from __future__ import annotations

import json
import re
import shutil
import time
from pathlib import Path

import pytest
from click.testing import CliRunner
from sealed_run import CREDENTIALS, Sealed

from speclint.credentials import masked, redacted, without
from specrun import cli, drive, entry, launch, run
from specrun.pack import pack

CANARY = re.compile(rb"canary\d\d")


def told(path: Path) -> list[str]:
    """Canaries in a file or in all files below a folder, with the file they stand in."""
    files = [path] if path.is_file() else [inner for inner in path.rglob("*") if inner.is_file()]
    return sorted({f"{file.name}: {found.decode()}" for file in files for found in CANARY.findall(file.read_bytes())})


def test_nothing_that_a_run_leaves_holds_a_credential_or_a_private_prompt(sealed: Sealed) -> None:
    folder = sealed.run.folder
    assert told(folder) == []
    assert told(sealed.spec) == []
    log = (folder / "b01" / "pair" / "server.log").read_text(encoding="utf-8")
    assert "WARNING Very slow proxy http://redacted@proxy.example:3128, remote https://redacted@index.example/simple" in log
    assert "'hf_token': redacted, 'api_key': redacted" in log
    errors = [json.loads(line)["error"] for file in folder.rglob("records.jsonl") for line in file.open(encoding="utf-8")]
    assert "HTTP 401" in errors  # of private prompts, without the server's words
    assert any(error and error.startswith("HTTP 401: no access with redacted, ") for error in errors)
    start = json.loads((folder / "b01" / "pair" / "start.json").read_text(encoding="utf-8"))
    assert start["config"]["load_config"] == {"extra": [{"aws_secret_access_key": "redacted", "Authorization": "redacted"}]}
    assert start["config"]["kv_transfer_config"]["note"] == "reads with redacted"
    assert start["minimal"]["request"]["prompt"] == "One, two, three,"


def test_servers_get_the_hub_token_and_no_other_credential(sealed: Sealed) -> None:
    log = (sealed.run.folder / "b01" / "target" / "server.log").read_text(encoding="utf-8")
    environment = next(line for line in log.splitlines() if line.startswith("INFO environment"))
    assert [name for name in CREDENTIALS if f"'{name}'" in environment] == ["HF_TOKEN"]


@pytest.mark.parametrize("form", next(p.type.choices for p in cli.report.params if p.name == "form"))  # type: ignore[attr-defined]
@pytest.mark.parametrize("source", ["spec", "run"])
def test_reports_of_every_format_hold_none(sealed: Sealed, form: str, source: str) -> None:
    of = str(sealed.spec if source == "spec" else sealed.run.folder)
    done = CliRunner().invoke(cli.cli, ["report", of, "--format", form], standalone_mode=False)
    assert done.exception is None and "stand-in" in done.output
    assert not CANARY.search(done.output.encode())


def test_a_packed_run_holds_none(sealed: Sealed, tmp_path: Path) -> None:
    pack(sealed.run.folder, tmp_path / "run.tar.gz")
    shutil.unpack_archive(tmp_path / "run.tar.gz", tmp_path / "out", filter="data")
    assert len(list((tmp_path / "out").rglob("server.log"))) == 6 and told(tmp_path / "out") == []


@pytest.mark.parametrize("number", [0, 1])
def test_messages_hold_none(number: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    text = "the engine said hf_token='canary01-of-the-hub' of http://me:canary02@proxy and canary03/secret+key"
    raised = [cli.SpecrunError(text, text), RuntimeError(text)][number]
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "canary03/secret+key")
    monkeypatch.setattr(cli, "cli", lambda **_: (_ for _ in ()).throw(raised))
    with pytest.raises(SystemExit):
        cli.main()
    said = capsys.readouterr()
    assert "the engine said" in said.err and not CANARY.search((said.out + said.err).encode())


def test_credentials_go_before_a_text_is_cut_short() -> None:
    text = "x" * 280 + " api_key=" + "canary01-" * 9
    assert drive.words_kept(text, False) == ("x" * 280 + " api_key=redacted")[:300]
    assert drive.words_kept("HTTP 400: the prompt canary10 is too long", True) == "HTTP 400"


def test_the_cause_of_a_failed_start_holds_none_and_its_log_neither(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_bytes(b"INFO ok\r\nValueError: bad api_key=canary01 for \xff\r\n")
    assert launch.cause(log) == "ValueError: bad api_key=redacted for \ufffd"
    launch.mask_log(log)
    assert log.read_bytes() == b"INFO ok\r\nValueError: bad api_key=redacted for \xff\r\n"
    assert list(tmp_path.iterdir()) == [log]


def test_a_log_is_cleaned_when_its_server_ends_however_the_run_goes_on(tmp_path: Path) -> None:
    (tmp_path / "socket").touch()
    words = ["/bin/sh", "-c", "echo api_key=canary01; exec sleep 60"]
    with pytest.raises(RuntimeError), launch.server(words, {}, tmp_path / "socket", tmp_path / "log", healthy=lambda _: True):
        while not (tmp_path / "log").stat().st_size:
            time.sleep(0.01)
        raise RuntimeError
    assert (tmp_path / "log").read_text() == "api_key=redacted\n"


def test_a_killed_runs_logs_are_cleaned_when_it_is_finished(sealed: Sealed, tmp_path: Path) -> None:
    folder = shutil.copytree(sealed.run.folder, tmp_path / sealed.run.folder.name)
    shutil.copytree(folder / "b02", folder / "b02.void1")
    with (folder / "b02.void1" / "pair" / "server.log").open("a") as stream:
        stream.write("INFO password: canary01\n")
    entry.finish(run.load(folder))
    assert told(folder) == []


# --- the rules, one by one ---

TEXTS = {
    "{'hf_token': 'x', 'api_key': ['a', 'b'], 'model': 'm'}": "{'hf_token': redacted, 'api_key': redacted, 'model': 'm'}",
    "hf_token=None, seed=0, password=''": "hf_token=None, seed=0, password=''",
    "Authorization: Bearer abcdefgh": "Authorization: redacted",
    "sent with Bearer abcdefgh.ij": "sent with Bearer redacted",
    "--api-key abc --port 1": "--api-key redacted --port 1",
    "AWS_SECRET_ACCESS_KEY=ab/c+d x": "AWS_SECRET_ACCESS_KEY=redacted x",
    "x-api-key: zz; cookie: a=b; path=/": "x-api-key: redacted; cookie: redacted; path=/",
    "http://user:word@host:1/x, https://tok@github.com/a": "http://redacted@host:1/x, https://redacted@github.com/a",
    "key hf_abcdefghijklmnopqrst and AKIAABCDEFGHIJKLMNOP": "key redacted and redacted",
    "a\n-----BEGIN OPENSSH PRIVATE KEY-----\nabc\n-----END OPENSSH PRIVATE KEY-----\nb": "a\nredacted\nb",
    "-----BEGIN PRIVATE KEY-----\ncut off": "redacted",
    "eos_token='</s>', max_tokens=5, 3.4 s per token: 7": "eos_token='</s>', max_tokens=5, 3.4 s per token: 7",
    "use_auth_token is old, secrets, kv_cache_dtype=auto": "use_auth_token is old, secrets, kv_cache_dtype=auto",
    "mail me@host, a@b": "mail me@host, a@b",
}


@pytest.mark.parametrize("text", TEXTS)
def test_credentials_are_told_by_name_and_form(text: str) -> None:
    assert without(text) == TEXTS[text]
    assert without(TEXTS[text]) == TEXTS[text]


def test_values_of_the_environment_are_found_anywhere() -> None:
    environment = {
        "MY_API_KEY": "quite-secret",
        "LONG_TOKEN": "quite-secret-2",
        "SHORT_KEY": "1",
        "PATH": "/usr/bin",
        "KEYS": "abcdefgh",
    }
    assert masked("1 quite-secret-2/quite-secret /usr/bin abcdefgh", environment) == "1 redacted/redacted /usr/bin abcdefgh"


def test_credentials_are_redacted_at_any_depth() -> None:
    found = redacted(
        {"a": [{"hf_token": "x", "hub_token": ""}], "api_key": ["k", {"b": "c"}], "token": 5, "max_tokens": "5", "n": None}
    )
    assert found == {
        "a": [{"hf_token": "redacted", "hub_token": ""}],
        "api_key": ["redacted", {"b": "redacted"}],
        "token": 5,
        "max_tokens": "5",
        "n": None,
    }


@pytest.mark.parametrize(
    "piece", ["a-", "api_key=[", "api_key='", "://a", "-----BEGIN ", "secret_", "hf_", "--api-key ", "a" * 30 + "_"]
)
def test_no_text_takes_time_that_grows_with_its_square(piece: str) -> None:
    text, began = piece * (20_000 // len(piece)), time.process_time()
    without(text)
    assert time.process_time() - began < 2  # with `*` for a bounded repetition the first takes 30 s
