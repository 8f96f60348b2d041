"""Approving a spec: show what is approved, sign its digests, append the approval."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from speclint import document, lint
from speclint.canonical import digest, entry_digest, section_digests, spec_digest
from speclint.data import metrics
from speclint.history import Base
from speclint.signature import NAMESPACES, statement
from specrun.append import append_entry
from specrun.arrival import place
from specrun.errors import Refused
from specrun.oracle import measurement
from specrun.prepare import counted, digestible
from specrun.scope import COST_MODEL
from specrun.sign import fingerprint, principal_of, public_line, sign
from specrun.who import Who, who_of

NAMESPACE = NAMESPACES["approval"]
# What a new approval cures: earlier ones that are stale or by somebody who may no longer sign.
CURED = {"SL601", "SL603"}


def approve(
    path: Path,
    key: Path,
    *,
    approver: str | None = None,
    show: Callable[[str], object] = print,
    base: Base | None = None,
) -> dict[str, Any]:
    """Sign the spec as it stands and append the approval, which is returned.

    `show` gets what is being approved before anything is signed; it may raise to stop there. With a `base` it says who may
    approve, whatever the work tree says. Raises Refused when the file has errors or the key may not approve,
    EnvironmentTrouble without OpenSSH or key, NotWritten.
    """
    report = _inspected(path, base)
    data = report.document.data
    digestible(path, data)
    counted(path, data)
    who = who_of(path, data, base)
    entry = _entry(data, _suppressions(report), _approver(path, key, approver, who))
    show(
        "\n".join(
            [*describe(data, entry, _reasons(report)), f"signed with   {fingerprint(key)}", f"judged by     the {who.allowed}"]
        )
    )
    entry["signature"] = sign(statement("approval", data["name"], entry["spec"], entry), key, NAMESPACE)
    outcome = who.verify("approval", data, entry)
    if not outcome.ok:
        raise Refused(f"{entry['approver']} may not approve with this key: {outcome.reason}", _how_to_trust(who, key, entry))
    append_entry(path, "approvals", entry)
    return entry


def describe(data: dict[str, Any], entry: dict[str, Any], reasons: dict[tuple[str, str], str]) -> Iterator[str]:
    """What an approval says, line by line. `reasons`: why each finding is ignored, by code and path."""
    pair, protocol = data["pair"], data["protocol"]
    yield f"spec          {data['name']}   {entry['spec']}"
    yield from (f"  {name:<11} {value}" for name, value in entry["sections"].items())
    draft = pair["speculative"].get("model", "no draft model")
    yield f"pair          {pair['target']['model']} with {pair['speculative']['method']}, {draft}"
    yield f"engine        {pair['engine']['name']} {pair['engine']['version']} on {pair['placement']['device']}"
    if not measurement(data):
        yield f"kind          {COST_MODEL}"
    yield f"criteria      at confidence {protocol['confidence']:g}"
    yield from (f"  {in_words(criterion)}" for criterion in protocol["criteria"])
    yield from (f"ignored       {_ignored(item)}: {reasons[item['code'], item['path']]}" for item in entry["suppressions"])
    yield f"results known {len(entry['results_known'])}"
    yield f"approver      {entry['approver']}"


def in_words(criterion: dict[str, Any]) -> str:
    """A criterion as a sentence, such as `fast: request_duration_p50, pair / target, of varied at 1, at most 0.9`."""
    unit = metrics()[criterion["metric"]]["unit"]
    ratio, unit = (", pair / target", "") if criterion.get("compare") == "ratio" else ("", "" if unit == "1" else f" {unit}")
    where = f", of {criterion['workload']}" if "workload" in criterion else ""
    level = f" {place(criterion['concurrency'], 'concurrency ')}" if "concurrency" in criterion else ""
    bound = f"at most {criterion['at_most']:g}" if "at_most" in criterion else f"at least {criterion['at_least']:g}"
    return f"{criterion['id']}: {criterion['metric']}{ratio}{where}{level}, {bound}{unit}"


def _inspected(path: Path, base: Base | None) -> lint.Report:
    report = lint.inspect(document.read(path), path.parent, base=base)
    errors = [item for item in report.diagnostics if item.severity == "error" and item.code not in CURED]
    if errors:
        first = f"{errors[0].code} at line {errors[0].line}: {errors[0].message}"
        more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
        raise Refused(f"{path} has errors, so it cannot be approved: {first}{more}", f"see `speclint check {path}`")
    return report


def _entry(data: dict[str, Any], suppressions: list[dict[str, Any]], approver: str) -> dict[str, Any]:
    entry = {
        "approver": approver,
        "time": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "spec": spec_digest(data),
        "sections": section_digests(data),
        "suppressions": suppressions,
        "results_known": [entry_digest(result) for result in data.get("results") or []],
    }
    # Named by its content, so that approvals given on two branches do not collide.
    return {"id": "a-" + digest(entry)[7:15], **entry}


def _suppressions(report: lint.Report) -> list[dict[str, Any]]:
    rows = {(hit.code, hit.path, item.until.isoformat() if item.until else None) for item, hit in report.suppressed}
    return [{"code": code, "path": path, "until": until} for code, path, until in sorted(rows, key=str)]


def _ignored(item: dict[str, Any]) -> str:
    return f"{item['code']} at {item['path'] or '/'}" + (f" until {item['until']}" if item["until"] else "")


def _reasons(report: lint.Report) -> dict[tuple[str, str], str]:
    return {(hit.code, hit.path): item.reason for item, hit in report.suppressed}


def _approver(path: Path, key: Path, named: str | None, who: Who) -> str:
    if who.trust.problem:
        raise Refused(who.in_words(who.trust.problem), "make the file it names, or mend speclint.toml")
    approver = named or principal_of(key, who.trust, NAMESPACE)
    if approver is None:
        hint = _how_to_trust(who, key, {"approver": "you@example.com"})
        raise Refused(f"key {fingerprint(key)} is not among the {who.allowed} for {path}", hint)
    return approver


def _how_to_trust(who: Who, key: Path, entry: dict[str, Any]) -> str:
    trust = who.trust
    if trust.problem:
        return ""
    line = f'{entry["approver"]} namespaces="{",".join(NAMESPACES.values())}" {public_line(key) or "<its public key>"}'
    if trust.allowed_signers:
        return who.in_words(f"whoever keeps {trust.allowed_signers} may add the line\n{line}")
    return f'put a speclint.toml beside the spec with\n[trust]\nallowed_signers = "allowed_signers"\nand in that file\n{line}'
