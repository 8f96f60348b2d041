"""`--to`: the ways in which moved examples trip people, each as a small case, and ways on which nothing changes."""

from __future__ import annotations

from typing import Any

import pytest
from spec_cases import RULES, dumped, overlaid

from speclint import document
from speclint.releases import known
from speclint.spec import Spec
from speclint.upgrade import Change, lines, would_mean_the_same

SPEC = "/pair/speculative"
NGRAM: dict[str, Any] = {
    f"{SPEC}/method": "ngram",
    "/pair/vocabulary/mode": "none",
    "remove": [f"{SPEC}/model", f"{SPEC}/revision", "/lock/draft"],
}
MAPPED = {f"{SPEC}/use_heterogeneous_vocab": True, "/pair/vocabulary/mode": "heterogeneous"}
CPU: dict[str, Any] = {"/pair/placement": {"device": "cpu"}}


def moved(own: str, to: str, changes: dict[str, Any] | None = None) -> list[Change]:
    data = overlaid({"/pair/engine/version": own, **(changes or {})})
    return would_mean_the_same(Spec(data, RULES), to)


CASES: list[tuple[str, str, str, dict[str, Any], str, str, str, str]] = [
    # what, from, to, changes, pointer, part of the message, severity, turned at
    ("draft model unserved", "0.9.2", "0.10.0", {}, f"{SPEC}/method", "SL404", "error", "0.10.0"),
    ("draft model back", "0.14.1", "0.16.0", {}, f"{SPEC}/method", "no more: SL404", "info", "0.15.0"),
    ("draft model leaves V0", "0.9.2", "0.15.0", {}, f"{SPEC}/method", "it is run by the V0 engine", "warning", "0.15.0"),
    ("key silently dropped", "0.9.0", "0.9.1", {f"{SPEC}/k": 1}, f"{SPEC}/k", "dropped without a word", "error", "0.9.1"),
    ("key refused again", "0.15.1", "0.17.0", {f"{SPEC}/k": 1}, f"{SPEC}/k", "stops the start", "error", "0.16.0"),
    ("strict verification", "0.20.2", "0.22.0", {f"{SPEC}/rejection_sample_method": "strict"},
     f"{SPEC}/rejection_sample_method", "SL403", "error", "0.21.0"),
    ("synthetic rate", "0.19.1", "0.20.0", {f"{SPEC}/synthetic_acceptance_rate": 0.5},
     f"{SPEC}/synthetic_acceptance_rate", "SL401", "error", "0.20.0"),
    ("token tree", "0.20.2", "0.33.0", {f"{SPEC}/speculative_token_tree": "[(0,)]"},
     f"{SPEC}/speculative_token_tree", "SL401", "error", "0.21.0"),
    ("batch switch", "0.16.0", "0.18.0", {f"{SPEC}/disable_by_batch_size": 8},
     f"{SPEC}/disable_by_batch_size", "SL401", "error", "0.17.0"),
    ("medusa", "0.32.0", "latest", {f"{SPEC}/method": "medusa"}, f"{SPEC}/method", "SL404", "error", "0.33.0"),
    ("draft ranks", "0.14.1", "0.15.0", {f"{SPEC}/draft_tensor_parallel_size": 1, "/pair/placement/tensor_parallel_size": 2},
     f"{SPEC}/draft_tensor_parallel_size", "SL406", "error", "0.15.0"),
    ("mapping comes", "0.24.0", "0.26.0", MAPPED, "/pair/vocabulary/mode", "no more: SL307", "info", "0.25.0"),
    ("mapping ignored", "0.30.0", "0.31.0", MAPPED, "/pair/vocabulary/mode", "SL307", "error", "0.31.0"),
    ("mapping, downwards", "0.25.0", "0.24.0", MAPPED, "/pair/vocabulary/mode", "SL307", "error", "0.25.0"),
    ("min_p refused", "0.13.0", "0.14.0", {"/protocol/sampling/min_p": 0.1, "/protocol/sampling/temperature": 0.7},
     "/protocol/sampling/min_p", "refused", "error", "0.14.0"),
    ("min_tokens works", "0.16.0", "0.17.0", {"/protocol/sampling/min_tokens": 4},
     "/protocol/sampling/min_tokens", "no more: SL505", "info", "0.17.0"),
    ("penalty drafts", "0.13.0", "0.14.0", {**NGRAM, "/protocol/sampling/presence_penalty": 0.5},
     "/protocol/sampling/presence_penalty", "no more: SL506", "info", "0.14.0"),
    ("async comes", "0.13.0", "0.15.0", {"/pair/speculative/method": "eagle"}, "/pair/engine/version",
     "asynchronous scheduling of the target is on", "warning", "0.14.0"),
    ("async with drafts", "0.27.1", "0.28.0", {}, f"{SPEC}/method", "the pair is on; in 0.27.1 it is off", "warning", "0.28.0"),
    ("async with n-grams", "0.32.0", "0.33.0", NGRAM, f"{SPEC}/method", "of the pair is on", "warning", "0.33.0"),
    ("name decides", "0.19.1", "0.20.0", {f"{SPEC}/model": "org/small-dflash"}, f"{SPEC}/model", "SL405", "error", "0.20.0"),
    ("smaller budget", "0.16.0", "0.17.0", {}, f"{SPEC}/method", "lower than the target's", "warning", "0.17.0"),
    ("whole budget", "0.27.0", "0.28.0", {}, f"{SPEC}/method", "token budget is the target's", "warning", "0.28.0"),
    ("context lowered", "0.32.0", "0.33.0", {f"{SPEC}/max_model_len": 512}, f"{SPEC}/max_model_len",
     "the server's max_model_len is lowered", "warning", "0.33.0"),
    ("defect left", "0.32.0", "0.33.0", {f"{SPEC}/max_model_len": 512}, f"{SPEC}/max_model_len",
     "no more: known defect (V2 runner: a sequence", "info", "0.33.0"),
    ("runner of the target", "0.21.0", "0.22.0", {}, "/pair/engine/version", "Model Runner V2; in 0.21.0", "warning", "0.22.0"),
    ("runner of a mapped draft", "0.31.0", "0.32.0", MAPPED, f"{SPEC}/method", "run by Model Runner V1", "warning", "0.32.0"),
    ("memory default", "0.19.1", "0.21.0", {}, "/pair/engine/version", "is 0.92", "warning", "0.20.0"),
    ("argument gone", "0.10.2", "0.33.0", {"/pair/engine_args/swap_space": 4}, "/pair/engine_args/swap_space",
     "SL421", "error", "0.18.0"),
    ("renamed method", "0.10.2", "0.11.0", {f"{SPEC}/method": "deepseek_mtp"}, f"{SPEC}/method",
     "is read as `mtp`", "info", "0.11.0"),
    ("CPU works", "0.19.1", "0.21.0", CPU, "/pair/placement/device", "no more: SL414", "info", "0.21.0"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("own", "to", "changes", "path", "said", "severity", "turned"), [c[1:] for c in CASES], ids=[c[0] for c in CASES]
)
def test_what_turns(own: str, to: str, changes: dict[str, Any], path: str, said: str, severity: str, turned: str) -> None:
    hits = [c for c in moved(own, to, dict(changes)) if c.path == path and said in c.message]
    assert [(c.severity, c.release) for c in hits] == [(severity, turned)]


@pytest.mark.parametrize(
    ("own", "to", "changes"),
    [
        ("0.32.0", "0.32.0", {}),
        ("0.32.0", "0.33.0", {}),
        ("0.17.0", "0.17.1", MAPPED),
        ("0.29.0", "0.30.0", {}),
        ("0.28.0", "0.32.0", {**CPU, **NGRAM}),
        ("0.13.0", "0.14.0", {**CPU, "/protocol/sampling/min_p": 0.1}),  # reset at temperature 0
        ("0.13.0", "0.14.0", {**CPU, "/protocol/sampling/presence_penalty": 0.0, **NGRAM}),  # neutral
        ("0.20.2", "0.21.0", {"/pair/engine_args/gpu_memory_utilization": 0.8}),
        ("0.18.0", "0.21.0", {"/pair/engine_args/gpu_memory_utilization": 0.8}),  # `strict` was renamed `standard`
    ],
)
def test_nothing_turns(own: str, to: str, changes: dict[str, Any]) -> None:
    assert moved(own, to, dict(changes)) == []


def test_latest_is_the_newest_known() -> None:
    changes = {f"{SPEC}/method": "medusa"}
    assert moved("0.32.0", "latest", dict(changes)) == moved("0.32.0", known()[-1], dict(changes)) != []


def test_a_repackaged_release_is_a_start() -> None:
    assert [c.release for c in moved("0.8.5.post2", "0.9.1", {f"{SPEC}/k": 1}) if c.path == f"{SPEC}/k"] == ["0.9.1"]


@pytest.mark.parametrize(("own", "to", "unknown"), [("0.32.0", "0.99.0", "0.99.0"), ("main", "0.32.0", "main")])
def test_unknown_release(own: str, to: str, unknown: str) -> None:
    with pytest.raises(KeyError, match=unknown):
        moved(own, to)


def test_a_written_argument_has_no_default() -> None:
    changes = {"/pair/engine_args/gpu_memory_utilization": 0.8}
    assert not [c for c in moved("0.19.1", "0.21.0", changes) if "gpu_memory_utilization" in c.message]


def test_there_and_back_turn_at_the_same_release() -> None:
    there, back = moved("0.16.0", "0.33.0"), moved("0.33.0", "0.16.0")
    about = "the target is run by"
    assert [c.release for c in there if about in c.message] == [c.release for c in back if about in c.message] == ["0.22.0"]


def test_a_spec_without_parts_is_no_error() -> None:
    assert would_mean_the_same(Spec({"pair": {"engine": {"version": "0.31.0"}, "speculative": 3}}), "0.8.2") == []


def test_lines_stand_at_their_place() -> None:
    read = document.parse(dumped(overlaid({f"{SPEC}/method": "medusa"})), "a.spec.yaml")
    (line,) = [text for text in lines(read, "0.33.0", moved("0.32.0", "0.33.0", {f"{SPEC}/method": "medusa"})) if "SL404" in text]
    number = read.span(f"{SPEC}/method").line
    assert line.startswith(f"a.spec.yaml:{number}:") and "(turned at 0.33.0)" in line
    assert lines(read, "latest", []) == [f"a.spec.yaml: means the same in vLLM {known()[-1]}, as far as is recorded"]
