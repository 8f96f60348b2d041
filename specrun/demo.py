"""`specrun demo`: the whole story on the example pair, with a key made for it. Real vLLM, real models, real requests."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import click

from specrun import session
from specrun.errors import EnvironmentTrouble, SpecrunError

SPEC = "tiny-draft.spec.yaml"
PRINCIPAL = "demo@example.com"
KEYGEN = ("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", PRINCIPAL)


def demo(into: Path, python: str) -> int:
    """Lint, lock, approve, run, sign, append, verify and report; 0 if every step worked, whatever the verdicts are."""
    examples = _examples()
    spec = _workplace(examples, into)
    _say("A pair spec says what the pair is and how it will be judged", f"$ cat {spec}")
    click.echo(spec.read_text(encoding="utf-8"))
    _speclint("Check it, without a GPU and without vLLM: one thing is missing, the lock", "check", str(spec), expected=1)
    _speclint("Write down what the model files really are", "lock", str(spec))
    _speclint("Check again, now also the vocabularies, id by id", "check", str(spec))
    _specrun(
        "Approve it: sign the criteria before there is any result", "approve", str(spec), "--key", str(into / "key"), "--yes"
    )
    _say("Run it: target alone against target plus draft, on real vLLM", f"$ specrun run {spec} --key {into / 'key'}")
    status = session.execute(spec, key=into / "key", signer=None, quiet=False, python=python, runs=into / "runs")
    if status not in (0, 10, 11):
        raise SpecrunError(f"the run ended with status {status}: the pair was not established", "see the checks above")
    _speclint("The file now holds a signed result; the linter checks it too", "check", str(spec))
    _specrun("And anybody can recompute it", "verify", str(spec), "--records", str(into / "runs"))
    page = ("--format", "html", "-o", str(into / "report.html"))
    _specrun("The same as a page, with figures", "report", str(spec), *page)
    click.echo(f"\nDone. Verdicts are in the report above (status {status}: 0 all met, 10 one not met, 11 one undecided).")
    click.echo(f"Look at {spec} and {into / 'report.html'}; `specrun report {spec}` prints the report again.")
    return 0


def _examples() -> Path:
    """The examples folder of the checkout this program runs from, or of the current folder."""
    for folder in (Path("examples"), Path(__file__).resolve().parent.parent / "examples"):
        if (folder / SPEC).is_file():
            return folder
    raise EnvironmentTrouble("the examples are not here", "run the demo from a checkout of the project")


def _workplace(examples: Path, into: Path) -> Path:
    """A fresh folder with the spec, its models, a new key and the trust that goes with it. An older demo is moved aside."""
    if into.exists():
        if not (into / SPEC).is_file():
            raise SpecrunError(f"{into} exists and is no demo folder", "name another with --into")
        number = sum(1 for _ in into.parent.glob(into.name + ".old*")) + 1
        into.rename(into.with_name(f"{into.name}.old{number}"))
    into.mkdir(parents=True)
    shutil.copytree(examples / "models", into / "models", ignore=shutil.ignore_patterns("*.py"))
    if (examples / "prompts").is_dir():
        shutil.copytree(examples / "prompts", into / "prompts")
    text = (examples / SPEC).read_text(encoding="utf-8")
    text = text.replace("$schema=../schemas/", "$schema=" + str(Path(__file__).resolve().parent.parent / "schemas") + "/")
    (into / SPEC).write_text(text.partition("\nlock:")[0].rstrip() + "\n", encoding="utf-8")
    try:
        subprocess.run([*KEYGEN, "-f", str(into / "key")], check=True, timeout=60)
    except (OSError, subprocess.SubprocessError) as error:
        raise EnvironmentTrouble(f"no key could be made: {error}", "install OpenSSH (ssh-keygen)") from error
    public = " ".join((into / "key.pub").read_text(encoding="utf-8").split()[:2])
    line = f'{PRINCIPAL} namespaces="pair-spec-approval,pair-spec-result" {public}\n'
    (into / "allowed_signers").write_text(line, encoding="utf-8")
    (into / "speclint.toml").write_text('[trust]\nallowed_signers = "allowed_signers"\n', encoding="utf-8")
    return into / SPEC


def _say(title: str, command: str) -> None:
    click.echo(f"\n== {title}\n{command}", err=False)


def _speclint(title: str, *words: str, expected: int = 0) -> None:
    _tool(title, "speclint", words, expected)


def _specrun(title: str, *words: str) -> None:
    _tool(title, "specrun", words, 0)


def _tool(title: str, name: str, words: tuple[str, ...], expected: int) -> None:
    _say(title, f"$ {name} {' '.join(words)}")
    sys.stdout.flush()
    code = f"from {name}.__main__ import main; main()"
    done = subprocess.run([sys.executable, "-c", code, *words], check=False)
    if done.returncode != expected:
        raise SpecrunError(f"`{name} {' '.join(words)}` ended with status {done.returncode}", "its message is above")
