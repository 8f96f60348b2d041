"""Files that engine arguments name: chat templates, LoRA folders' files, plugins, JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from speclint.diagnostic import pointer

FILES = ("chat_template", "tool_parser_plugin", "reasoning_parser_plugin", "hf_config_path", "mm_encoder_fp8_scale_path")
ENDINGS = (".json", ".jinja", ".jinja2", ".py", ".yaml", ".yml", ".safetensors", ".pt", ".bin")


def named_files(engine_args: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Pointer and path of each file that an engine argument names; a template that is written out names none."""
    for key, value in engine_args.items():
        for steps, text in _texts(value):
            name = text.rpartition("=")[2] if key == "lora_modules" else text
            if _is_file(key.lstrip("-").replace("-", "_"), name):
                yield pointer("pair", "engine_args", key, *steps), name


def _texts(value: Any) -> Iterator[tuple[tuple[str | int, ...], str]]:
    if isinstance(value, str):
        yield (), value
    for index, item in enumerate(value if isinstance(value, list) else ()):
        if isinstance(item, str):
            yield (index,), item
        elif isinstance(item, dict) and isinstance(item.get("path"), str):
            yield (index, "path"), item["path"]


def _is_file(key: str, name: str) -> bool:
    if not name or "\n" in name or "{" in name or "://" in name:
        return False
    return key in FILES or name.endswith(ENDINGS) or name.startswith(("./", "../", "/"))
