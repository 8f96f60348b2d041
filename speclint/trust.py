"""Who may approve and sign: `speclint.toml`, found upwards from the spec file."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

CONFIG = "speclint.toml"
KEYS = {"trust": {"allowed_signers", "revoked"}, "approvals": {"min", "other_than_signer"}}


class Trust(NamedTuple):
    """Allowed signers, revoked keys and how many approvals a run needs."""

    allowed_signers: Path | None = None
    revoked: Path | None = None
    min_approvals: int = 1
    other_than_signer: bool = False
    source: Path | None = None
    """The speclint.toml this comes from."""
    problem: str = ""
    """Why nothing can be trusted: the policy exists and cannot be read, so nothing passes."""
    absent: str = "no speclint.toml was found"
    """What to say where there is no policy."""


def load_trust(start: Path) -> Trust:
    """Trust for the spec file (or folder) `start`: the nearest speclint.toml upwards, at most up to the repository's top."""
    for folder in _upwards(start.resolve()):
        if (folder / CONFIG).is_file():
            return _read(folder / CONFIG)
        if (folder / ".git").exists():
            break
    return Trust()


def _upwards(start: Path) -> list[Path]:
    folder = start if start.is_dir() else start.parent
    return [folder, *folder.parents]


def _read(path: Path) -> Trust:
    import tomllib  # not paid for where there is no such file

    try:
        with path.open("rb") as file:
            config = tomllib.load(file)
    except (OSError, ValueError) as error:
        return Trust(source=path, problem=f"{path} cannot be read: {error}")
    problem = _malformed(config)
    return Trust(source=path, problem=f"{path}: {problem}") if problem else _trust(path, config)


def _trust(path: Path, config: dict[str, Any]) -> Trust:
    trust, approvals = config.get("trust", {}), config.get("approvals", {})
    files = {key: path.parent / trust[key] for key in KEYS["trust"] if key in trust}
    missing = sorted(str(file) for file in files.values() if not file.is_file())
    return Trust(
        allowed_signers=files.get("allowed_signers"),
        revoked=files.get("revoked"),
        min_approvals=approvals.get("min", 1),
        other_than_signer=approvals.get("other_than_signer", False),
        source=path,
        problem=f"{path} names {missing[0]}, which is not there" if missing else "",
    )


def _malformed(config: dict[str, Any]) -> str:
    """What is wrong with the tables of ours; tables of others are left alone."""
    for table, keys in KEYS.items():
        section = config.get(table, {})
        if not isinstance(section, dict):
            return f"[{table}] is not a table"
        for key, value in section.items():
            if key not in keys:
                return f"[{table}] has no key {key!r}; known are {', '.join(sorted(keys))}"
            if not _fits(key, value):
                return f"[{table}] {key} = {value!r} is not {WANTED[key]}"
    return ""


WANTED = {"min": "a count of at least 0", "other_than_signer": "true or false"} | dict.fromkeys(
    ("allowed_signers", "revoked"), "a path relative to this file"
)


def _fits(key: str, value: Any) -> bool:
    if key == "min":
        return type(value) is int and value >= 0
    return isinstance(value, bool if key == "other_than_signer" else str)
