"""What must hold before the first server starts: no lint errors, an approval, the right engine, the locked files."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from speclint import document, edit, lint, workload
from speclint.canonical import NotCanonical, entry_digest, section_digests, spec_digest
from speclint.history import Base
from speclint.lock.command import build_lock, changes
from specrun.errors import NotWritten, Refused, SpecrunError
from specrun.run import now
from specrun.who import who_of

# Findings about what is already in the file do not forbid another run; an approval is asked for below, in its own words.
NOT_ABOUT_THE_RUN = {"SL601", "SL609", "SL612", "SL613"}


def readable(path: Path) -> document.Document:
    """The spec file, or a SpecrunError that says what is wrong with the path."""
    try:
        return document.read(path)
    except OSError as error:
        raise SpecrunError(
            f"{path} cannot be read: {error.strerror}", "name a spec file, such as tiny-draft.spec.yaml"
        ) from error


def shaped(path: Path) -> dict[str, Any]:
    """The data of a file that has the shape of a spec, whatever the rules say of it. Raises Refused with the first fault."""
    report = lint.inspect(readable(path), path.parent)
    first = next((d for d in report.diagnostics if d.code.startswith(("SL0", "SL1")) and d.severity == "error"), None)
    if first or not isinstance(report.document.data, dict):
        why = f":{first.line}:{first.column}: {first.code} {first.message}" if first else " holds no spec"
        raise Refused(f"{path}{why}", f"see `speclint check {path}`")
    data: dict[str, Any] = report.document.data
    return data


def checked(path: Path, base: Base | None = None) -> dict[str, Any]:
    """The data of a spec without lint errors, those against a base branch among them. Raises Refused with the first."""
    report = lint.inspect(readable(path), path.parent, base=base)
    errors = [d for d in report.diagnostics if d.severity == "error" and d.code not in NOT_ABOUT_THE_RUN]
    if errors:
        first, more = errors[0], f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
        raise Refused(f"{path}:{first.line}:{first.column}: {first.code} {first.message}{more}", f"see `speclint check {path}`")
    data: dict[str, Any] = report.document.data
    digestible(path, data)
    counted(path, data)
    return data


def digestible(path: Path, data: dict[str, Any]) -> None:
    """The spec has a digest, whatever was suppressed. Raises Refused with the value that has no canonical form."""
    try:
        spec_digest(data)
    except NotCanonical as error:
        raise Refused(f"{path} has no digest: {error}", f"see `speclint check {path}`") from None


def counted(path: Path, data: dict[str, Any]) -> None:
    """Every level of concurrency has its number of requests, whatever was suppressed. Raises Refused with the list at fault."""
    if wrong := workload.unmatched(data["protocol"]):
        hint = "write one number for each level of load.concurrency, in their order, or one for all"
        raise Refused(f"{path}: {wrong} levels of concurrency", hint)


def approvals(path: Path, data: dict[str, Any], signer: str | None, base: Base | None = None) -> list[str]:
    """Digests of the approvals under which this very spec may run. Raises Refused if they are too few for the policy,
    which is the one of a base branch where there is one."""
    who = who_of(path, data, base)
    digest = spec_digest(data)
    valid: dict[str, str] = {}
    why = ["the file has no approval"] if not data.get("approvals") else []
    silenced = {(hit.code, hit.path) for _, hit in lint.inspect(readable(path), path.parent).suppressed}
    for entry in data.get("approvals", []):
        outcome = who.verify("approval", data, entry)
        if entry["spec"] != digest:
            why.append(
                f"{entry['id']} by {entry['approver']} is for another state of the spec: {', '.join(changed(data, entry))}"
            )
        elif not outcome.ok:
            why.append(f"{entry['id']} by {entry['approver']}: {outcome.reason}")
        elif who.trust.other_than_signer and entry["approver"] == signer:
            why.append(f"{entry['id']} is by {signer}, who runs it too")
        elif entry["time"] > (clock := now()):  # a run that begins before its approval would never verify
            why.append(f"{entry['id']} was given at {entry['time']}, and the clock of this machine says {clock}")
        elif unseen := silenced - {(row["code"], row["path"]) for row in entry["suppressions"]}:
            why.append(f"{entry['id']} was given without ignore[{min(unseen)[0]}] at {min(unseen)[1] or '/'}")
        else:
            valid[entry["approver"]] = entry_digest(entry)
    if len(valid) < who.trust.min_approvals:
        needed = f"{len(valid)} of {who.trust.min_approvals} approvals"
        raise Refused(
            f"{path} is not approved ({needed}): {'; '.join(why)}",
            f"`specrun approve {path} --key KEY`, or --unapproved, which marks the result",
        )
    return sorted(valid.values())


def changed(data: dict[str, Any], entry: dict[str, Any]) -> list[str]:
    """Names of the sections that differ from those approved."""
    now, then = section_digests(data), entry["sections"]
    return [name for name in then if now.get(name) != then[name]] or ["schema or name"]


def engine(data: dict[str, Any], probed: dict[str, Any]) -> None:
    """The installed engine is the release that the spec names. Raises Refused."""
    wanted, found = data["pair"]["engine"]["version"], re.sub(r"\+.*", "", str(probed["version"]))
    if found != wanted:
        name = probed["distribution"]
        raise Refused(
            f"the spec is for vLLM {wanted}, installed is {name} {probed['version']}",
            f"install {name}=={wanted}, or name another interpreter with --python; "
            f"what differs: `speclint releases --diff {found} {wanted}`",
        )


def artifacts(path: Path, data: dict[str, Any]) -> None:
    """Model, tokenizer and prompt files are the locked ones, and the target is one that can run alone. Raises Refused."""
    found, locked = build_lock(data, path.parent), data.get("lock", {})
    differing = sorted({change.path.partition(".")[0] for change in changes(locked, found)})
    if found["target"]["config"].get("speculators"):  # whatever was suppressed: every arm would speculate
        raise Refused(f"the target of {path} switches speculation on by itself, so that no arm is the target alone", "see SL430")
    if differing:
        raise Refused(
            f"{', '.join(differing)} are not what {path} has locked", f"`speclint lock --check {path}` says what differs"
        )


def room_for_result(path: Path) -> None:
    """The file can take a result: asked before hours of measuring, not after. Raises NotWritten with the reason."""
    try:
        edit.add_entry(path.read_bytes(), "results", {"id": "probe"})
    except edit.EditRefused as error:
        raise NotWritten(f"a result could not be appended to {path}: {error.message}", error.hint) from error
