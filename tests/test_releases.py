"""Release files: against another extraction of the same wheels, against the installed vLLM, and against made-up wheels."""

from __future__ import annotations

import ast
import importlib.util
import io
import json
import random
import re
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from speclint import releases
from speclint.data import schemas_path
from speclint.release_import import import_installed, import_wheel
from speclint.release_text import dump
from speclint.release_values import refusals
from speclint.releases import Defect, Release, compare, diff, in_range, known, load, nearest, write

RANGES = json.loads((Path(__file__).parent / "data" / "vllm_ranges.json").read_text(encoding="utf-8"))
HAS_VLLM = importlib.util.find_spec("vllm") is not None
needs_vllm = pytest.mark.skipif(not HAS_VLLM, reason="vLLM is not installed")


def release(version: str) -> Release:
    found = load(version)
    assert found is not None, version
    return found


# Versions


@pytest.mark.parametrize(
    ("a", "b", "order"),
    [("0.9.2", "0.10.0", -1), ("0.10.1", "0.10.1.1", -1), ("0.8.5", "0.8.5.post1", -1), ("0.33.0", "0.33.0", 0)],
)
def test_releases_are_ordered_by_number(a: str, b: str, order: int) -> None:
    assert (compare(a, b), compare(b, a)) == (order, -order)


@pytest.mark.parametrize("version", ["0.10", "v0.10.0", "0.33.0rc1", "latest", "0.33.0+cpu", ""])
def test_what_is_no_exact_release_has_no_order(version: str) -> None:
    assert load(version) is None
    with pytest.raises(ValueError, match="exact release"):
        compare(version, "0.33.0")


def test_a_post_release_lies_where_the_release_it_repackages_does() -> None:
    assert in_range("0.9.0.post2", "0.9.0", "0.9.0")
    assert not in_range("0.9.0.1", "0.9.0", "0.9.0")
    assert in_range("0.34.0", "0.33.0", None) and not in_range("0.32.0", "0.33.0", None)
    assert release("0.11.0.post2").version == "0.11.0.post2"
    assert release("0.11.0.post2").raw == release("0.11.0").raw


def test_every_release_of_the_index_is_there_oldest_first() -> None:
    expected = [version for version in RANGES["releases"] if in_range(version, "0.8.2", None)]
    assert set(expected) <= set(known())
    assert known()[0] == "0.8.2" and list(known()).index("0.10.0") > list(known()).index("0.9.2")


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("0.25.2", "0.25.1"),
        ("0.34.0", "0.33.0"),
        ("v0.32.0", "0.32.0"),
        ("0.20", "0.20.0"),
        ("0.33.0rc1", "0.33.0"),
        ("0.8.5.post3", "0.8.5.post1"),
        ("latest", "0.33.0"),
    ],
)
def test_the_nearest_release_is_offered_first(typed: str, offered: str) -> None:
    assert nearest(typed)[0] == offered


# Shape


@pytest.mark.parametrize("version", known())
def test_a_release_file_has_its_shape_and_layout(version: str) -> None:
    schema = json.loads((schemas_path() / "release.schema.json").read_text(encoding="utf-8"))
    text = (releases.folder() / f"{version}.json").read_text(encoding="utf-8")
    jsonschema.Draft202012Validator(schema).validate(json.loads(text))
    assert dump(json.loads(text)) == text
    assert json.loads(text)["version"] == version
    assert len(text) < 50_000


@pytest.mark.parametrize("version", known())
def test_every_part_of_a_release_can_be_read(version: str) -> None:
    found = release(version)
    for name in (n for n, v in vars(Release).items() if isinstance(v, property)):
        assert getattr(found, name) is not None, name
    for line in (*found.fallback_lines, *found.healthy_lines):
        re.compile(line.pattern)
    assert {d.id for d in found.defects if not found.in_range(d.first, d.last)} == set()


def test_one_release_is_loaded_in_under_three_milliseconds_and_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[Path] = []
    read = Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda self: opened.append(self) or read(self))

    def once() -> float:
        load.cache_clear()
        begin = time.perf_counter()
        release("0.33.0")
        return time.perf_counter() - begin

    assert min(once() for _ in range(20)) < 0.003
    assert {path.name for path in opened} == {"0.33.0.json"}


# Against another extraction


def expected_at(table: str, version: str) -> set[str]:
    return {name for name, (first, last) in RANGES[table].items() if in_range(version, first, last)}


def exposed(name: str) -> str:
    is_gauge = name.endswith(("_rate", "_efficiency"))
    return name if is_gauge or name.endswith("_total") else f"{name}_total"


def differences(found: Release) -> Iterator[str]:
    """What a release file says otherwise than the digest of the other extraction."""
    version = found.version
    schema = found.speculative_config
    ours = {
        "settings": {*schema["properties"], *schema["x-internal"]},
        "flags": {f for f in found.flags if f in RANGES["flags"]},
        "engine_args": found.engine_args.keys() & RANGES["engine_args"].keys(),
        "metrics": {n for n in found.raw["metric_names"] if "spec_decode" in n},
        **{k: set(found.settings.get(k, {}).get("enum", [])) for k in ("rejection_sample_method", "draft_sample_method")},
    }
    if in_range(version, "0.8.5", None):
        ours["methods"] = set(found.methods)
    for table, have in ours.items():
        want = expected_at(table, version)
        want = {exposed(name) for name in want} if table == "metrics" else want
        yield from (f"{version} {table}: {name} is missing" for name in want - have)
        yield from (f"{version} {table}: {name} is too many" for name in have - want)
    for name, setting in found.settings.items():
        yield from setting_differences(version, name, setting)


def setting_differences(version: str, name: str, setting: dict[str, Any]) -> Iterator[str]:
    turns = [turn for turn in RANGES["defaults"].get(name, []) if in_range(version, turn[0], None)]
    if not turns:
        return
    _, annotation, default, limits = turns[-1]
    value = ast.literal_eval(default) if re.match(r"['\d\[TFN-]", default) else default
    if setting.get("default") != value:
        yield f"{version} {name}: default {setting.get('default')!r}, expected {value!r}"
    words = {"gt": "exclusiveMinimum", "ge": "minimum"}
    for key, limit in json.loads(limits).items():
        if key in words and setting.get(words[key]) != int(limit):
            yield f"{version} {name}: {words[key]} {setting.get(words[key])!r}, expected {limit}"
    simple = {"int": "integer", "bool": "boolean", "float": "number", "str": "string"}
    if annotation in simple and setting.get("type") != simple[annotation]:
        yield f"{version} {name}: type {setting.get('type')!r}, expected {simple[annotation]!r}"


@pytest.mark.parametrize("version", [v for v in known() if v in RANGES["releases"]])
def test_a_release_file_agrees_with_another_extraction(version: str) -> None:
    assert list(differences(release(version))) == []


def test_the_comparison_sees_what_differs() -> None:
    raw = json.loads(json.dumps(release("0.33.0").raw))
    raw["speculative_config"]["properties"].pop("use_heterogeneous_vocab")
    raw["speculative_config"]["properties"]["max_model_len"].update(default=7, minimum=0)
    raw["metric_names"].remove("vllm:spec_decode_num_drafts_total")
    raw["methods"].append("medusa")
    assert sorted(differences(Release("0.33.0", raw))) == [
        "0.33.0 max_model_len: default 7, expected None",
        "0.33.0 max_model_len: minimum 0, expected 1",
        "0.33.0 methods: medusa is too many",
        "0.33.0 metrics: vllm:spec_decode_num_drafts_total is missing",
        "0.33.0 settings: use_heterogeneous_vocab is missing",
    ]


# What the reference tables say, one row a turn


@pytest.mark.parametrize(
    ("version", "fate"),
    [
        ("0.8.2", "type_error"),
        ("0.9.0.1", "type_error"),
        ("0.9.1", "dropped"),
        ("0.15.1", "dropped"),
        ("0.16.0", "refused"),
        ("0.33.0", "refused"),
    ],
)
def test_unknown_keys(version: str, fate: str) -> None:
    assert release(version).unknown_keys == fate


EAGLES = {"eagle", "eagle3", "mtp"}


@pytest.mark.parametrize(
    ("version", "breadth", "served"),
    [
        ("0.12.0", "none", EAGLES),
        ("0.20.2", "none", EAGLES),
        ("0.22.0", "listed", EAGLES),
        ("0.24.0", "listed", EAGLES | {"dflash"}),
        ("0.25.0", "dense", EAGLES | {"dflash", "dspark"}),
        ("0.28.0", "dense", EAGLES | {"dflash", "dspark"}),
        ("0.29.0", "all", EAGLES | {"dflash", "dspark", "extract_hidden_states"}),
        ("0.31.0", "all", EAGLES | {"dflash", "dspark", "extract_hidden_states", "draft_model"}),
        ("0.32.0", "all", EAGLES | {"dflash", "dspark", "extract_hidden_states", "draft_model", "ngram", "ngram_gpu"}),
    ],
)
def test_which_methods_the_v2_runner_serves(version: str, breadth: str, served: set[str]) -> None:
    found = release(version)
    names = found.methods - found.method_aliases.keys() - set(found.runner["v2_refuses"])
    assert (found.runner["v2_default_for"], names - {"extract_hidden_states"}) == (breadth, served - {"extract_hidden_states"})


def test_what_only_one_runner_does() -> None:
    assert release("0.11.2").runner["v2_env"] is None
    assert release("0.33.0").runner["v2_refuses"] == ["custom_class", "suffix"]
    assert "heterogeneous-vocabulary draft models" in release("0.32.0").runner["v2_refuses_features"]
    assert "heterogeneous-vocabulary draft models" not in release("0.31.0").runner["v2_refuses_features"]
    assert release("0.33.0").runner["v1_refuses"] == ["dspark"]
    assert release("0.23.0").runner["v2_architectures"] == ["LlamaForCausalLM", "MistralForCausalLM", "Qwen3ForCausalLM"]


@pytest.mark.parametrize(
    ("version", "role", "name"),
    [
        ("0.33.0", "inter_token_latency", "vllm:inter_token_latency_seconds"),
        ("0.9.2", "inter_token_latency", "vllm:time_per_output_token_seconds"),
        ("0.8.2", "drafts", None),
        ("0.33.0", "drafts", "vllm:spec_decode_num_drafts_total"),
        ("0.33.0", "accepted_per_position", "vllm:spec_decode_num_accepted_tokens_per_pos_total"),
        ("0.8.5", "prefix_cache_hits", "vllm:gpu_prefix_cache_hits_total"),
        ("0.33.0", "cache_config_info", "vllm:cache_config_info"),
    ],
)
def test_metric_names_are_the_exposed_ones(version: str, role: str, name: str | None) -> None:
    assert release(version).metrics[role] == name


def test_every_role_has_a_metric_in_every_release_that_drafts_on_v1() -> None:
    late = [release(v) for v in known() if in_range(v, "0.8.5", None)]
    assert [(r.version, role) for r in late for role, name in r.metrics.items() if name is None] == []


def test_flags_follow_the_arguments() -> None:
    assert "--speculative-model" in release("0.8.2").flags
    assert "--speculative-model" not in release("0.8.3").flags
    assert {"--speculative-config", "-sc", "--spec-tokens", "--max-num-seqs", "--uds"} <= release("0.33.0").flags
    assert "--model-weights" not in release("0.33.0").flags
    assert "-sc" not in release("0.18.1").flags and "-sc" in release("0.19.0").flags
    assert (release("0.25.1").speculative_config["x-hyphens"], release("0.26.0").speculative_config["x-hyphens"]) == (False, True)


def test_log_lines_of_the_release_and_the_device() -> None:
    triton = "WARNING vllm.py:726 Model Runner V2 requires Triton; using the V1 model runner instead."
    found = release("0.32.0")
    assert [any(x.matches(triton, device) for x in found.fallback_lines) for device in ("cpu", "cuda")] == [False, True]
    assert any(line.matches(triton, "cpu") for line in found.healthy_lines)
    shortened = (
        "The draft model's max_model_len (64) is smaller than the target model's (128) and … reducing max_model_len to 64."
    )
    assert any(line.matches(shortened, "cuda") for line in release("0.33.0").fallback_lines)
    assert not any(line.matches(shortened, "cuda") for line in found.fallback_lines)


def test_every_hand_kept_line_stands_in_some_release() -> None:
    table = json.loads((releases.folder() / "by_hand.json").read_text(encoding="utf-8"))
    for key in ("fallback_lines", "healthy_lines"):
        kept = {row["pattern"] for version in known() for row in release(version).raw[key]}
        assert kept == {row["pattern"] for row in table[key]}


def test_a_configuration_path_is_kept_where_the_release_has_the_field() -> None:
    path = "/vllm_config/scheduler_config/max_num_scheduled_tokens"
    assert path in release("0.26.0").config_diff["expected"]
    assert path in release("0.32.0").config_diff["derived"]
    assert path not in release("0.13.0").config_diff["derived"]
    assert "/vllm_config/instance_id" in release("0.32.0").config_diff["ignored"]


# Defects


def spec(**changes: Any) -> dict[str, Any]:
    speculative = {"method": "draft_model", **changes.pop("speculative", {})}
    return {
        "pair": {"speculative": speculative, "placement": {"device": changes.pop("device", "cuda")}, **changes},
        "protocol": {"sampling": {"temperature": changes.pop("temperature", 0.0)}},
    }


def applying(version: str, document: dict[str, Any]) -> set[str]:
    return {defect.id for defect in release(version).defects if defect.applies(document)}


def test_a_defect_applies_where_its_condition_holds() -> None:
    mixed = spec(speculative={"use_heterogeneous_vocab": True, "use_local_argmax_reduction": True})
    assert "heterogeneous-bypassed-by-local-argmax" in applying("0.32.0", mixed)
    assert "heterogeneous-bypassed-by-local-argmax" not in applying("0.33.0", mixed)
    assert "heterogeneous-ignored-by-v2" in applying("0.31.0", mixed)
    assert "heterogeneous-ignored-by-v2" not in applying(
        "0.31.0", spec(device="cpu", speculative={"use_heterogeneous_vocab": True})
    )
    v1 = spec(speculative={"use_heterogeneous_vocab": True}, env={"VLLM_USE_V2_MODEL_RUNNER": "0"})
    assert "heterogeneous-ignored-by-v2" not in applying("0.31.0", v1)


def test_a_plain_greedy_pair_meets_no_defect() -> None:
    unmet = [(v, applying(v, spec(speculative={"num_speculative_tokens": 3}))) for v in known()]
    assert [row for row in unmet if row[1]] == []


def test_each_way_to_state_a_condition() -> None:
    def one(**test: Any) -> Defect:
        row = release("0.33.0").raw["defects"][0]
        return Defect(**{**row, "when": ({"path": "/a/b", **test},)})

    table = [({"is": [1]}, 1, 2), ({"not": [1]}, 2, 1), ({"above": 0}, 0.5, 0), ({"present": True}, 1, None)]
    for test, yes, no in table:
        assert one(**test).applies({"a": {"b": yes}}), test
        assert not one(**test).applies({"a": {"b": no}}), test
    assert not one(above=0).applies({"a": ["not", "a", "mapping"]})
    assert one(present=False).applies({})


# Diff and write


def test_diff_names_what_turned() -> None:
    lines = diff("0.32.0", "0.33.0")
    assert "- methods medusa" in lines and "- methods mlp_speculator" in lines
    assert any(line.startswith("+ settings fly_window_size") for line in lines)
    assert any(line.startswith("~ settings rejection_sample_method") and "+fly" in line for line in lines)
    assert "- defects heterogeneous-bypassed-by-local-argmax" in lines
    assert diff("0.33.0", "0.33.0") == []
    assert [line for line in diff("0.15.1", "0.16.0") if "unknown_keys" in line] == ['~ unknown_keys: "dropped" -> "refused"']
    with pytest.raises(KeyError):
        diff("0.33.0", "9.9.9")


def test_the_layout_is_the_same_whatever_the_order() -> None:
    assert dump({"b": {"d": 1, "c": 2}, "a": []}) == '{"a": [], "b": {"c": 2, "d": 1}}\n'
    long = {"z": ["word"] * 40, "a": "x" * 100}
    assert dump(long) == dump(dict(reversed(long.items())))
    assert max(len(line) for line in dump(long).splitlines()) <= 120


def test_write_gives_back_what_was_read(tmp_path: Path) -> None:
    raw = release("0.32.0").raw
    path = write(raw, tmp_path)
    assert path == tmp_path / "0.32.0.json"
    assert json.loads(path.read_text(encoding="utf-8")) == raw
    assert path.read_bytes() == (releases.folder() / "0.32.0.json").read_bytes()


# Made-up wheels: a release that does not exist yet needs no code

SPECULATIVE = """
import torch
from typing import Literal, Optional
from vllm.config.parallel import ParallelConfig
from vllm.config.utils import config
{imports}
Family = Literal["eagle", "mtp"]
Method = Literal["ngram", "brand_new", Family]
LIMIT = 9

{decorator}
class SpeculativeConfig:
    num_speculative_tokens: int = Field(default=None, gt=0)
    method: Optional[Method] = None
    depth: "int | None" = 24
    share: float = Field(default=0.5, ge=0, le=1)
    top: int = LIMIT
    pairs: list[tuple[int, int]] | None = None
    wrong_name: int | None = None
    target_parallel_config: ParallelConfig = None

    def check(self):
        if self.wrong_name is not None:
            raise ValueError("use another")
        if self.method == "ngram":
            if self.top < 1:
                raise ValueError("top")
        if self.unrelated:
            if self.top < 5:
                raise ValueError("only sometimes")
"""
ARGUMENTS = """
from vllm.config import ParallelConfig
class EngineArgs:
    tensor_parallel_size: int = ParallelConfig.tensor_parallel_size
    def create_speculative_config(self):
        self.speculative_config.update({"filled_by_engine": 1})
    @staticmethod
    def add_cli_args(parser):
        parser.add_argument("--tensor-parallel-size", "-tp", **kwargs)
"""
RUNNER = """
class VllmConfig:
    def use_v2_model_runner(self):
        return True

    def _get_v2_model_runner_unsupported_features(self):
        if speculative_config is not None:
            if speculative_config.method not in ("eagle", "mtp"):
                unsupported.append(f"speculative method '{speculative_config.method}'")
            if speculative_config.method == "eagle" and self.is_parallel:
                unsupported.append("EAGLE with pipeline parallelism")

    def _get_v1_model_runner_unsupported_features(self):
        if self.speculative_config:
            if self.speculative_config.method in ("mtp",):
                unsupported.append("mtp drafts")
"""
LOGGERS = """
class Loggers:
    def __init__(self):
        self.a = self._counter_cls(name="vllm:prompt_tokens")
        counter_specs = [("vllm:spec_decode_num_drafts", "Drafts.")]
        self.b = self._histogram_cls("vllm:inter_token_latency_seconds")
        log("vllm:not_a_metric")
"""
FORBIDDING = """
from pydantic.dataclasses import dataclass
@overload
def config(cls): ...
def config(cls=None, *, config=None):
    merged = ConfigDict(extra="forbid")
    return dataclass(cls, config=merged)
"""


def made_up(decorator: str = "@config", imports: str = "", utils: str = FORBIDDING) -> zipfile.ZipFile:
    archive = zipfile.ZipFile(io.BytesIO(), "w")
    members = {
        "vllm/config/__init__.py": "from .speculative import *\nfrom vllm.config.parallel import ParallelConfig\n",
        "vllm/config/speculative.py": SPECULATIVE.format(decorator=decorator, imports=imports),
        "vllm/config/parallel.py": "class ParallelConfig:\n    tensor_parallel_size: int = Field(default=1, ge=1)\n",
        "vllm/config/utils.py": utils,
        "vllm/config/vllm.py": RUNNER,
        "vllm/envs.py": "VARIABLES = {'VLLM_USE_V2_MODEL_RUNNER': None}",
        "vllm/engine/arg_utils.py": ARGUMENTS,
        "vllm/v1/metrics/loggers.py": LOGGERS,
        "vllm/entrypoints/openai/cli_args.py": "class FrontendArgs:\n    uds: str | None = None\n",
        "vllm-0.34.0+cu130.dist-info/METADATA": "Name: vllm\n",
    }
    for name, text in members.items():
        archive.writestr(zipfile.ZipInfo(name, (2026, 12, 24, 0, 0, 0)), text)
    return archive


def test_a_release_of_tomorrow_is_read_without_code() -> None:
    raw = import_wheel(made_up())
    schema = raw["speculative_config"]
    assert (raw["version"], raw["released"], raw["unknown_keys"]) == ("0.34.0", "2026-12-24", "refused")
    assert raw["methods"] == ["brand_new", "eagle", "mtp", "ngram"]
    assert schema["properties"] == {
        "num_speculative_tokens": {"type": "integer", "exclusiveMinimum": 0},
        "method": {"enum": ["ngram", "brand_new", "eagle", "mtp", None]},
        "depth": {"type": ["integer", "null"], "default": 24},
        "share": {"type": "number", "minimum": 0, "maximum": 1, "default": 0.5},
        "top": {"type": "integer", "default": 9, "x-checked": {"minimum": 1}},
        "pairs": {
            "anyOf": [
                {
                    "type": "array",
                    "items": {
                        "type": "array",
                        "prefixItems": [{"type": "integer"}, {"type": "integer"}],
                        "minItems": 2,
                        "maxItems": 2,
                    },
                },
                {"type": "null"},
            ]
        },
        "wrong_name": {"type": ["integer", "null"]},
    }
    assert schema["x-trap"] == ["wrong_name"]
    assert schema["x-internal"] == ["filled_by_engine", "target_parallel_config"]
    assert raw["engine_args"] == {"tensor_parallel_size": {"type": "integer", "default": 1}}
    assert raw["server_args"] == {"uds": {"type": ["string", "null"]}}
    assert Release("0.34.0", raw).flags == {"--tensor-parallel-size", "-tp", "--uds"}
    assert raw["metric_names"] == [
        "vllm:inter_token_latency_seconds",
        "vllm:prompt_tokens_total",
        "vllm:spec_decode_num_drafts_total",
    ]
    assert raw["metrics"]["drafts"] == "vllm:spec_decode_num_drafts_total"
    assert raw["metrics"]["preemptions"] is None
    assert raw["runner"] == {
        "default": "v2",
        "v2_default_for": "all",
        "v2_architectures": [],
        "v2_env": "VLLM_USE_V2_MODEL_RUNNER",
        "v2_refuses": ["brand_new", "ngram"],
        "v2_refuses_features": ["EAGLE with pipeline parallelism"],
        "v1_refuses": ["mtp"],
        "v1_refuses_features": ["mtp drafts"],
    }
    assert raw["fallback_lines"] == [], "a log line is kept only where the wheel says its words"


@pytest.mark.parametrize(
    ("decorator", "imports", "utils", "fate"),
    [
        ("@dataclass", "from dataclasses import dataclass", "", "type_error"),
        ("@config\n@dataclass", "from dataclasses import dataclass", "def config(cls):\n    return cls\n", "type_error"),
        ("@config\n@dataclass", "from pydantic.dataclasses import dataclass", "def config(cls):\n    return cls\n", "dropped"),
        ('@dataclass(config=ConfigDict(extra="forbid"))', "from pydantic.dataclasses import dataclass", "", "refused"),
    ],
)
def test_what_unknown_keys_lead_to_is_read_from_the_class(decorator: str, imports: str, utils: str, fate: str) -> None:
    assert import_wheel(made_up(decorator, imports, utils))["unknown_keys"] == fate


def test_what_is_no_vllm_wheel_is_refused(tmp_path: Path) -> None:
    other = tmp_path / "other-1.0-py3-none-any.whl"
    with zipfile.ZipFile(other, "w") as archive:
        archive.writestr("other-1.0.dist-info/METADATA", "Name: other\n")
    with pytest.raises(ValueError, match="not a vLLM wheel"):
        import_wheel(other)
    other.write_text("not a zip", encoding="utf-8")
    with pytest.raises(zipfile.BadZipFile):
        import_wheel(other)


# Values


def test_values_are_read_as_the_release_reads_them() -> None:
    now, old, oldest = release("0.33.0"), release("0.13.0"), release("0.8.5")
    assert refusals(now, {"num_speculative_tokens": "3", "use_heterogeneous_vocab": 1, "attention-backend": "flash_attn"}) == {}
    assert refusals(now, {"num_speculative_tokens": 0}) == {"num_speculative_tokens": "exclusiveMinimum is 0"}
    assert refusals(now, {"adaptive_k": 1, "method": "medusa"}) == {
        "adaptive_k": "unknown key",
        "method": "not one of the values allowed",
    }
    assert refusals(old, {"use_heterogeneous_vocab": True}) == {}
    assert refusals(oldest, {"use_heterogeneous_vocab": True, "num_speculative_tokens": "three"}) == {
        "use_heterogeneous_vocab": "unknown key"
    }


# Against the installed vLLM


def installed_packages() -> Path:
    found = importlib.util.find_spec("vllm")
    assert found is not None and found.origin is not None
    return Path(found.origin).parent.parent


@pytest.fixture(scope="module")
def installed() -> Release:
    raw = import_installed(installed_packages())
    return Release(raw["version"], raw)


@needs_vllm
def test_the_installed_vllm_gives_the_shipped_file(installed: Release) -> None:
    shipped = release(installed.version)
    assert {k: v for k, v in installed.raw.items() if k != "released"} == {
        k: v for k, v in shipped.raw.items() if k != "released"
    }


ODD: list[Any] = [
    None, True, False, 0, 1, 2, -1, 3.0, 0.5, 1.5, -0.1, "3", " 3 ", "3.0", "3.5", "1_0", "1e1", "nan", "x", "", "yes", "OFF",
    [], [1], [0.5, "0.2"], ["x"], [[1, 2, 3]], [[1, 2]], [[1, 2, "x"]], [[1, 2, "3"]], [None], {}, "auto", "AUTO",
]  # fmt: skip


FITTING = {"integer": [1, 4, "7"], "number": [0.25, 1], "boolean": [True, "no"], "string": ["x"], "null": [None], "object": [{}]}


def fitting(schema: dict[str, Any]) -> list[Any]:
    """Values that the setting's schema promises to take."""
    types = schema.get("type", [])
    simple = [v for kind in ([types] if isinstance(types, str) else types) for v in FITTING.get(kind, [])]
    return simple + [v for v in schema.get("enum", []) if v is not None]


def settings_drawn(found: Release, count: int) -> Iterator[dict[str, Any]]:
    """Dictionaries with one to three settings of odd or fitting values, some of them unknown keys."""
    draw = random.Random(20)
    names = [*sorted(found.settings), "speculative_token_tree", "enable_adaptive_k"]
    for _ in range(count):
        drawn: dict[str, Any] = {"method": "ngram", "num_speculative_tokens": 3}
        for name in draw.sample(names, draw.randint(1, 3)):
            values = fitting(found.settings.get(name, {}))
            drawn[name] = draw.choice(values) if values and draw.random() < 0.75 else draw.choice(ODD)
        yield drawn


@needs_vllm
def test_what_vllm_accepts_is_accepted_and_what_it_refuses_is_refused(installed: Release) -> None:
    from pydantic import ValidationError
    from vllm.config import SpeculativeConfig

    def refused_by_vllm(settings: dict[str, Any]) -> set[str]:
        try:
            SpeculativeConfig(**settings)
        except ValidationError as error:
            return {str(row["loc"][0]) for row in error.errors() if row["loc"]}
        except Exception:
            return set()  # fields are read before anything else runs: what fails later is no matter of one field
        return set()

    drawn = list(settings_drawn(installed, 600))
    wrong = [(s, theirs, ours) for s in drawn if (theirs := refused_by_vllm(s)) != (ours := set(refusals(installed, s)))]
    assert wrong == []
    verdicts = [bool(refusals(installed, s)) for s in drawn]
    assert 150 < sum(verdicts) < 500, "both verdicts must be well represented"
