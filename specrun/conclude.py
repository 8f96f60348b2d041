"""From the records of a run to what can be said of it. A pure function of the run folder, so anyone can repeat it."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from statistics import median
from typing import Any

from speclint import arms
from speclint.canonical import rounded
from speclint.spec import Spec
from specrun import effective, establish, oracle, plan, proofs, record, rows, scope, sweep, swept
from specrun.agreement import Answers, agreement
from specrun.arrival import Level
from specrun.compare import judge
from specrun.diagnose import diagnose
from specrun.establish import Check, Prompts, Window
from specrun.evidence import Cell, Evidence, Row
from specrun.findings import Setting, one_chain
from specrun.measure import Figures, figures
from specrun.run import Run
from specrun.scores import kept
from specrun.ties import ties


def conclusion(run: Run) -> dict[str, Any]:
    """`established`, `arms`, `config_diff`, `figures`, `ratios`, `verdicts`, `diagnosis` and `scope` of a result entry."""
    starts = list(read_starts(run))
    by_target, by_draft = kept(run, "target"), kept(run, "draft")
    seen = survey(run, proofs.wanted(by_target, by_draft))
    proven_by = proofs.proof(run.data, by_target, by_draft, seen.windows)
    differences = config_diff(run, starts)
    judged_starts = [start for start in starts if start["arm"] not in plan.swept(run.data)]
    judged_windows = [window for window in seen.windows if window.info["arm"] not in plan.swept(run.data)]
    drifted = effective.drift(judged_starts, diff_rules(run))
    checks = [
        *establish.established(run.data, judged_starts, judged_windows, proven_by.foreseen),
        seen.prompts.check(),
        *proven_by.checks,
        arms_differ(differences, drifted),
    ]
    proven = all(check.outcome != "failed" for check in checks)
    evidence = gather(run, starts, seen)
    columns, table = rows.figure_rows(evidence)
    faults = swept.faults(run.data, starts, seen.windows, diff_rules(run))
    found = sweep.sweep(evidence, run.data["protocol"]["criteria"], speculating(run), faults) if proven else None
    return {
        "established": {
            "verdict": "established" if proven else "not_established",
            "checks": [{"check": c.check, "outcome": c.outcome, "detail": c.detail} for c in checks],
            **proven_by.rows,
        },
        "arms": arm_facts(run, starts),
        "config_diff": differences,
        "figures": {"columns": columns, "rows": table},
        "ratios": rows.ratios(evidence),
        "verdicts": judge(run.data["protocol"]["criteria"], evidence) if proven else [],
        "diagnosis": reasons(run, evidence, ties(by_target, proofs.records(seen.windows))) if proven else [],
        **({"sweep": found} if found else {}),
        "scope": [
            *scope.sentences(run.data, run.plan["host"], len(blocks(run))),
            *scope.interruptions(broken_off(run)),
            *scope.early(unfinished(run), len(without_end(run))),
            scope.attempts(run.plan["attempts"]),
        ],
    }


def blocks(run: Run) -> list[int]:
    """Numbers of the finished blocks."""
    return sorted(json.loads(p.read_text(encoding="utf-8"))["block"] for p in run.folder.glob("b[0-9]*/block.json") if _counts(p))


def _counts(path: Path) -> bool:
    return ".void" not in path.parent.name


def read_starts(run: Run) -> Iterator[dict[str, Any]]:
    """Facts of every start that served a measured block, and of the unmeasured first ones (block 0)."""
    folders = [(0, run.folder / "first"), *((b, run.block_folder(b)) for b in blocks(run))]
    if plan.servers(run.data) == "resident":  # also those of an interrupted session, whose finished blocks are kept
        folders += [(1, folder) for folder in sorted(run.folder.glob("resident*"), reverse=True)]
    for block, folder in folders:
        for arm in plan.arms(run.data):
            path = folder / arm / "start.json"
            if path.exists():
                start = json.loads(path.read_text(encoding="utf-8"))
                yield start | {"block": block, "fallback_lines": list(fallback_lines(run, path.with_name("server.log")))}


def fallback_lines(run: Run, log: Path) -> Iterator[str]:
    """Lines of a server's log that this release, on this device, classes as a fallback; each kind once."""
    rules, seen = run.release.fallback_lines, set[str]()
    with log.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            for rule in rules:
                if rule.pattern not in seen and rule.matches(line, run.device):
                    seen.add(rule.pattern)
                    yield f"{line.strip()[:200]} ({rule.means})"


def read_windows(run: Run) -> Iterator[tuple[dict[str, Any], Path]]:
    """`window.json` and the path of the records, of every finished block, in order."""
    for block in blocks(run):
        for arm in plan.arms(run.data):
            for cell in plan.cell_order(run.data, 1):
                path = run.block_folder(block) / arm / cell.name / "window.json"
                if path.exists():
                    yield json.loads(path.read_text(encoding="utf-8")), path.with_name("records.jsonl")


@dataclass(slots=True)
class Survey:
    """What one pass over all records leaves; of whole requests nothing of it grows with their number."""

    windows: list[Window] = field(default_factory=list)
    figures: dict[Cell, dict[str, dict[int, Row]]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(dict)))
    prompts: Prompts = field(default_factory=Prompts)
    voids: dict[tuple[str, Level, int], str] = field(default_factory=dict)


def survey(run: Run, wanted: Mapping[tuple[Any, ...], set[int]] | None = None) -> Survey:
    """Read every record once: figures, what establishment needs, and the windows of each block held against each other.

    `wanted`: indices of the records to keep whole, by block, arm, workload and concurrency.
    """
    seen = Survey()
    for _, group in groupby(read_windows(run), key=lambda found: found[0]["block"]):
        of_block = []
        for info, path in group:
            place = info["block"], info["arm"], info["workload"], info["concurrency"]
            window = Window(info, wanted=(wanted or {}).get(place, ()))
            noted = establish.noting(window, record.read(path), natural(run, info))
            seen.figures[window.cell][info["arm"]][info["block"]] = window_figures(run, info, noted)
            of_block.append(window)
        judged = [window for window in of_block if window.info["arm"] not in plan.swept(run.data)]
        seen.prompts.add(judged)
        seen.voids |= {(*cell, block): why for (cell, block), why in establish.voids(run.data, judged).items()}
        for cell, arm, block in swept.void_windows(run.data, of_block):
            seen.figures[cell][arm].pop(block, None)
        for window in of_block:
            window.forget()
        seen.windows += of_block
    return seen


def gather(run: Run, starts: list[dict[str, Any]], seen: Survey) -> Evidence:
    """All that verdicts rest on: figures by cell, arm and block, and which of them do not count."""
    open_ended = [w for w in run.data["protocol"]["workloads"] if w["output"]["stop"] == "natural"]
    tolerances = {w["id"]: w["output"].get("length_tolerance", 0.05) for w in open_ended}
    return Evidence(
        table=dict(seen.figures),
        starts=start_figures(run, starts),
        cells=[(c.workload, c.concurrency) for c in plan.cell_order(run.data, 1)],
        confidence=run.data["protocol"]["confidence"],
        voids=seen.voids,
        natural=tolerances,
        one_start=plan.servers(run.data) == "resident",
        unfinished=unfinished(run),
    )


def unfinished(run: Run) -> str:
    """That a run was ended before its last block, in words; empty if it was not."""
    done, planned = len(blocks(run)), int(run.data["protocol"]["design"]["blocks"])
    return f"the run was ended after {done} of {planned} blocks" if done < planned else ""


def without_end(run: Run) -> list[Path]:
    """Tries of blocks that were set aside and of which no later one was finished."""
    return [path for path in run.folder.glob("b[0-9]*.void*") if not (path.with_suffix("") / "block.json").exists()]


def broken_off(run: Run) -> int:
    """Tries of blocks that were set aside and measured again, but for those that a compile repeated."""
    repeated = sum(int(json.loads(path.read_text(encoding="utf-8"))["try"]) - 1 for path in run.folder.glob("b[0-9]*/block.json"))
    again = (path for path in run.folder.glob("b[0-9]*.void*") if (path.with_suffix("") / "block.json").exists())
    return sum(1 for _ in again) - repeated


def window_figures(run: Run, info: dict[str, Any], records: Iterable[dict[str, Any]]) -> Figures:
    """Figures of one window; speculation is looked for in the pair only."""
    speculative = run.data["pair"]["speculative"]
    return figures(
        info,
        records,
        run.data["protocol"].get("slo"),
        k=speculating(run).get(info["arm"]),
        drafts_every_step=establish.family(speculative["method"]) == "every_step",
        natural=natural(run, info),
    )


def speculating(run: Run) -> dict[str, int]:
    """num_speculative_tokens of every arm that speculates."""
    return {"pair": run.data["pair"]["speculative"].get("num_speculative_tokens")} | plan.swept(run.data)


def natural(run: Run, info: dict[str, Any]) -> bool:
    """Whether the answers of a window's workload end by themselves."""
    return bool(run.workload(info["workload"])["output"]["stop"] == "natural")


def start_figures(run: Run, starts: list[dict[str, Any]]) -> dict[str, dict[int, Figures]]:
    """Capacity and memory by arm and block. With resident servers they come from the first starts, which had the device alone."""
    alone = 0 if plan.servers(run.data) == "resident" else None
    out: dict[str, dict[int, Figures]] = defaultdict(dict)
    for start in starts:
        if (start["block"] == 0) == (alone == 0):
            memory = [start[name] for name in ("memory_bytes", "memory_end_bytes") if start.get(name)]
            peak: Figures = {"memory_peak_bytes": max(memory) if memory else None}
            out[start["arm"]][max(1, start["block"])] = start["capacity"] | peak
    return dict(out)


def config_diff(run: Run, starts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Where the pair's configuration differs from the target's, by their first starts."""
    first: dict[str, dict[str, Any]] = {}
    for start in starts:
        first.setdefault(start["arm"], start)
    if not all(first.get(arm, {}).get("config") for arm in ("target", "pair")):
        return []
    found = effective.differences(first["target"], first["pair"], diff_rules(run))
    return [{k: _short(v) for k, v in row.items()} for row in found]


def diff_rules(run: Run) -> dict[str, list[str]]:
    """The release's classes of differing fields. Where it leaves the method to another runner, that is of the method too."""
    rules = run.release.config_diff
    moved = arms.runners_differ(Spec(run.data), run.release)
    return rules | {"expected": [*rules.get("expected", []), "/log/runner"]} if moved else rules


def _short(value: Any) -> Any:
    return value if isinstance(value, str | int | bool) or value is None else str(value)[:80]


def arms_differ(differences: list[dict[str, Any]], drifted: Sequence[str] = ()) -> Check:
    """The arms' configurations differ in nothing but what the method itself changes, in every start."""
    name = "the arms differ by speculation alone"
    voiding = [row["path"] for row in differences if row["kind"] == "voiding"]
    if voiding:
        return Check(name, "failed", f"also differ in {', '.join(voiding[:5])}")
    if drifted:
        return Check(name, "failed", f"not what the first start ran: {'; '.join(drifted[:3])}")
    if not differences:
        return Check(name, "skipped", "this release does not report its configuration")
    expected = [row["path"].rsplit("/", 1)[-1] for row in differences if row["kind"] == "expected"]
    return Check(
        name, "ok", f"differ in {', '.join(expected)} (expected of the method), {len(differences) - len(expected)} derived"
    )


def arm_facts(run: Run, starts: list[dict[str, Any]]) -> dict[str, Any]:
    """Per arm: command, starts, configuration summary, capacity, memory and minimal exchange, of its last start.

    Of resident servers, capacity and memory are those of the first starts, which had the device alone.
    """
    out: dict[str, Any] = {}
    for arm in plan.arms(run.data):
        mine = [s for s in starts if s["arm"] == arm]
        if not mine:
            continue
        last, ready = mine[-1], median(s["ready_after_s"] for s in mine)
        alone = mine[0] if plan.servers(run.data) == "resident" else last
        out[arm] = {
            "command": portable(last["argv"], run),
            "starts": len(mine),
            "ready_after_s": rounded(ready),
            "capacity": alone["capacity"],
            "memory": {name: value for name, value in alone["from_log"].items() if name.endswith("_bytes")}
            | {"held_bytes": alone["memory_bytes"]},
            "config": effective.summary(last["config"], last["from_log"]),
            "minimal": brief(last["minimal"]),
        }
    if "matched" in out:
        out["matched"]["matched"] = json.loads((run.folder / "first" / "matched.json").read_text(encoding="utf-8"))
    return out


def portable(argv: list[str], run: Run) -> list[str]:
    """A command without this machine's paths: the spec's folder becomes `.`, interpreter and socket lose their folders."""
    here = str(run.spec_folder)
    words = [word.replace(here + "/", "").replace(here, ".") for word in argv[1:]]
    return ["python", *(Path(w).name if w.endswith(".sock") else w for w in words)]


def brief(exchange: dict[str, Any]) -> dict[str, Any]:
    """The minimal exchange without what only repeats the request."""
    response = exchange["response"]
    choice = (response.get("choices") or [{}])[0]
    kept = {k: choice[k] for k in ("text", "message", "finish_reason", "token_ids") if choice.get(k) is not None}
    kept["usage"] = _counts_only(response.get("usage"))
    return {"path": exchange["path"], "request": exchange["request"], "response": kept}


def _counts_only(usage: Any) -> dict[str, int]:
    return {k: v for k, v in (usage or {}).items() if isinstance(v, int)}


def reasons(run: Run, evidence: Evidence, near: Mapping[str, tuple[float, ...]]) -> list[dict[str, Any]]:
    """The diagnosis, with the agreement of greedy answers where sampling is greedy."""
    speculative = run.data["pair"]["speculative"]
    setting = Setting(
        k=speculative["num_speculative_tokens"],
        device=run.device,
        drafts_every_step=establish.family(speculative["method"]) == "every_step",
        chain=one_chain(speculative),
        sweep=speculating(run),
        invented=not oracle.measurement(run.data),
    )
    greedy = run.data["protocol"]["sampling"]["temperature"] == 0
    findings, _ = diagnose(evidence, setting, answers(run, near) if greedy else [])
    return [dict(finding) for finding in findings]


def answers(run: Run, near: Mapping[str, tuple[float, ...]]) -> list[Answers]:
    """Per workload, from the first block: pair against target at the lowest concurrency, target against itself at the highest."""
    numbers = blocks(run)
    levels = sorted(run.data["protocol"]["load"]["concurrency"])
    if not numbers:
        return []
    folder = run.block_folder(numbers[0])

    def records(arm: str, level: int, workload: str) -> Iterator[dict[str, Any]]:
        return record.read(folder / arm / plan.Cell(level, workload).name / "records.jsonl")

    out: list[Answers] = []
    for workload in run.data["protocol"]["workloads"]:
        name, low, high = workload["id"], levels[0], levels[-1]
        pair = agreement(records("target", low, name), records("pair", low, name))
        floor = agreement(records("target", low, name), records("target", high, name)) if high != low else None
        out.append(Answers(name, pair, floor, near.get(name, ())))
    return out
