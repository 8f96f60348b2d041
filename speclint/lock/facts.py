"""The lock of a spec, built from the files that the spec pins."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from speclint import workload
from speclint.file_arguments import named_files
from speclint.lock.architecture import config_facts, read_json
from speclint.lock.errors import LockError
from speclint.lock.format import FORMAT, in_format, stated_format
from speclint.lock.proposer import card_base_model
from speclint.lock.resolve import Artifact, recorded_files, resolve
from speclint.lock.texts import encode_differently
from speclint.lock.tokenizer import Tokenizer, chat_template, id_map_digest, load, stop_ids
from speclint.lock.tree import file_digest
from speclint.lock.vocabulary import compare, missing_specials
from speclint.lock.weights import weight_facts
from speclint.methods import HEADS, draft_model
from speclint.spec import Spec


def build_lock(spec_data: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The `lock` of a well-formed spec whose relative paths start at `folder`. Raises LockError.

    Reads the small files and the safetensors headers of target and draft; a local folder is hashed whole. The layout is that
    of the spec's own lock, if it has one, else the newest.
    """
    pair = spec_data["pair"]
    named = [pair["target"], pair["target"].get("tokenizer"), _draft(Spec(spec_data))]
    with ThreadPoolExecutor(max_workers=len(named)) as pool:
        target, tokenizer, draft = pool.map(lambda ref: _resolved(ref, folder), named)
    assert target is not None
    ours = load((tokenizer or target).folder)
    if ours is None:
        raise LockError(f"{(tokenizer or target).name} has no tokenizer", "name one under pair.target.tokenizer")
    lock: dict[str, Any] = {"format": FORMAT, "target": _locked_model(target, tokenizer or target, ours)}
    if draft is not None:
        lock |= _draft_facts(draft, lock["target"], ours)
        lock["draft"]["config"] |= _card_facts(draft, lock["draft"]["config"], Spec(spec_data).method)
    lock |= _files(pair.get("engine_args", {}), folder) | {"workloads": _workloads(spec_data["protocol"], folder)}
    return in_format(lock, stated_format(spec_data))


def _files(engine_args: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Digest of every file that an engine argument names; nothing if none does. Raises LockError for one that is not here."""
    names = sorted({name for _, name in named_files(engine_args)})
    missing = [name for name in names if not (folder / name).is_file()]
    if missing:
        raise LockError(f"{missing[0]}, which an engine argument names, is not a file beside the spec", "mend the path")
    return {"files": {name: "sha256:" + file_digest(folder / name) for name in names}} if names else {}


def _draft(spec: Spec) -> dict[str, Any] | None:
    """Reference to the draft's checkpoint, if the method has one."""
    return spec.speculative if draft_model(spec) else None


def _resolved(reference: dict[str, Any] | None, folder: Path) -> Artifact | None:
    return None if reference is None else resolve(reference["model"], reference.get("revision"), folder)


def _draft_facts(draft: Artifact, target: dict[str, Any], ours: Tokenizer) -> dict[str, Any]:
    """`draft` and, if it has a tokenizer of its own, `pair`."""
    theirs = load(draft.folder)
    locked = _locked_model(draft, draft, theirs)
    if theirs is None:
        return {"draft": locked}
    used = {*target["tokenizer"]["template_tokens"], *(string for _, string in target["tokenizer"]["stop"])}
    locked["tokenizer"]["missing"] = missing_specials(ours, theirs, used)
    sizes = [model["config"].get("vocab_size", len(side.vocab)) for model, side in ((target, ours), (locked, theirs))]
    texts = encode_differently(ours.encodings, theirs.encodings)
    return {"draft": locked, "pair": compare(ours, theirs, *sizes) | {"texts": texts}}


def _card_facts(draft: Artifact, config: dict[str, Any], method: str | None) -> dict[str, str]:
    """The target that a head was made for, where only its model card names it."""
    named = card_base_model(draft.folder) if method in HEADS and "base_model" not in config else None
    return {"base_model": named} if named else {}


def _locked_model(model: Artifact, tokenizer: Artifact, loaded: Tokenizer | None) -> dict[str, Any]:
    config = config_facts(model.folder)
    facts = {"kind": "none"} if loaded is None else _tokenizer_facts(model, tokenizer, loaded, config)
    return {
        "revision": model.revision,
        "files": recorded_files(model.folder),
        "config": config,
        "weights": weight_facts(model, config),
        "tokenizer": facts,
    }


def _tokenizer_facts(model: Artifact, source: Artifact, loaded: Tokenizer, config: dict[str, Any]) -> dict[str, Any]:
    strings, template = loaded.strings, chat_template(source.folder)
    own = source.folder == model.folder
    stops = stop_ids(model.folder, read_json(model.folder / "config.json"), loaded)
    return {
        "kind": loaded.kind,
        "class": loaded.name,
        **({} if own else {"model": source.name, "revision": source.revision}),
        "lengths": {"base": loaded.base_length, "with_added": len(strings), "config": config.get("vocab_size")},
        "id_map": id_map_digest(loaded),
        "pipeline": loaded.pipeline,
        "special": {role: [id_, strings.get(id_)] for role, id_ in loaded.special.items()},
        "added": len(loaded.added),
        "stop": [[id_, strings.get(id_)] for id_ in stops],
        "template_tokens": _template_tokens(template, loaded),
        "chat_template": bool(template),
        "add_bos": loaded.add_bos,
        "add_eos": loaded.add_eos,
    }


def _template_tokens(template: str, tokenizer: Tokenizer) -> list[str]:
    """Added tokens that the template writes: spelled out in it, or by way of its variables `bos_token`, `eos_token`."""
    by_name = {tokenizer.special.get(role) for role in ("bos", "eos") if f"{role}_token" in template}
    added = [(id_, string) for id_, string in tokenizer.strings.items() if id_ in tokenizer.added]
    return [string for id_, string in added if string in template or id_ in by_name]


def _workloads(protocol: dict[str, Any], folder: Path) -> dict[str, Any]:
    try:
        return {
            row["id"]: {
                "generator": workload.generator_version(row),
                "blocks": workload.prompt_digests(row, protocol, folder),
            }
            for row in protocol["workloads"]
        }
    except workload.WorkloadError as error:
        raise LockError(str(error), "correct protocol.workloads, or put the prompt file where the spec says") from error
