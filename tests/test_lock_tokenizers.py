"""Tokenizers in every format, and the same texts through both of a pair."""

from __future__ import annotations

import base64
import hashlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tiny_checkpoints import PROSE, PYTHON, write_model
from tokenizers import Tokenizer, normalizers, pre_tokenizers

from speclint.lock import LockError, tekken, tokenizer
from speclint.lock.facts import build_lock
from speclint.lock.format import FORMAT
from speclint.lock.texts import TEXTS, encode_differently

SPECIALS = ("<unk>", "<s>", "</s>")


def pair(folder: Path) -> dict[str, Any]:
    """The `pair` section of a lock of the models `target` and `draft`."""
    speculative = {"method": "draft_model", "model": "draft"}
    spec = {"pair": {"target": {"model": "target"}, "speculative": speculative}, "protocol": {"workloads": []}}
    locked: dict[str, Any] = build_lock(spec, folder)["pair"]
    return locked


def changed(model: Path, **parts: Any) -> None:
    """Write a model's tokenizer.json again with another `normalizer` or `pre_tokenizer`, the vocabulary as it was."""
    engine = Tokenizer.from_file(str(model / "tokenizer.json"))
    for name, part in parts.items():
        setattr(engine, name, part)
    engine.save(str(model / "tokenizer.json"))


# The same texts through both


def test_the_texts_belong_to_the_format() -> None:
    digest = hashlib.sha256("\0".join(TEXTS).encode()).hexdigest()[:16]
    assert (FORMAT, len(TEXTS), digest) == (2, 48, "3d440f0623c6faab"), "other texts give other locks: raise the format's number"


def test_a_pair_with_one_tokenizer_encodes_alike(tmp_path: Path) -> None:
    for name in ("target", "draft"):
        write_model(tmp_path / name)
    assert pair(tmp_path)["texts"] == {"compared": 48, "differ": 0}


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ({"normalizer": normalizers.NFC()}, {"nai\u0308ve cafe\u0301 A\u030angstro\u0308m"}),
        ({"pre_tokenizer": pre_tokenizers.ByteLevel(add_prefix_space=True)}, {TEXTS[0], TEXTS[16]}),
        ({"normalizer": normalizers.Lowercase()}, {TEXTS[0], TEXTS[2]}),
    ],
    ids=["nfc", "prefix-space", "lowercase"],
)
def test_other_pipelines_show_though_every_id_agrees(tmp_path: Path, parts: dict[str, Any], expected: set[str]) -> None:
    for name in ("target", "draft"):
        write_model(tmp_path / name)
    changed(tmp_path / "draft", **parts)
    found = pair(tmp_path)
    assert found["ids_differ"] == 0
    one, other = (tokenizer.load(tmp_path / name) for name in ("target", "draft"))
    assert one and other
    differing = {text for text, left, right in zip(TEXTS, one.encodings, other.encodings, strict=True) if left != right}
    assert expected <= differing and found["texts"]["differ"] == len(differing)
    first = next(text for text in TEXTS if text in differing)
    at = TEXTS.index(first)
    assert found["texts"]["first"] == {
        "text": first, "target_tokens": len(one.encodings[at]), "draft_tokens": len(other.encodings[at]),
    }  # fmt: skip


def test_counts_are_of_texts() -> None:
    same = [[number] for number in range(len(TEXTS))]
    other = [[0, 0] if number in (3, 9) else row for number, row in enumerate(same)]
    facts = encode_differently(same, other)
    assert facts == {"compared": 48, "differ": 2, "first": {"text": TEXTS[3], "target_tokens": 1, "draft_tokens": 2}}


def test_padding_and_truncation_in_the_file_do_not_count(tmp_path: Path) -> None:
    before = tokenizer.load(write_model(tmp_path / "m"))
    engine = Tokenizer.from_file(str(tmp_path / "m" / "tokenizer.json"))
    engine.enable_padding(length=200)
    engine.enable_truncation(4)
    engine.save(str(tmp_path / "m" / "tokenizer.json"))
    after = tokenizer.load(tmp_path / "m")
    assert before and after and before.encodings == after.encodings and max(map(len, after.encodings)) > 4


# SentencePiece


@pytest.fixture
def sentencepiece_model(tmp_path: Path) -> Path:
    trainer = pytest.importorskip("sentencepiece").SentencePieceTrainer
    (tmp_path / "corpus.txt").write_text("\n".join([*PROSE, *PYTHON, *["a bag and a box"] * 40]))
    folder = tmp_path / "m"
    folder.mkdir()
    trainer.train(
        input=str(tmp_path / "corpus.txt"), model_prefix=str(folder / "tokenizer"), vocab_size=330, model_type="bpe",
        byte_fallback=True, minloglevel=2,
    )  # fmt: skip
    (folder / "config.json").write_text('{"model_type": "llama"}')
    (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "LlamaTokenizer", "add_bos_token": true}')
    return folder


def test_a_converted_tokenizer_has_the_pieces_and_ids_of_its_file(sentencepiece_model: Path) -> None:
    import sentencepiece

    loaded = tokenizer.load(sentencepiece_model)
    own = sentencepiece.SentencePieceProcessor(model_file=str(sentencepiece_model / "tokenizer.model"))
    assert loaded is not None and (loaded.kind, loaded.name) == ("converted", "LlamaTokenizer")
    assert loaded.special == {"bos": 1, "eos": 2, "unk": 0} and loaded.add_bos and loaded.space == "▁"
    assert loaded.vocab == {own.id_to_piece(id_): id_ for id_ in range(own.get_piece_size())}
    plain = TEXTS.index("HELLO World iPhone McDonald NASA's eBay")
    assert loaded.encodings[plain] == own.encode(TEXTS[plain])


def test_conversion_finds_no_torch_even_where_it_is_installed(sentencepiece_model: Path) -> None:
    pytest.importorskip("torch")
    code = (
        "import sys, importlib.util, speclint.lock.conversion as c; importlib.util.find_spec = c._without_torch;"
        f"c.facts({str(sentencepiece_model)!r}); print({{'torch', 'vllm'}} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


# Tekken


def write_tekken(path: Path, tokens: list[bytes], *, specials: list[dict[str, Any]] | None, count: int, cut: int = 0) -> None:
    """A tekken.json of these tokens, of which the stated size cuts off the last `cut`."""
    config = {
        "pattern": r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+|\s+",
        "num_vocab_tokens": len(tokens),
        "default_vocab_size": count + len(tokens) - cut,
        "default_num_special_tokens": count,
        "version": "v3" if specials is None else "v13",
    }
    vocab = [
        {"rank": rank, "token_bytes": base64.b64encode(token).decode(), "token_str": None} for rank, token in enumerate(tokens)
    ]
    stated = {"config": config, "vocab": vocab} | ({} if specials is None else {"special_tokens": specials})
    path.write_text(json.dumps(stated))


BYTES = [bytes([byte]) for byte in range(256)]
WORDS = [b"he", b" h", b" he", b"re", b"\xc3\xa9", b" \xe2\x82"]
NAMED = [{"rank": id_, "token_str": string, "is_control": True} for id_, string in enumerate(SPECIALS)]


@pytest.mark.parametrize(
    ("specials", "count", "cut"), [(None, 24, 0), (NAMED, 5, 0), (NAMED, 3, 2)], ids=["old", "filled-up", "cut"]
)
def test_tekken_is_what_mistral_common_reads(tmp_path: Path, specials: list[dict[str, Any]] | None, count: int, cut: int) -> None:
    tekkenizer = pytest.importorskip("mistral_common.tokens.tokenizers.tekken").Tekkenizer
    write_tekken(tmp_path / "tekken.json", [*BYTES, *WORDS], specials=specials, count=count, cut=cut)
    ours, theirs = tokenizer.load(tmp_path), tekkenizer.from_file(tmp_path / "tekken.json")
    assert ours is not None and ours.kind == "tekken"
    assert (ours.base_length, len(ours.strings)) == (theirs.n_words - count, theirs.n_words)
    assert [ours.special[role] for role in ("bos", "eos", "unk")] == [theirs.bos_id, theirs.eos_id, theirs.unk_id]
    assert ours.encodings == [theirs.encode(text, bos=False, eos=False) for text in TEXTS]
    assert [ours.strings[id_] for id_ in range(count)] == [theirs.id_to_piece(id_) for id_ in range(count)]
    byte = {letter: number for number, letter in enumerate(tekken._byte_letters())}
    for id_ in range(count, theirs.n_words):
        assert bytes(byte[letter] for letter in ours.strings[id_]) == theirs.id_to_byte_piece(id_)


def test_tekken_compares_with_a_tokenizer_json_id_by_id(tmp_path: Path) -> None:
    write_model(tmp_path / "draft", specials=SPECIALS)
    write_model(tmp_path / "target", specials=SPECIALS)
    (tmp_path / "target" / "tokenizer.json").unlink()
    byte = {letter: number for number, letter in enumerate(tekken._byte_letters())}
    loaded = tokenizer.load(tmp_path / "draft")
    assert loaded is not None
    ordinary = [bytes(byte[letter] for letter in string) for id_, string in loaded.strings.items() if id_ >= len(SPECIALS)]
    write_tekken(tmp_path / "target" / "tekken.json", ordinary, specials=NAMED, count=len(SPECIALS))
    assert pair(tmp_path)["ids_differ"] == 0
    swapped = [*ordinary[:-2], ordinary[-1], ordinary[-2]]
    write_tekken(tmp_path / "target" / "tekken.json", swapped, specials=NAMED, count=len(SPECIALS))
    assert pair(tmp_path)["ids_differ_ordinary"] == 2


@pytest.mark.parametrize("text", ["{", "[]", '{"config": {}}', '{"vocab": 3, "config": {"default_num_special_tokens": 0}}'])
def test_a_broken_tekken_file_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "tekken.json").write_text(text)
    with pytest.raises(LockError, match="not a tekken file"):
        tokenizer.load(tmp_path)


# What cannot be read


@pytest.mark.parametrize(
    ("name", "said"), [("tokenizer.model.v3", "Mistral's older format"), ("tokenization_odd.py", "remote code is never run")]
)
def test_what_cannot_be_read_does_not_pass_for_no_tokenizer(tmp_path: Path, name: str, said: str) -> None:
    (tmp_path / name).write_text("raise SystemExit('this ran')")
    with pytest.raises(LockError, match=said) as caught:
        tokenizer.load(tmp_path)
    assert "tokenizer.json" in caught.value.hint
