"""Which model runner a release uses, and what each of the two refuses."""

from __future__ import annotations

import ast
from typing import Any

from speclint.wheel import Wheel, texts
from speclint.wheel_settings import config_class, method_aliases, methods

Json = dict[str, Any]

CONFIG = ("vllm.config.vllm", "vllm.config")
SWITCH = "VLLM_USE_V2_MODEL_RUNNER"


def runner(wheel: Wheel) -> Json:
    """Default runner and refusals: methods by name, and features in vLLM's words (a method by alias is judged renamed).

    `v2_default_for`: `none` (by environment variable only), `listed` (the architectures named), `dense`, `all`.
    """
    chooser = _config_function(wheel, "use_v2_model_runner")
    breadth = _breadth(_config_function(wheel, "_is_default_v2_model_runner_model")) if chooser else "none"
    has_v2 = SWITCH in set(texts(wheel.tree("vllm.envs") or ast.Module([], [])))
    by_v2 = _config_function(wheel, "_get_v2_model_runner_unsupported_features", "_validate_v2_model_runner")
    by_v1 = _config_function(wheel, "_get_v1_model_runner_unsupported_features")
    known = set(methods(wheel)) - method_aliases(wheel).keys()
    return {
        "default": "v2" if breadth in {"dense", "all"} else "v1",
        "v2_default_for": breadth,
        "v2_architectures": _architectures(wheel) if breadth in {"listed", "dense"} else [],
        "v2_env": SWITCH if has_v2 else None,
        "v2_refuses": sorted(_refused(by_v2, known) if by_v2 else known - _drafted(wheel) if has_v2 else set()),
        "v2_refuses_features": _features(by_v2),
        "v1_refuses": sorted(_refused(by_v1, known)),
        "v1_refuses_features": _features(by_v1),
    }


def _config_function(wheel: Wheel, *names: str) -> ast.FunctionDef | None:
    trees = [tree for module in CONFIG if (tree := wheel.tree(module))]
    found = {n.name: n for t in trees for n in ast.walk(t) if isinstance(n, ast.FunctionDef)}
    return next((found[name] for name in names if name in found), None)


def _breadth(model_test: ast.FunctionDef | None) -> str:
    """How many models get V2: all where no test is made, dense ones where the list of architectures is one of two ways."""
    if model_test is None:
        return "all"
    last = model_test.body[-1]
    is_wide = isinstance(last, ast.Return) and isinstance(last.value, ast.BoolOp) and isinstance(last.value.op, ast.Or)
    return "dense" if is_wide else "listed"


def _architectures(wheel: Wheel) -> list[str]:
    found = next((f for m in CONFIG if (f := wheel.find(m, "DEFAULT_V2_MODEL_RUNNER_ARCHITECTURES"))), None)
    return sorted(t for t in texts(found.node)) if found else []


def _drafted(wheel: Wheel) -> set[str]:
    """Methods of a V2 runner too young for a list of refusals: it drafts for the EAGLE family and raises otherwise."""
    _, node = config_class(wheel)
    functions = (f for f in node.body if isinstance(f, ast.FunctionDef) and f.name == "use_eagle")
    return {t for f in functions for t in texts(ast.Module(f.body, []))}


def _refused(function: ast.FunctionDef | None, known: set[str]) -> set[str]:
    """Methods refused by name: by a test on the method and nothing else."""
    tests = (n.test for n in ast.walk(function) if isinstance(n, ast.If)) if function else iter(())
    refused: set[str] = set()
    for compare in (c for test in tests if (c := _method_test(test)) is not None):
        named = set(texts(compare.comparators[0]))
        refused |= known - named if isinstance(compare.ops[0], ast.NotIn) else named & known
    return refused


def _method_test(test: ast.expr) -> ast.Compare | None:
    """The comparison of the speculative method, if beside it a test only asks whether there is speculation."""
    parts = test.values if isinstance(test, ast.BoolOp) else [test]
    plain = [part for part in parts if "is not None" not in ast.unparse(part)]
    if len(plain) == 1 and isinstance(plain[0], ast.Compare):
        return plain[0] if ast.unparse(plain[0].left).endswith("speculative_config.method") else None
    return None


def _features(function: ast.FunctionDef | None) -> list[str]:
    """The words of each refusal, in the order of the source; methods by name are left to `_refused`."""
    calls = (n for n in ast.walk(function) if isinstance(n, ast.Call)) if function else iter(())
    added = (c.args[0] for c in calls if ast.unparse(c.func) == "unsupported.append" and c.args)
    return [t for a in added for t in texts(a) if "speculative method" not in t]
