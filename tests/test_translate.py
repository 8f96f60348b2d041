"""Launch lines as pairs, and the lines of our own plans back to the pair they were made from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML
from spec_cases import good, lint

from speclint.launch_flags import kinds
from speclint.launch_line import launch_lines
from speclint.releases import load
from speclint.rules.sl416_set_twice import HOMES
from speclint.rules.sl424_tool_owned_argument import OWNED
from speclint.translate import NoLaunchLine, Translation, render, translate
from specrun.plan import argv, arm_words
from specrun.serve_line import serve_line

DRAFT = """'{"model": "Qwen/Qwen3-0.6B", "num_speculative_tokens": 5}'"""


def speculative(line: str) -> dict[str, Any]:
    found: dict[str, Any] = translate(line).pair["speculative"]
    return found


def test_a_plain_line() -> None:
    line = f"vllm serve Qwen/Qwen3-8B -tp 2 --port 8000 --max-model-len 16k --enforce-eager --speculative-config {DRAFT}"
    found = translate(line)
    assert found.pair == {
        "engine": {"name": "vllm"},
        "target": {"model": "Qwen/Qwen3-8B"},
        "speculative": {"method": "draft_model", "model": "Qwen/Qwen3-0.6B", "num_speculative_tokens": 5},
        "vocabulary": {"mode": "shared"},
        "engine_args": {"max_model_len": 16000, "enforce_eager": True},
        "placement": {"device": "cuda", "tensor_parallel_size": 2},
    }
    assert dict(found.dropped) == {"--port": OWNED["port"]}
    assert [path for path, _ in found.assumed] == ["/pair/engine/version", "/pair/speculative/method", "/pair/placement/device"]


RETIRED = """python3 -m vllm.entrypoints.openai.api_server \\
  --model facebook/opt-6.7b --speculative_model facebook/opt-125m \\
  --num_speculative_tokens 5 --speculative-draft-tensor-parallel-size=1 --use-v2-block-manager \\
  --num-lookahead-slots 6 --typical-acceptance-sampler-posterior-alpha 0.3 --speculative-disable-by-batch-size 8
"""


def test_retired_flags() -> None:
    found = translate(RETIRED)
    assert found.pair["speculative"] == {
        "method": "draft_model",
        "model": "facebook/opt-125m",
        "num_speculative_tokens": 5,
        "draft_tensor_parallel_size": 1,
    }
    apart = dict(found.kept_apart)
    assert "no successor" in apart["--num-lookahead-slots"] and "no successor" in apart["--use-v2-block-manager"]
    assert "0.9.2" in apart["--typical-acceptance-sampler-posterior-alpha"]
    assert "0.16.0" in apart["--speculative-disable-by-batch-size"]
    assert "engine_args" not in found.pair


def test_a_retired_key_that_the_release_has() -> None:
    assert speculative("pip install vllm==0.8.2\n" + RETIRED)["posterior_alpha"] == 0.3


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ("--speculative-model '[ngram]' --ngram-prompt-lookup-max 4 --num-speculative-tokens 3",
         {"method": "ngram", "prompt_lookup_max": 4, "num_speculative_tokens": 3}),
        ("--speculative-config.method ngram --speculative-config.num_speculative_tokens=3",
         {"method": "ngram", "num_speculative_tokens": 3}),
        ("""-sc '{"method": "ngram", "num-speculative-tokens": 3}'""", {"method": "ngram", "num_speculative_tokens": 3}),
        ("--spec-method eagle3 --spec-model a/b --spec-tokens 2",
         {"method": "eagle3", "model": "a/b", "num_speculative_tokens": 2}),
        ("""--speculative-config='{"model": "a/EAGLE-x", "num_speculative_tokens": 2}'""",
         {"method": "eagle", "model": "a/EAGLE-x", "num_speculative_tokens": 2}),
        ("""-sc '{"method": "mtp"}' --speculative-config.draft_load_config.load_format auto""",
         {"method": "mtp", "draft_load_config": {"load_format": "auto"}}),
    ],
)  # fmt: skip
def test_ways_to_speculate(flags: str, expected: dict[str, Any]) -> None:
    assert speculative(f"vllm serve m/n {flags}") == expected


@pytest.mark.parametrize(
    ("flag", "name", "value"),
    [
        ("--max-num-batched-tokens 2K", "max_num_batched_tokens", 2048),
        ("--gpu-memory-utilization=0.8", "gpu_memory_utilization", 0.8),
        ("--no-enable-chunked-prefill", "enable_chunked_prefill", False),
        ("--trust_remote_code", "trust_remote_code", True),
        ("--cudagraph-capture-sizes 1 2 4", "cudagraph_capture_sizes", [1, 2, 4]),
        ("--compilation-config.cudagraph_mode PIECEWISE -cc.mode=3",
         "compilation_config", {"cudagraph_mode": "PIECEWISE", "mode": 3}),
        ("--compilation-config.ops+ a --compilation-config.ops+ b,c", "compilation_config", {"ops": ["a", "b", "c"]}),
        ("--hf-overrides '{\"x\": [1]}'", "hf_overrides", {"x": [1]}),
        ("-O3", "optimization_level", 3),
        ("--kv-cache-memory-bytes None", "kv_cache_memory_bytes", None),
        ("--max-model-len -1", "max_model_len", -1),
        ("--block-size 16", "block_size", 16),
    ],
)  # fmt: skip
def test_engine_arguments(flag: str, name: str, value: Any) -> None:
    assert translate(f"vllm serve m/n {flag}").pair["engine_args"] == {name: value}


def test_a_script() -> None:
    found = translate("""#!/bin/bash
# it's a script; `vllm serve x/y --enforce-eager` is only mentioned
export VLLM_USE_V1=1 PATH=/opt  # don't
MODEL=org/model; MORE="--enforce-eager --seed=4"
OMP_NUM_THREADS=2 nohup vllm serve "$MODEL" $MORE --dtype "${DTYPE:-bfloat16}" --max-num-seqs $N \\
    --served-model-name 'a b' > "log file" 2>&1 &
""")
    assert found.pair["target"] == {"model": "org/model", "dtype": "bfloat16"}
    assert found.pair["engine_args"] == {"enforce_eager": True, "seed": 4}
    assert found.pair["env"] == {"VLLM_USE_V1": "1", "OMP_NUM_THREADS": "2"}
    apart = dict(found.kept_apart)
    assert "variable" in apart["--max-num-seqs"] and "starts none" in apart["speculation"]
    assert set(dict(found.dropped)) == {"PATH", "--served-model-name"}


COMPOSE = """
services:
  web: {image: nginx, command: [nginx, -g, "daemon off;"]}
  vllm:
    image: vllm/vllm-openai:v0.31.0
    environment: {HF_TOKEN: hf_SECRET, VLLM_API_KEY: sk_SECRET, VLLM_USE_V2_MODEL_RUNNER: 0}
    command: >
      --model a/b --api-key SECRET --speculative-config
      '{"method":"ngram","num_speculative_tokens":3}'
"""
POD = r"""
apiVersion: apps/v1
kind: Deployment
spec:
  template:
    spec:
      containers:
      - image: example.org/serve:1
        command: [/bin/sh, -c]
        args: ["exec vllm serve $(MODEL) -sc '{\"method\": \"eagle3\", \"model\": \"c/d\"}'"]
        env:
        - {name: MODEL, value: a/b}
        - {name: HF_TOKEN, valueFrom: {secretKeyRef: {name: s, key: k}}}
        - {name: VLLM_LOGGING_LEVEL, valueFrom: {configMapKeyRef: {name: s, key: k}}}
"""
LISTS = """
kind: Pod
spec:
  containers:
  - image: vllm/vllm-openai:v0.32.0
    command: [python3, -m, vllm.entrypoints.openai.api_server]
    args: [--model, a/b, --speculative-config, '{"method": "ngram", "num_speculative_tokens": 3}', --max-model-len, 512]
"""


def test_compose() -> None:
    found = translate(COMPOSE)
    assert (found.version, found.pair["engine"]["version"]) == ("0.31.0", "0.31.0")
    assert (found.pair["target"], found.pair["env"]) == ({"model": "a/b"}, {"VLLM_USE_V2_MODEL_RUNNER": "0"})
    assert found.pair["speculative"] == {"method": "ngram", "num_speculative_tokens": 3}
    assert {"HF_TOKEN", "VLLM_API_KEY", "--api-key"} == set(dict(found.dropped))


def test_kubernetes_with_a_shell() -> None:
    found = translate(POD)
    assert found.pair["speculative"] == {"method": "eagle3", "model": "c/d"}
    assert "VLLM_LOGGING_LEVEL" in dict(found.kept_apart) and "HF_TOKEN" in dict(found.dropped)


def test_kubernetes_with_lists() -> None:
    found = translate(LISTS)
    assert found.pair["engine_args"] == {"max_model_len": 512}
    assert (found.pair["target"]["model"], found.pair["engine"]["version"]) == ("a/b", "0.32.0")


def test_docker_run() -> None:
    found = translate(
        "sudo docker run --gpus all -v ~/.cache/vllm:/root -e HF_TOKEN=x --env VLLM_CPU_KVCACHE_SPACE=4 -p 8000:8000 "
        "public.ecr.aws/q9/vllm-cpu:v0.32.0 --model a/b --spec-method ngram --spec-tokens 3"
    )
    assert found.pair["placement"] == {"device": "cpu"} and found.pair["env"] == {"VLLM_CPU_KVCACHE_SPACE": "4"}
    assert found.pair["target"] == {"model": "a/b"} and found.version == "0.32.0"


def test_the_line_that_speculates_is_taken() -> None:
    found = translate("vllm serve a/b\nvllm serve c/d --spec-method ngram --spec-tokens 3\n")
    assert found.pair["target"]["model"] == "c/d" and "2 are in the text" in dict(found.kept_apart)["launch lines"]


@pytest.mark.parametrize(
    "text", ["", "pip install vllm", "echo vllm", "services: {web: {command: nginx}}", "a: [", "vllm bench serve", "'"]
)
def test_no_launch_line(text: str) -> None:
    with pytest.raises(NoLaunchLine):
        translate(text)


def test_a_release_before_the_mapping_is_named_and_not_used() -> None:
    found = translate("docker run vllm/vllm-openai:v0.6.3 --model a/b --speculative-model c/d")
    assert found.version == "0.6.3" and "version" not in found.pair["engine"]
    assert "0.6.3 is not known" in dict(found.assumed)["/pair/engine/version"]


@pytest.mark.parametrize(
    "text",
    [
        COMPOSE,
        "HF_TOKEN=SECRET vllm serve a/b --hf-token SECRET --api-key=SECRET --ssl-keyfile SECRET",
        "VLLM_SOME_API_KEY=SECRET OMP_TOKEN=SECRET vllm serve a/b",
        "vllm serve a/b -sc '{SECRET' --api-key SECRET SECRET",
    ],
)
def test_secrets_are_never_printed(text: str) -> None:
    found = translate(text)
    assert "SECRET" not in render(found) and "SECRET" not in repr(found)


def test_a_comment_stays_a_comment() -> None:
    found = translate("vllm serve a/b '--made\nup: 1' --made$UP")
    assert len(found.kept_apart) == 3 and read(render(found)) == {"pair": found.pair}


def test_counts_of_tokens_are_no_secret() -> None:
    assert translate("VLLM_MAX_TOKENS_X=4 vllm serve a/b").pair["env"] == {"VLLM_MAX_TOKENS_X": "4"}


def test_what_cannot_be_read_is_said() -> None:
    found = translate(
        "vllm serve a/b --config c.yaml -sc {method:ngram} --enable-adaptive-k --made-up 3 --tool-call-parser x stray"
    )
    apart = dict(found.kept_apart)
    assert "not JSON" in apart["-sc"] and "may hold more" in apart["--config"] and "adaptive_k.md" in apart["--enable-adaptive-k"]
    assert "no such argument" in apart["--made-up"] and "word 2" in apart and "--tool-call-parser" in dict(found.dropped)


def read(text: str) -> Any:
    return YAML(typ="safe", pure=True).load(text)


def test_rendering_reads_back_and_asks_for_what_is_missing() -> None:
    found = translate(f"vllm serve a/b --tokenizer c/d --spec-method eagle --speculative-config {DRAFT} --num-lookahead-slots 3")
    text = render(found)
    assert read(text)["pair"] == found.pair
    assert "# not carried over --num-lookahead-slots" in text and '# version: "X.Y.Z"' in text
    assert text.count("(SL202)") == 2
    head = "schema: pair-spec/v1\nname: x\n"
    found_codes = {(d.code, d.path) for d in lint((head + text).encode())}
    assert {("SL202", "/pair/target/model"), ("SL202", "/pair/speculative/model")} <= found_codes
    assert ("SL102", "/pair/engine") in found_codes


def arguments_of(version: str) -> st.SearchStrategy[dict[str, Any]]:
    release = load(version)
    assert release
    skipped = {*HOMES, *OWNED, "speculative_config"}
    values = {name: _values(schema) for name, schema in release.engine_args.items() if name not in skipped}
    return st.fixed_dictionaries({}, optional={name: values for name, values in values.items() if values is not None})


TEXT = st.text(st.characters(codec="utf-8", exclude_categories=["C"]), min_size=1).filter(
    lambda text: not text.startswith(("-", "{", "[")) and text != "None"
)
JSON = st.dictionaries(
    st.text(min_size=1), st.none() | st.booleans() | st.integers() | st.text() | st.lists(st.integers()), max_size=3
)


def _values(schema: dict[str, Any]) -> st.SearchStrategy[Any] | None:
    types = kinds(schema)
    if "enum" in schema:
        return st.sampled_from([member for member in schema["enum"] if member is not None])
    by_type = {"boolean": st.booleans(), "integer": st.integers(), "number": st.floats(allow_nan=False, allow_infinity=False),
               "string": TEXT, "object": JSON, "array": st.none()}  # fmt: skip
    known = [by_type[kind] for kind in types if kind in by_type]
    return (
        None
        if not known or "array" in types
        else known[0] | st.none()
        if "null" in types and "boolean" not in types
        else known[0]
    )


HUB = st.from_regex(r"[A-Za-z0-9][\w.]{0,8}/[A-Za-z0-9][\w.]{0,8}", fullmatch=True)
COMMIT = st.from_regex(r"[0-9a-f]{40}", fullmatch=True)
ENV = st.dictionaries(
    st.sampled_from(["VLLM_USE_V2_MODEL_RUNNER", "OMP_PROC_BIND", "CUDA_MODULE_LOADING"]), TEXT.filter(lambda t: "\0" not in t)
)


@st.composite
def pairs(draw: st.DrawFn) -> dict[str, Any]:
    version = draw(st.sampled_from(["0.32.0", "0.33.0", "0.21.0"]))
    target: dict[str, Any] = {"model": draw(HUB), "revision": draw(COMMIT), "dtype": draw(st.sampled_from(["bfloat16", "auto"]))}
    if draw(st.booleans()):
        target["tokenizer"] = {"model": draw(HUB), "revision": draw(COMMIT)}
    ngram = {"method": "ngram", "num_speculative_tokens": draw(st.integers(1, 9)), "prompt_lookup_max": 4}
    model = {"method": "draft_model", "model": draw(HUB), "revision": draw(COMMIT), "num_speculative_tokens": 3}
    settings = draw(st.sampled_from([ngram, model, {**model, "use_heterogeneous_vocab": True}]))
    mode = "none" if settings is ngram else "heterogeneous" if "use_heterogeneous_vocab" in settings else "shared"
    pair = {
        "engine": {"name": "vllm", "version": version},
        "target": target,
        "speculative": settings,
        "vocabulary": {"mode": mode},
        "engine_args": {k: v for k, v in draw(arguments_of(version)).items() if v is not None},  # null is not passed on
        "env": draw(ENV),
        "placement": {"device": "cuda", "tensor_parallel_size": draw(st.integers(1, 8))},
    }
    return {key: value for key, value in pair.items() if value}


def translated(pair: dict[str, Any], words: list[str]) -> Translation:
    return translate(f"# vllm=={pair['engine']['version']}\n{serve_line(words, pair.get('env'))}\n")


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(pairs())
def test_a_plan_comes_back(pair: dict[str, Any]) -> None:
    data = {**good(), "pair": pair}
    found = translated(pair, arm_words(data, "pair", Path("/nowhere")))
    assert found.pair == pair
    assert not found.kept_apart
    assert read(render(found))["pair"] == pair


def test_serve_line() -> None:
    words = argv(good(), "pair", Path("/nowhere"), "/usr/bin/python", Path("/run/a b.sock"))
    line = serve_line(words, {"VLLM_X": "a b"})
    assert line.startswith("VLLM_X='a b' vllm serve Qwen/Qwen3-8B --served-model-name")
    assert "--uds" not in line and "--model " not in line and "api_server" not in line
    (found,) = launch_lines(line)
    assert found.words[0] == "Qwen/Qwen3-8B" and found.env == {"VLLM_X": "a b"}


def test_of_a_target_alone_comes_a_pair_without_speculation() -> None:
    found = translate(serve_line(arm_words(good(), "target", Path("/nowhere"))))
    assert found.pair["speculative"] == {} and "speculation" in dict(found.kept_apart)


FRAGMENTS = st.sampled_from([
    "vllm serve", " a/b ", "-sc", "'", '"', "{", "}", "$X", "$(", ")", "\\", "\n", "--", "--a", "=", ".", "+", "-O", "command:",
    " - ", "args: [", "]", "docker run vllm/vllm-openai", "environment:", "--speculative-model", "--spec-tokens", "[ngram]",
    "--max-model-len", "--compilation-config.a.b", "export A=", "#", "sh -c ", ": ", "null", "\0", "é",
])  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(st.lists(FRAGMENTS, max_size=14).map(" ".join) | st.lists(FRAGMENTS, max_size=14).map("".join) | st.text())
def test_any_text_is_read_or_has_no_launch_line(text: str) -> None:
    try:
        found = translate(text)
    except NoLaunchLine:
        return
    assert read(render(found))["pair"] == found.pair


@pytest.mark.parametrize(
    "text",
    [
        "environment: 3\ncommand: vllm serve a/b",
        "env: [3, {x: y}, A]\nargs: [vllm, serve, a/b]",
        "- {command: {vllm serve: 1}}\n- {args: [1, [2]]}\n- {entrypoint: vllm serve, command: [a/b]}",
    ],
)
def test_odd_shapes_of_yaml(text: str) -> None:
    assert translate(text).pair["target"] == {"model": "a/b"}
