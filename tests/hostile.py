"""Files meant to crash, stall or swell a linter, each just within the limits or far beyond them."""

from __future__ import annotations

import random

from spec_cases import dumped, good

from speclint.document import MAX_BYTES, MAX_NODES

HEAD = b"schema: pair-spec/v1\n"
ROOM = MAX_BYTES - 100  # a file that is read to its end
PAIRS = MAX_NODES // 2 - 300  # keys with a value each, beside the good spec


def _filled(piece: bytes, before: bytes = HEAD + b"a: ", after: bytes = b"\n") -> bytes:
    return before + piece * (ROOM // len(piece)) + after


def _rows(row: str, count: int) -> str:
    return "".join(row.format(i=i) for i in range(count))


def _good(old: str, new: str) -> bytes:
    text = dumped(good()).decode()
    assert old in text
    return text.replace(old, new, 1).encode()


def files() -> dict[str, bytes]:
    """Name to bytes."""
    return {**_shapeless(), **_scalars(), **_many(), **_specs()}


def _shapeless() -> dict[str, bytes]:
    return {
        "empty": b"",
        "binary, 10 MB": random.Random(1).randbytes(10_000_000),
        "binary": random.Random(1).randbytes(ROOM),
        "NUL bytes": b"\0" * ROOM,
        "cut UTF-16": "schema: pair-spec/v1\n".encode("utf-16")[:-1],
        "flow, 5,000 levels": HEAD + b"a: " + b"[" * 5000,
        "block, 1,000 levels": "".join(" " * i + "a:\n" for i in range(1000)).encode(),
        "mappings in mappings": HEAD + b"a: " + b"{a: " * 5000,
        **{f"only {piece!r}": _filled(piece, b"", b"") for piece in (b"#\n", b" ", b"\n", b"\t", b":", b"- ", b"? ", b"'", b"{")},
        "directives": _filled(b"%YAML 1.2\n", b""),
        "documents": _filled(b"---\n", b""),
        "alias bomb": b"a: &a [x, x, x, x]\nb: &b [*a, *a, *a, *a]\nc: &c [*b, *b, *b, *b]\n",
        "recursive alias": HEAD + b"pair: &p {pair: *p}\n",
    }


def _scalars() -> dict[str, bytes]:
    return {
        "one long word": _filled(b"x"),
        "one long line": _filled(b"x "),
        "many lines, plain": _filled(b"x\n "),
        "many lines, quoted": _filled(b"x\n ", HEAD + b"a: '", b"'\n"),
        "many lines, literal": _filled(b"  x\n", HEAD + b"a: |\n"),
        "escapes": _filled(b"\\x41", HEAD + b'a: "', b'"\n'),
        "digits": _filled(b"1"),
        "decimals": _filled(b"1", HEAD + b"a: 0."),
        "exponent": HEAD + b"a: " + b"1" * (ROOM // 3) + b"e" + b"9" * (ROOM // 3) + b"\n",
        "base 60": _filled(b":1", HEAD + b"a: 1"),
        "underscores": _filled(b"_", HEAD + b"a: 1"),
        "a date without an end": _filled(b"_", HEAD + b"a: 2020-01-01T"),
        "wide characters": _filled("é😀".encode()),
        "half a character": HEAD + b'name: "\\ud800"\n',
        "half a character as a key": HEAD + b'"\\udfff": 1\n',
        "NUL in names": HEAD + b'name: "\\0"\npair: {engine: {version: "0.32.0\\0"}, target: {model: "a\\0", revision: "sha256:'
        + b"0" * 64 + b'"}}\n',
        "terminal escapes": HEAD + b'"\\e[2J\\u202e": "\\e]0;x\\a"\n',
    }  # fmt: skip


def _many() -> dict[str, bytes]:
    return {
        "keys": HEAD + _rows("k{i}: {i}\n", PAIRS).encode(),
        "the same key": HEAD + b"k: 1\n" * PAIRS,
        "items": HEAD + b"a: [" + b"1," * (2 * PAIRS - 20) + b"]\n",
        "anchors": HEAD + _rows("a{i}: &x{i} 1\n", PAIRS).encode(),
        "suppressions": HEAD + _rows("# speclint: ignore[SL409] reason\n", 18_000).encode(),
        "codes of one suppression": HEAD + b"# speclint: ignore[" + b"SL409," * 90_000 + b"] reason\n",
    }


def _specs() -> dict[str, bytes]:
    nines = "9" * 250
    criterion = "  - {{id: c{i}, metric: {metric}, compare: ratio, workload: {workload}, concurrency: all, at_most: 0.9}}\n"
    workload = "  - {{id: w{i}, profile: varied_long, prompts: {{generator: varied}}, output: {{tokens: 9, stop: length}}}}\n"
    entry = "- {{id: r{i}, signature: x, signer: a, approver: a, spec: s}}\n"
    return {
        "unknown settings": _good(
            "    method: draft_model\n", "    method: draft_model\n" + _rows("    max_model_le{i}: 1\n", PAIRS)
        ),
        "unknown arguments": _good("  engine_args:\n", "  engine_args:\n" + _rows("    max_num_seq{i}: 1\n", PAIRS)),
        "unknown variables": _good("  env: {}\n", "  env:\n" + _rows("    A{i}: x\n", PAIRS)),
        "unknown keys at the top": dumped(good()) + _rows("k{i}: {i}\n", PAIRS).encode(),
        "huge counts": _good("blocks: 6", f"blocks: {nines}").replace(b"requests: 64", f"requests: {nines}".encode()),
        "huge K": _good("num_speculative_tokens: 3", f"num_speculative_tokens: {nines}"),
        "huge lengths": _good("tokens: 64", f"tokens: {nines}"),
        "long blocks": _good("requests: 64", "requests: 5000"),
        "every concurrency": _good("    concurrency:\n    - 1\n    - 8\n", "    concurrency:\n" + _rows("    - {i}\n", 4097)),
        "wrong criteria": _good(
            "  criteria:\n",
            "  criteria:\n" + _rows(criterion.replace("{metric}", "ttft_p5").replace("{workload}", "vared"), 1600),
        ),
        "many criteria": _good(
            "  criteria:\n", "  criteria:\n" + _rows(criterion.replace("{metric}", "ttft_p50").replace("{workload}", "all"), 1600)
        ),
        "many workloads": _good("  workloads:\n", "  workloads:\n" + _rows(workload, 1200)),
        "many results": dumped(good()) + b"results:\n" + _rows(entry, 1900).encode(),
        "many approvals": dumped(good()) + b"approvals:\n" + _rows(entry, 1900).encode(),
    }
