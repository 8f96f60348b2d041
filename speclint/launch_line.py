"""Find the lines that start a vLLM server: in shell text, or in a compose or Kubernetes file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import PurePosixPath
from typing import Any

MODULES = ("vllm.entrypoints.openai.api_server", "vllm.entrypoints.api_server")
SHELLS = ("sh", "bash", "dash", "zsh")
TOKEN = re.compile(
    r"(?P<blank>(?:[ \t\r]|\\\r?\n)+)|(?P<comment>\#[^\n]*)|(?P<end>[\n;&|()<>]+)"
    r"""|(?P<word>(?:\$\([^()]*\)|'[^']*'|"(?:\\.|[^"\\])*"|\\.|[^\s;&|()<>])+)""",
    re.DOTALL,
)
PIECE = re.compile(r"""'(?P<single>[^']*)'|"(?P<double>(?:\\.|[^"\\])*)"|(?P<bare>(?:\\.|[^'"\\])+|.)""", re.DOTALL)
VARIABLE = re.compile(r"\$\{(\w+)(?::?-([^}]*))?\}|\$(\w+)|\$\{[^}]*\}|\$\([^()]*\)")
ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
IMAGE = re.compile(r"(?=.*[/:])[\w./-]*vllm[\w./-]*(?::[\w.-]+)?(?:@sha256:\w+)?")
UNSET = "\0"
"""Stands before a variable or command whose value the text does not give; no word of a shell can contain it."""
KUBERNETES = re.compile(r"\$\((\w+)\)")


@dataclass(frozen=True, slots=True)
class LaunchLine:
    """The server's own words (a model may come first, as a bare word) and the variables that it is started with."""

    words: tuple[str, ...]
    env: dict[str, str] = field(default_factory=dict)
    image: str = ""


def launch_lines(text: str) -> list[LaunchLine]:
    """Every line in a text that starts a server; YAML with containers is read as such, all else as shell."""
    containers = [container for document in _yaml(text) for container in _containers(document)]
    if containers:
        return [line for container in containers for line in _of_container(container)]
    return list(_of_shell(text))


def _yaml(text: str) -> list[Any]:
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        return list(YAML(typ="safe", pure=True).load_all(text))
    except (YAMLError, ValueError):
        return []


def _containers(node: Any) -> Iterator[dict[str, Any]]:
    if isinstance(node, dict):
        if {"command", "args", "entrypoint"} & node.keys():
            yield node
        for child in node.values():
            yield from _containers(child)
    elif isinstance(node, list):
        for child in node:
            yield from _containers(child)


def _of_container(container: Mapping[str, Any]) -> Iterator[LaunchLine]:
    env, image = _environment(container), str(container.get("image", ""))
    parts = [container[key] for key in ("entrypoint", "command", "args") if container.get(key)]
    words = [word for part in parts for word in _part(part, env)]
    for line in _of_words(words, env):
        yield replace(line, image=image)
    if not _server_words(words) and "vllm" in image and not _script(words):
        yield LaunchLine(tuple(words), env, image)


def _part(part: Any, env: Mapping[str, str]) -> list[str]:
    """The words of a command; compose splits a string as a shell does, and Kubernetes fills in `$(NAME)`."""
    if isinstance(part, list):
        return [_filled(KUBERNETES.sub(lambda m: env.get(m[1], m[0]), str(word)), env) for word in part]
    return [word for _, words in _statements(str(part).replace("\n", " "), dict(env)) for word in words]


def _environment(container: Mapping[str, Any]) -> dict[str, str]:
    """`environment` of compose (mapping or list of NAME=value) or `env` of Kubernetes; values from elsewhere are blank."""
    given = container.get("environment") or container.get("env") or {}
    if isinstance(given, dict):
        return {str(name): "" if value is None else str(value) for name, value in given.items()}
    rows = given if isinstance(given, list) else []
    named = ((row.get("name"), row.get("value", "")) if isinstance(row, dict) else str(row).partition("=")[::2] for row in rows)
    return {str(name): str(value) for name, value in named if name is not None}


def _of_shell(text: str, env: Mapping[str, str] | None = None) -> Iterator[LaunchLine]:
    for exported, words in _statements(text, dict(env or {})):
        yield from _of_words(words, {**(env or {}), **exported})


def _of_words(words: list[str], env: Mapping[str, str]) -> Iterator[LaunchLine]:
    script = _script(words)
    if script:
        yield from _of_shell(script, env)
    elif (found := _server_words(words)) is not None:
        yield LaunchLine(tuple(words[found:]), {**env, **_docker_env(words[:found])}, "")
    elif (found := _image(words)) is not None:
        yield LaunchLine(tuple(words[found + 1 :]), {**env, **_docker_env(words[:found])}, words[found])


def _script(words: list[str]) -> str:
    """The text that `sh -c` is given, or nothing."""
    for index, word in enumerate(words[:-1]):
        if re.fullmatch(r"-\w*c", word) and PurePosixPath(words[index - 1]).name in SHELLS and index:
            return words[index + 1]
    return ""


def _server_words(words: list[str]) -> int | None:
    """Index of the server's first own word, if these words start one."""
    for index, word in enumerate(words):
        if word in MODULES or word.endswith("vllm/entrypoints/openai/api_server.py"):
            return index + 1
        if PurePosixPath(word).name == "vllm" and words[index + 1 : index + 2] == ["serve"]:
            return index + 2
    return None


def _image(words: list[str]) -> int | None:
    """Index of a vLLM image after `docker run`: its entry point is the server."""
    if "run" not in words or PurePosixPath(words[0]).name not in ("docker", "podman", "nerdctl", "sudo"):
        return None
    begin = words.index("run")
    return next((i for i, word in enumerate(words) if i > begin and not word.startswith("-") and IMAGE.fullmatch(word)), None)


def _docker_env(words: list[str]) -> dict[str, str]:
    given = [after for word, after in pairwise(words) if word in ("-e", "--env")]
    given += [word.removeprefix("--env=") for word in words if word.startswith("--env=")]
    return {match[1]: match[2] for word in given if (match := ASSIGNMENT.fullmatch(word))}


def _statements(text: str, variables: dict[str, str]) -> Iterator[tuple[dict[str, str], list[str]]]:
    """Each simple command of a script: what its environment was given by the script, and its words, expanded."""
    exported: dict[str, str] = {}
    for raw in _commands(text):
        words = [word for token in raw for word in _expanded(token, variables)]
        own = {}
        keyword = words[:1] in (["export"], ["env"])
        rest = words[1:] if keyword else words
        while rest and (match := ASSIGNMENT.fullmatch(rest[0])):
            own[match[1]] = match[2]
            rest = rest[1:]
        if rest:
            yield {**exported, **own}, rest
            continue
        variables.update(own)
        exported.update(own if keyword else {name: value for name, value in own.items() if name in exported})


def _commands(text: str) -> Iterator[list[str]]:
    words: list[str] = []
    for token in TOKEN.finditer(text):
        if token.lastgroup == "word":
            words.append(token.group())
        elif token.lastgroup == "end" and words:
            yield words
            words = []
    if words:
        yield words


def _expanded(raw: str, variables: Mapping[str, str]) -> list[str]:
    """A raw shell word without its quotes and with known variables filled in; a bare variable may be several words."""
    if VARIABLE.fullmatch(raw):
        return _filled(raw, variables).split()
    return ["".join(_piece(piece, variables) for piece in PIECE.finditer(raw))]


def _piece(piece: re.Match[str], variables: Mapping[str, str]) -> str:
    if piece["single"] is not None:
        return piece["single"]
    quoted = piece["double"] is not None
    escape = r'\\([$`"\\])' if quoted else r"\\(.)"
    text = piece["double"] if quoted else piece["bare"]
    # every odd part is an escaped character, which is no variable
    parts = re.split(escape, re.sub(r"\\\r?\n", "", text), flags=re.DOTALL)
    return "".join(part if index % 2 else _filled(part, variables) for index, part in enumerate(parts))


def _filled(text: str, variables: Mapping[str, str]) -> str:
    def value(match: re.Match[str]) -> str:
        return variables.get(match[1] or match[3], UNSET + match[0] if match[2] is None else match[2])

    return VARIABLE.sub(value, text)
