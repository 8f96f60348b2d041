"""The way out that a finding names: what a newcomer is told to write can be pasted, and is right."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from spec_cases import RULES, dumped, good, lint, overlaid

from speclint import document
from speclint.data import spec_schema
from speclint.lint import inspect
from speclint.snippet import example, flow, to_add

COMMIT, TREE = "b968826d9c46dd6066d109eabc6255188de91218", "5" * 64
LOCAL = "./models/target"


def helped(changes: dict[str, Any], code: str, folder: Path = RULES) -> list[str]:
    return [item.help for item in lint(dumped(overlaid(dict(changes))), folder) if item.code == code]


@pytest.mark.parametrize(
    ("changes", "code", "said"),
    [
        ({"/pair/placement/device": "gpu"}, "SL104", "write `cuda`"),
        ({"/pair/placement/device": "CPU"}, "SL104", "did you mean `cpu`?"),
        ({"/protocol/criteria/0/metric": "ttft"}, "SL104", "write `ttft_p50`"),
        ({"/protocol/design/blocks": "6"}, "SL103", "write 6 without quotes"),
        ({"/protocol/design/blocks": 6.0}, "SL103", "write 6. "),
        ({"/protocol/load/prefix_caching": "false"}, "SL103", "write false without quotes"),
        ({"/protocol/load/concurrency": 8}, "SL103", "write [8]"),
        ({"/protocol/criteria/0/at_most": "90 %"}, "SL103", "write 0.9. "),
        ({"/protocol/criteria": {}}, "SL103", "each item begins with `- `"),
        ({"/protocol/criteria/0/concurrency": "1"}, "SL104", "write 1 without quotes"),
        ({"/protocol/confidence": 95}, "SL105", "write 0.95 for 95 %"),
        ({"/protocol/criteria/4/at_least": 40}, "SL513", "write 0.4 for 40 %"),
        ({"/protocol/criteria/0/at_most": 90}, "SL507", "write 0.9 for 90 %"),
        ({"/pair/engine/version": "0.13.0"}, "SL404", "it runs in 0.8.2 to 0.9.2, 0.15.0 to "),
        ({"/name": "My Pair!"}, "SL104", 'write "my-pair"'),
        ({"remove": ["/protocol/design"]}, "SL102", "add `design`, such as `design: {blocks: 6, warmup: 16}`"),
        ({"remove": ["/pair/placement/device"]}, "SL102", "add `device`, `cpu` or `cuda`: Kind of device"),
        ({"remove": ["/protocol/criteria/0/at_most"]}, "SL102", "add `at_most: 0.9` or `at_least: 0.95`"),
        ({"/protocol/workloads/0/prompts": {}}, "SL102", "add `generator: varied` or `file: prompts/varied.jsonl`"),
        ({"remove": ["/schema"]}, "SL102", "add `schema: pair-spec/v1`"),
        ({"remove": ["/lock", "/protocol"]}, "SL102", "add `protocol` with request, sampling, workloads, load, design"),
        ({"/pair/target/revision": f"sha256:{COMMIT}"}, "SL201", f'write "{COMMIT}"'),
        ({"/pair/target/revision": COMMIT.upper()}, "SL201", f'write "{COMMIT}"'),
        ({"/pair/target/model": LOCAL, "/pair/target/revision": TREE}, "SL201", f'write "sha256:{TREE}"'),
        ({"/pair/target/model": LOCAL, "/pair/target/revision": COMMIT}, "SL201", "`speclint lock` prints the digest"),
        ({"/pair/target/model": "https://huggingface.co/Qwen/Qwen3-8B"}, "SL104", "Hub id (`org/name`)"),
    ],
)
def test_help_names_what_to_write(changes: dict[str, Any], code: str, said: str) -> None:
    assert said in " | ".join(helped(changes, code))


def test_what_cannot_be_per_cent_is_not_taken_for_it() -> None:
    assert helped({"/protocol/confidence": 950}, "SL105")[0].startswith("Two-sided")
    assert helped({"/protocol/criteria/4/at_least": 400}, "SL513") == ["write 1 or less"]


def test_an_address_is_no_local_folder() -> None:
    address = {"/pair/target/model": "https://huggingface.co/Qwen/Qwen3-8B"}
    assert helped(address, "SL201") == [] and helped(address, "SL104")


@pytest.mark.parametrize("form", ["sha256:{}", "SHA256:{}", "{}"])
def test_the_digest_of_a_prompt_file_is_given_without_its_prefix(tmp_path: Path, form: str) -> None:
    (tmp_path / "p.jsonl").write_text('{"prompt": "x"}\n')
    digest = "983ab1ae643e240060b55f0d268adb1fc8b186f86197ea45d7cba12b725bebca"
    written = form.format(digest if ":" in form else digest.upper())
    changes = {"/protocol/workloads/1/prompts": {"file": "p.jsonl", "sha256": written}}
    assert f'write "{digest}"' in helped(changes, "SL104", tmp_path)[0]
    assert helped(changes, "SL209", tmp_path) == [], "it is the same digest"
    wrong = {"/protocol/workloads/1/prompts": {"file": "p.jsonl", "sha256": form.format("0" * 64)}}
    assert f'write `sha256: "{digest}"`' in helped(wrong, "SL209", tmp_path)[0]
    missing = {"/protocol/workloads/1/prompts": {"file": "p.jsonl"}}
    assert helped(missing, "SL209", tmp_path) == [f'write `sha256: "{digest}"`']


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("yes", 'write true, or quote it: "yes"'),
        ("off", 'write false, or quote it: "off"'),
        ("1_000", 'write 1000, or quote it: "1_000"'),
        ("1" * 64, f'quote it: "{"1" * 64}"'),
        ("*.json", "quote it if it is text"),
    ],
)
def test_help_of_ambiguous_values_can_be_pasted(text: str, said: str) -> None:
    assert said in " ".join(item.help for item in lint(f"schema: pair-spec/v1\nname: {text}\n".encode()))


def test_the_examples_of_the_schema_make_a_spec_without_errors_or_warnings(tmp_path: Path) -> None:
    schema = spec_schema()
    spec = example(schema)
    assert 'version: "0.32.0"' in to_add("engine", schema["$defs"]["pair"]["properties"]["engine"])
    assert spec["schema"] == "pair-spec/v1" and spec["protocol"]["design"] == {"blocks": 6, "warmup": 16}
    lines = "".join(f"{key}: {flow(value)}\n" for key, value in spec.items())
    read = document.parse(lines.encode(), "x.spec.yaml")
    assert read.data == spec, "every reader takes the line for the example"
    found = inspect(read, tmp_path).diagnostics
    assert [item for item in found if item.severity != "info"] == []


def test_every_required_key_of_the_spec_says_what_to_write() -> None:
    def required(schema: dict[str, Any]) -> list[str]:
        properties = schema.get("properties", {})
        own = [to_add(key, properties[key]) for key in schema.get("required", ()) if key in properties]
        return own + [line for inner in properties.values() for line in required(inner)]

    written = ("target", "speculative", "pair", "prompts", "workload", "criterion", "sampling", "protocol")
    lines = [line for name in written for line in required(spec_schema()["$defs"][name])]
    assert len(lines) > 25
    assert [line for line in lines if "`, " not in line and ": " not in line.split("`")[1] and " with " not in line] == []


@pytest.mark.parametrize(("before", "line"), [("# ü\n", 2), ("\ufeff", 1)])
def test_a_byte_that_is_not_utf_8_is_shown_where_it_stands(before: str, line: int) -> None:
    (found,) = lint(f"{before}name: ü ".encode() + b"\xe9\n")
    assert (found.code, found.line, found.column) == ("SL007", line, 9)


def test_a_place_that_may_not_be_looked_at_is_no_fault_of_ours(tmp_path: Path) -> None:
    for path in ("/pair/target/model", "/pair/speculative/model"):
        for name in ("a" * 5000, "a\0b", "x/" * 3000):
            lint(dumped(overlaid({path: name})), tmp_path)


def test_the_words_of_a_draft_are_looked_for_in_its_whole_path(tmp_path: Path) -> None:
    folder = tmp_path / "eagle3-bench"
    (folder / "models" / "draft").mkdir(parents=True)
    data = good()
    data["pair"]["speculative"] |= {"model": "models/draft", "revision": "sha256:" + "0" * 64}
    (found,) = [item for item in lint(dumped(data), folder) if item.code == "SL405"]
    assert "run method eagle3, not draft_model" in found.message and str(folder) in found.message
    plain = tmp_path / "bench"
    folder.rename(plain)
    assert [item for item in lint(dumped(data), plain) if item.code == "SL405"] == []
