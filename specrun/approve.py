"""Approving a spec: show what is approved, sign its digests, append the approval."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from speclint import document, lint
from speclint.canonical import digest, entry_digest, section_digests, spec_digest
from speclint.data import metrics
from speclint.signature import NAMESPACES, load_trust, statement, verify_entry
from specrun.append import append_entry
from specrun.arrival import place
from specrun.errors import Refused
from specrun.sign import fingerprint, principal_of, public_line, sign

NAMESPACE = NAMESPACES["approval"]
# What a new approval cures: earlier ones that are stale or by somebody who may no longer sign.
CURED = {"SL601", "SL603"}


def approve(path: Path, key: Path, *, approver: str | None = None, show: Callable[[str], object] = print) -> dict[str, Any]:
    """Sign the spec as it stands and append the approval, which is returned.

    `show` gets what is being approved before anything is signed; it may raise to stop there. Raises Refused when the
    file has errors or the key may not approve, EnvironmentTrouble without OpenSSH or key, NotWritten.
    """
    report = _inspected(path)
    data = report.document.data
    entry = _entry(data, _suppressions(report), _approver(path, key, approver))
    show("\n".join([*describe(data, entry), f"signed with   {fingerprint(key)}"]))
    entry["signature"] = sign(statement("approval", data["name"], entry["spec"], entry), key, NAMESPACE)
    outcome = verify_entry("approval", data["name"], entry, load_trust(path))
    if not outcome.ok:
        raise Refused(f"{entry['approver']} may not approve with this key: {outcome.reason}", _how_to_trust(path, key, entry))
    append_entry(path, "approvals", entry)
    return entry


def describe(data: dict[str, Any], entry: dict[str, Any]) -> Iterator[str]:
    """What an approval says, line by line."""
    pair, protocol = data["pair"], data["protocol"]
    yield f"spec          {data['name']}   {entry['spec']}"
    yield from (f"  {name:<11} {value}" for name, value in entry["sections"].items())
    draft = pair["speculative"].get("model", "no draft model")
    yield f"pair          {pair['target']['model']} with {pair['speculative']['method']}, {draft}"
    yield f"engine        {pair['engine']['name']} {pair['engine']['version']} on {pair['placement']['device']}"
    yield f"criteria      at confidence {protocol['confidence']:g}"
    yield from (f"  {in_words(criterion)}" for criterion in protocol["criteria"])
    yield from (f"ignored       {item['code']} at {item['path'] or '/'}" for item in entry["suppressions"])
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


def _inspected(path: Path) -> lint.Report:
    report = lint.inspect(document.read(path), path.parent)
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


def _approver(path: Path, key: Path, named: str | None) -> str:
    trust = load_trust(path)
    if trust.problem:
        raise Refused(trust.problem, "make the file it names, or mend speclint.toml")
    approver = named or principal_of(key, trust, NAMESPACE)
    if approver is None:
        hint = _how_to_trust(path, key, {"approver": "you@example.com"})
        raise Refused(f"key {fingerprint(key)} is not among the allowed signers of {path}", hint)
    return approver


def _how_to_trust(path: Path, key: Path, entry: dict[str, Any]) -> str:
    trust = load_trust(path)
    if trust.problem:
        return ""
    line = f'{entry["approver"]} namespaces="{",".join(NAMESPACES.values())}" {public_line(key) or "<its public key>"}'
    if trust.allowed_signers:
        return f"whoever keeps {trust.allowed_signers} may add the line\n{line}"
    return f'put a speclint.toml beside the spec with\n[trust]\nallowed_signers = "allowed_signers"\nand in that file\n{line}'
