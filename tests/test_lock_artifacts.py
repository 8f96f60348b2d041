"""What the lock rests on: tree digest, resolution through a hub cache, tokenizers, vocabularies, weights."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tiny_checkpoints import PROSE, write_model, write_safetensors

from speclint import canonical
from speclint.lock import LockError, tokenizer, tree, tree_digest
from speclint.lock.architecture import config_facts
from speclint.lock.facts import build_lock
from speclint.lock.resolve import Artifact, resolve
from speclint.lock.vocabulary import compare, intersection, missing_specials
from speclint.lock.weights import read_header, weight_facts

COMMIT = "0123456789abcdef0123456789abcdef01234567"


# Tree digest


def recipe() -> str:
    return str(tree.__doc__).split("recompute it:")[1].split("Documentation is")[0]


def by_coreutils(folder: Path) -> str:
    """The recipe of the module's docstring, run as it stands there."""
    command = " ".join(line.strip().removesuffix("\\") for line in recipe().strip().splitlines()).replace("FOLDER", ".")
    done = subprocess.run(["bash", "-c", command], cwd=folder, capture_output=True, text=True, check=True)
    return "sha256:" + done.stdout.split()[0]


def test_anyone_can_recompute_the_tree_digest(tmp_path: Path) -> None:
    for name in ("b.json", "a/z.json", "a-b.json", "A.json", "ä.json", "with space.json", "a/__pycache__/x.pyc"):
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / name).write_text(name)
    for name in (".git", "README.md", "b.json~", "x.swp", "LICENSE", "NOTICE"):
        (tmp_path / name).write_text("left out")
    (tmp_path / "link.json").symlink_to("b.json")
    assert list(tree.tree_files(tmp_path)) == [
        "A.json", "a-b.json", "a/z.json", "b.json", "link.json", "with space.json", "ä.json",
    ]  # fmt: skip
    assert tree_digest(tmp_path) == by_coreutils(tmp_path)


def test_the_documentation_gives_the_same_recipe() -> None:
    page = (Path(__file__).parent.parent / "docs" / "lock.md").read_text(encoding="utf-8")
    documented = page.split("anyone can recompute:")[1].split("```")[1].removeprefix("sh\n")
    assert documented.split() == recipe().split()


def test_it_changes_with_names_and_contents_only(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    first = tree_digest(tmp_path)
    (tmp_path / "README.md").write_text("a card")
    (tmp_path / "config.json").touch()
    assert tree_digest(tmp_path) == first
    # An engine would load this one, whatever its name begins with.
    (tmp_path / "README.safetensors").write_text("")
    second = tree_digest(tmp_path)
    (tmp_path / "README.safetensors").rename(tmp_path / "other.safetensors")
    third = tree_digest(tmp_path)
    (tmp_path / "config.json").write_text("{ }")
    assert len({first, second, third, tree_digest(tmp_path)}) == 4


@pytest.mark.parametrize(
    ("target", "said"), [("../secret", "leads out"), ("gone", "broken link"), ("sub", "link to a folder"), ("in", "broken")]
)
def test_links_that_lead_astray_are_refused(tmp_path: Path, target: str, said: str) -> None:
    (tmp_path / "secret").write_text("x")
    folder = tmp_path / "model"
    (folder / "sub").mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    (folder / "in").symlink_to(target)
    with pytest.raises(LockError, match=said):
        tree_digest(folder)


def test_an_empty_missing_or_unspeakable_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LockError, match="no model files"):
        tree_digest(tmp_path)
    with pytest.raises(LockError, match="does not exist"):
        tree_digest(tmp_path / "none")
    (tmp_path / "a\nb").write_text("")
    with pytest.raises(LockError, match="line break"):
        tree_digest(tmp_path)


# Hub cache


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An offline hub cache that holds org/name at one commit: refs, blobs, and a snapshot of links to them."""
    import huggingface_hub.constants as constants

    repo = tmp_path / "hub" / "models--org--name"
    model = write_model(tmp_path / "made")
    snapshot = repo / "snapshots" / COMMIT
    for folder in (repo / "refs", repo / "blobs", snapshot):
        folder.mkdir(parents=True)
    for number, file in enumerate(sorted(model.iterdir())):
        shutil.copy(file, repo / "blobs" / f"blob{number}")
        (snapshot / file.name).symlink_to(f"../../blobs/blob{number}")
    (repo / "refs" / "main").write_text(COMMIT)
    (repo / "refs" / "v1.0").write_text(COMMIT)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    return snapshot


@pytest.mark.parametrize("revision", [COMMIT, COMMIT[:8], "main", "v1.0", None])
def test_every_kind_of_revision_resolves_to_the_commit(cache: Path, tmp_path: Path, revision: str | None) -> None:
    found = resolve("org/name", revision, tmp_path)
    assert (found.kind, found.revision) == ("hub", COMMIT)
    assert found.folder.samefile(cache)
    assert weight_facts(found, config_facts(found.folder))["embedding_rows"] == 300


def test_a_snapshot_given_as_a_path_hashes_like_the_files_it_links_to(cache: Path, tmp_path: Path) -> None:
    assert tree_digest(cache) == tree_digest(tmp_path / "made") == resolve("made", None, tmp_path).revision


def test_a_fresh_process_heeds_the_hubs_environment(cache: Path, tmp_path: Path) -> None:
    code = "from pathlib import Path; from speclint.lock.resolve import *; print(resolve('org/name', 'main', Path()))"
    env = os.environ | {"HF_HUB_CACHE": str(tmp_path / "hub"), "HF_HUB_OFFLINE": "1"}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False)
    assert COMMIT in done.stdout, done.stderr


@pytest.mark.parametrize(
    ("name", "revision", "said"),
    [
        ("org/other", COMMIT, "not in the hub cache, and HF_HUB_OFFLINE is set"),
        ("org/name", "f" * 40, "not in the hub cache"),
        ("org/name", "dev", "not in the hub cache"),
        ("./org/name", None, "does not exist"),
        ("org/name", "sha256:" + "0" * 64, "does not exist"),
        ("made/config.json", None, "is a file"),
    ],
)
def test_what_is_not_there_is_explained(cache: Path, tmp_path: Path, name: str, revision: str | None, said: str) -> None:
    with pytest.raises(LockError, match=said) as caught:
        resolve(name, revision, tmp_path)
    assert caught.value.hint


def test_uncached_weights_are_unread_offline_and_read_by_range_online(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from huggingface_hub.utils import SafetensorsFileMetadata, SafetensorsRepoMetadata, TensorInfo

    (cache / "model.safetensors").unlink()
    index = {"metadata": {"total_size": 4816}, "weight_map": {"model.embed_tokens.weight": "model-00001.safetensors"}}
    (cache / "model.safetensors.index.json").write_text(json.dumps(index))
    found = resolve("org/name", COMMIT, tmp_path)
    config = config_facts(found.folder)
    assert weight_facts(found, config) == {"format": "safetensors", "bytes": 4816, "headers": "unread"}
    tensor = TensorInfo(dtype="BF16", shape=[304, 8], data_offsets=(0, 4864))
    file = SafetensorsFileMetadata(metadata={}, tensors={"model.embed_tokens.weight": tensor})
    remote = SafetensorsRepoMetadata(metadata=None, sharded=False, weight_map={}, files_metadata={"m": file})
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    monkeypatch.setattr("huggingface_hub.get_safetensors_metadata", lambda name, revision: remote)
    assert weight_facts(found, config)["embedding_rows"] == 304


@pytest.mark.parametrize(
    ("error", "said", "hint"),
    [
        ("GatedRepoError", "is gated", "/org/gated, then `hf auth login`"),
        ("RepositoryNotFoundError", "neither a local folder nor a model", "hf auth login"),
        ("RevisionNotFoundError", "no such revision", "commit"),
    ],
)
def test_the_hubs_refusals_are_explained(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: str, said: str, hint: str
) -> None:
    import huggingface_hub

    def refuse(*_: Any, **__: Any) -> None:
        raise getattr(huggingface_hub.errors, error).__new__(getattr(huggingface_hub.errors, error))

    monkeypatch.setattr(huggingface_hub.HfApi, "model_info", refuse)
    with pytest.raises(LockError, match=said) as caught:
        resolve("org/gated", "main", tmp_path)
    assert hint in caught.value.hint


# Tokenizers


@pytest.mark.parametrize(
    "tokenizer_config",
    [
        {},
        {"added_tokens_decoder": {"300": {"content": "<turn>", "special": True}, "301": {"content": "<tool>"}}},
        {"bos_token": {"__type": "AddedToken", "content": "<bos>"}, "pad_token": "<pad>"},
        {"tokenizer_class": "GPT2Tokenizer", "bos_token": None},
        {"tokenizer_class": "LlamaTokenizerFast", "add_bos_token": True},
    ],
)
def test_tokenizer_json_is_read_as_transformers_loads_it(tmp_path: Path, tokenizer_config: dict[str, Any]) -> None:
    folder = write_model(tmp_path / "m", tokenizer_config=tokenizer_config)
    ours, theirs = tokenizer.load(folder), tokenizer._converted(folder)
    assert ours is not None and ours.kind == "fast"
    for field in ("vocab", "base_length", "added", "special", "space", "add_bos", "add_eos"):
        assert getattr(ours, field) == getattr(theirs, field), field
    if "Llama" not in ours.name:  # transformers 5 replaces the file's pre-tokenizer by that class's own
        assert ours.encodings == theirs.encodings


def test_the_template_names_the_tokens_it_writes(tmp_path: Path) -> None:
    template = "{{ bos_token }}<turn>{{ text }}"
    rows = {"300": {"content": "<turn>", "special": True}, "301": {"content": "<spare>", "special": True}}
    write_model(tmp_path / "m", tokenizer_config={"chat_template": template, "added_tokens_decoder": rows})
    write_model(tmp_path / "d")
    speculative = {"method": "draft_model", "model": "d"}
    spec = {"pair": {"target": {"model": "m"}, "speculative": speculative}, "protocol": {"workloads": []}}
    locked = build_lock(spec, tmp_path)
    assert locked["target"]["tokenizer"]["template_tokens"] == ["<s>", "<turn>"]
    assert locked["draft"]["tokenizer"]["missing"] == {"used": ["<turn>"], "unused": ["<spare>"], "count": 2}
    (tmp_path / "m" / "chat_template.jinja").write_text("{{ text }}")
    assert build_lock(spec, tmp_path)["target"]["tokenizer"]["template_tokens"] == []


def test_a_post_processor_that_adds_bos_is_seen(tmp_path: Path) -> None:
    folder = write_model(tmp_path / "m")
    from tokenizers import Tokenizer, processors

    engine = Tokenizer.from_file(str(folder / "tokenizer.json"))
    engine.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 0)])
    before = tokenizer.load(folder)
    engine.save(str(folder / "tokenizer.json"))
    after = tokenizer.load(folder)
    assert before and after and (before.add_bos, after.add_bos, after.add_eos) == (False, True, False)
    assert tokenizer.id_map_digest(before) == tokenizer.id_map_digest(after)
    assert before.pipeline != after.pipeline


def test_a_tokenizer_that_needs_remote_code_is_refused(tmp_path: Path) -> None:
    config = {"tokenizer_class": "Odd", "auto_map": {"AutoTokenizer": ["odd.Odd", None]}}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    (tmp_path / "config.json").write_text('{"model_type": "odd"}')
    (tmp_path / "vocab.txt").write_text("a\n")
    (tmp_path / "odd.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    with pytest.raises(LockError, match="cannot be loaded") as caught:
        tokenizer.load(tmp_path)
    assert "remote code is never run" in caught.value.hint and not (tmp_path / "ran").exists()


def test_the_id_map_digest_is_that_of_the_canonical_form(tmp_path: Path) -> None:
    loaded = tokenizer.load(write_model(tmp_path / "m", specials=("<s>", "</s>", 'q"\u2028\x1f\\', "\x7f€😀")))
    assert loaded is not None
    assert tokenizer.id_map_digest(loaded) == canonical.digest([[i, s] for i, s in loaded.strings.items()])


# Vocabularies


def made(ids: dict[str, int], *, added: dict[int, bool] | None = None, **changed: Any) -> tokenizer.Tokenizer:
    facts: dict[str, Any] = {"kind": "fast", "name": "T", "base_length": len(ids), "special": {}, "space": "Ġ", "pipeline": ""}
    facts["encodings"] = []
    return tokenizer.Tokenizer(vocab=ids, added=added or {}, add_bos=False, add_eos=False, **(facts | changed))


def test_padding_alone_is_no_difference() -> None:
    one = made({"a": 0, "b": 1})
    pair = compare(one, made({"b": 1, "a": 0}), 128, 256)
    assert (pair["ids_differ"], pair["overlap_target"], pair["overlap_draft"]) == (0, 1.0, 1.0)


def test_differences_are_counted_by_kind_and_the_first_ten_shown() -> None:
    ours = made({f"t{i}": i for i in range(20)} | {"<tool>": 20, "<turn>": 21}, added={20: False, 21: True})
    theirs = made({f"t{i ^ 1}": i for i in range(20)} | {"<end>": 21}, added={21: False})
    pair = compare(ours, theirs, 22, 22)
    kinds = {kind: pair[f"ids_differ_{kind}"] for kind in ("ordinary", "added", "special")}
    assert (pair["ids_differ"], kinds) == (22, {"ordinary": 20, "added": 1, "special": 1})
    assert len(pair["first"]) == 10 and pair["first"][0] == [0, "t0", "t1"]
    assert (pair["intersection"], pair["overlap_target"], pair["overlap_draft"]) == (20, 0.909091, 0.952381)


def test_fallback_is_unk_then_eos_then_none() -> None:
    sides = [made({"a": 0, "u": 1}, special=special) for special in ({"unk": 1, "eos": 0}, {"eos": 0}, {})]
    found = [compare(side, side, 2, 2)["fallback"]["draft"] for side in sides]
    assert found == [{"kind": "unk", "id": 1, "token": "u"}, {"kind": "eos", "id": 0, "token": "a"}, {"kind": "none"}]


def test_missing_specials_are_split_by_use() -> None:
    ours = made({"a": 0, "<turn>": 1, "<spare>": 2, "<tool>": 3}, added={1: True, 2: True, 3: False})
    missing = missing_specials(ours, made({"a": 0, "<tool>": 1}), {"<turn>", "<tool>"})
    assert missing == {"used": ["<turn>"], "unused": ["<spare>"], "count": 2}


def test_the_intersection_is_the_engines_own(tmp_path: Path) -> None:
    """Against vLLM's class itself, for markers of both families, cut vocabularies and no marker at all."""
    mapping = pytest.importorskip("vllm.v1.spec_decode.vocab_mapping").VocabMapping
    from transformers import AutoTokenizer

    folders = [write_model(tmp_path / "a"), write_model(tmp_path / "b", PROSE, size=280, specials=("</s>", "<s>"))]
    engines = [AutoTokenizer.from_pretrained(str(folder)) for folder in folders]
    ours = [tokenizer.load(folder) for folder in folders]
    assert ours[0] and ours[1]
    for rows in ((300, 280), (258, 280), (300, 200), (10, 280)):
        assert intersection(ours[0], ours[1], *rows) == mapping(*engines, *rows, "cpu").intersection_size
    metaspace = made({"▁the": 0, "Ġthe": 1, "the": 2}, space=None)
    bytelevel = made({"Ġthe": 0, "▁the": 1, "the": 2})
    stubs = [_Stub(metaspace, [2, 2]), _Stub(bytelevel, [0])]
    assert intersection(metaspace, bytelevel, 3, 3) == mapping(*stubs, 3, 3, "cpu").intersection_size == 2
    # "Ġthe" and " the" are twins: the first of them counts, and here the second has no row.
    twins = made({"Ġthe": 0, "the": 1, " the": 2})
    stubs = [_Stub(twins, [0]), _Stub(twins, [0])]
    assert intersection(twins, twins, 2, 2) == mapping(*stubs, 2, 2, "cpu").intersection_size == 2


class _Stub:
    """A tokenizer by its map alone, ids in order, as the engine's rule asks for it."""

    unk_token_id = 0

    def __init__(self, loaded: tokenizer.Tokenizer, probe: list[int]) -> None:
        self.loaded, self.probe = loaded, probe

    def get_vocab(self) -> dict[str, int]:
        return self.loaded.vocab

    def encode(self, text: str, add_special_tokens: bool) -> list[int]:
        return self.probe

    def convert_ids_to_tokens(self, id_: int) -> str:
        return "Ġa" if self.loaded.space else "x"


# Weights and config


def local(folder: Path) -> Artifact:
    return Artifact(folder.name, "local", tree_digest(folder), folder)


def test_a_config_edited_to_fit_is_betrayed_by_the_weights(tmp_path: Path) -> None:
    folder = write_model(tmp_path / "m", config={"vocab_size": 512})
    config = config_facts(folder)
    assert (config["vocab_size"], weight_facts(local(folder), config)["embedding_rows"]) == (512, 300)


def test_shards_follow_the_index_and_a_missing_one_is_named(tmp_path: Path) -> None:
    folder = write_model(tmp_path / "m")
    (folder / "model.safetensors").rename(folder / "a.safetensors")
    write_safetensors(folder / "b.safetensors", {"lm_head.weight": ("F32", (320, 8))})
    write_safetensors(folder / "stray.safetensors", {"x": ("F32", (1000,))})
    weight_map = {"model.embed_tokens.weight": "a.safetensors", "lm_head.weight": "b.safetensors"}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))
    assert weight_facts(local(folder), {}) == {
        "format": "safetensors", "bytes": 15056, "dtypes": {"BF16": 4816, "F32": 10240}, "embedding_rows": 300,
        "output_rows": 320,
    }  # fmt: skip
    (folder / "b.safetensors").unlink()
    with pytest.raises(LockError, match=r"lacks b\.safetensors"):
        weight_facts(local(folder), {})


@pytest.mark.parametrize("damage", [lambda b: b[:-1], lambda b: b + b"\0", lambda b: b[:5], lambda b: b"\xff" * 8 + b[8:]])
def test_a_damaged_safetensors_file_is_refused(tmp_path: Path, damage: Any) -> None:
    path = write_model(tmp_path / "m") / "model.safetensors"
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(LockError, match=r"safetensors|cut off"):
        read_header(path)


def test_pickle_is_told_apart(tmp_path: Path) -> None:
    folder = write_model(tmp_path / "m")
    (folder / "pytorch_model.bin").write_bytes(b"x" * 100)
    assert weight_facts(local(folder), {})["pickle_too"] is True
    (folder / "model.safetensors").unlink()
    assert weight_facts(local(folder), {}) == {"format": "pickle", "bytes": 100}


@pytest.mark.parametrize(
    ("tensors", "found"),
    [
        ({"model.layers.1.x": ("BF16", (2,))}, 0),
        ({"model.layers.2.x": ("BF16", (2,)), "model.layers.2.y": ("BF16", (2,))}, 2),
        ({"mtp.fc.weight": ("BF16", (2, 4))}, 1),
    ],
)
def test_mtp_weights_are_counted_against_what_the_config_declares(tmp_path: Path, tensors: dict[str, Any], found: int) -> None:
    folder = write_model(tmp_path / "m", config={"num_nextn_predict_layers": 1}, tensors=tensors)
    config = config_facts(folder)
    assert (config["mtp_layers"], weight_facts(local(folder), config)["mtp_tensors"]) == (1, found)


def test_config_numbers_are_found_where_they_stand(tmp_path: Path) -> None:
    inner = {"hidden_size": 64, "num_attention_heads": 4, "vocab_size": 900, "dtype": "float16"}
    whole = {"model_type": "seeing", "text_config": inner, "quantization_config": {"quant_method": "awq"}, "auto_map": {}}
    (tmp_path / "config.json").write_text(json.dumps(whole | {"speculators_config": {}}))
    assert config_facts(tmp_path) == {
        "model_type": "seeing", "hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 4, "head_dim": 16,
        "vocab_size": 900, "dtype": "float16", "quantization": "awq", "speculators": True, "remote_code": True,
    }  # fmt: skip


# The example models


MODELS = Path(__file__).parent.parent / "examples" / "models"


@pytest.mark.skipif(not (MODELS / "tiny-target").is_dir(), reason="the example models are not in this checkout")
@pytest.mark.parametrize(
    ("draft", "sizes_equal", "ids_equal"),
    [
        ("tiny-draft", True, True),
        ("tiny-draft-other-tokenizer", False, False),
        ("tiny-draft-same-size-other-ids", True, False),
    ],
)
def test_the_example_pairs_are_what_their_names_say(draft: str, sizes_equal: bool, ids_equal: bool) -> None:
    speculative = {"method": "draft_model", "model": draft}
    spec = {"pair": {"target": {"model": "tiny-target"}, "speculative": speculative}, "protocol": {"workloads": []}}
    locked = build_lock(spec, MODELS)
    sizes = {locked[side]["config"]["vocab_size"] for side in ("target", "draft")}
    assert (len(sizes) == 1, locked["pair"]["ids_differ"] == 0) == (sizes_equal, ids_equal)
    assert all(locked[s]["weights"]["embedding_rows"] == locked[s]["config"]["vocab_size"] for s in ("target", "draft"))
