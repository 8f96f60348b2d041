"""A report for programs, in the shape of `schemas/report.schema.json`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from speclint.canonical import rounded
from speclint.data import metrics
from specrun.compare import status
from specrun.measure import SHOWN_BEYOND, percentile, unsupported
from specrun.report import tables
from specrun.report.records import Recorded
from specrun.report.tables import Entry
from specrun.weighted import NAME

FORMAT = "pair-spec-report/v1"
PERCENTS = (5, 10, 25, 50, 75, 90, 95, 99)
Spec = Mapping[str, Any]


def as_data(spec: Spec, entry: Entry, recorded: Recorded | None = None) -> dict[str, Any]:
    """The whole report; `from_records` is null where the records are not at hand."""
    return {
        "format": FORMAT,
        "spec": identity(spec, entry),
        "result": {
            **{key: entry[key] for key in ("id", "started", "ended", "attempts", "engine", "host", "placement")},
            "signer": entry["signer"] if entry.get("signature") else None,
            "approved": bool(entry["approvals"]),
            "records": entry["records"],
        },
        "outcome": tables.outcome(entry),
        "exit_status": status(entry["verdicts"], entry["established"]["verdict"] == "established"),
        "established": entry["established"],
        "confidence": spec["protocol"]["confidence"],
        "criteria": list(criteria(spec, entry)),
        "figures": list(_figures(entry)),
        "ratios": entry["ratios"],
        "diagnosis": entry["diagnosis"],
        "sweep": entry.get("sweep"),
        "scope": entry["scope"],
        "from_records": None if recorded is None else _from_records(recorded),
    }


def identity(spec: Spec, entry: Entry) -> dict[str, Any]:
    """What was evaluated, in short."""
    speculative = spec["pair"]["speculative"]
    return {
        "name": spec["name"],
        "digest": entry["spec"],
        "engine_version": spec["pair"]["engine"]["version"],
        "target": spec["pair"]["target"]["model"],
        "method": speculative["method"],
        "draft": speculative.get("model"),
        "num_speculative_tokens": speculative.get("num_speculative_tokens"),
    }


def criteria(spec: Spec, entry: Entry) -> Iterator[dict[str, Any]]:
    """Every criterion of the spec; those of a pair that was not established have the verdict null."""
    judged = {verdict["id"]: verdict for verdict in entry["verdicts"]}
    for criterion in spec["protocol"]["criteria"]:
        verdict, known = judged.get(criterion["id"], {}), metrics()[criterion["metric"]]
        yield {
            "id": criterion["id"],
            "metric": criterion["metric"],
            **{key: known[key] for key in ("kind", "unit", "better")},
            "compare": criterion.get("compare"),
            "workload": NAME if "weights" in criterion else criterion.get("workload", "all"),
            "concurrency": criterion.get("concurrency", "all"),
            "at_most": criterion.get("at_most"),
            "at_least": criterion.get("at_least"),
            "verdict": verdict.get("verdict"),
            "reason": verdict.get("reason"),
            "decidable": verdict.get("decidable"),
            "cells": verdict.get("cells", []),
        }


def _figures(entry: Entry) -> Iterator[dict[str, Any]]:
    """Figures of a cell and arm by name, medians over blocks."""
    named = ("workload", "concurrency", "arm", "blocks", "failed_requests")
    for row in tables.figures(entry).values():
        yield {key: row.get(key) for key in named} | {"figures": {k: v for k, v in row.items() if k not in named}}


def _from_records(recorded: Recorded) -> dict[str, Any]:
    return {
        "distributions": [*_distributions("request_duration", recorded.durations), *_distributions("ttft", recorded.ttfts)],
        "acceptance_by_draft_position": [
            {"workload": cell[0], "concurrency": cell[1], "rates": [rounded(rate) for rate in rates]}
            for cell, rates in recorded.positions.items()
            if rates
        ],
        "acceptance_along_the_answer": [
            {"workload": workload, "context_from": at[0], "answer_from": at[1], "steps": field.steps, "accepted": field.accepted}
            for workload, found in recorded.maps.items()
            for at, field in sorted(found.items())
        ],
        "windows_left_out": recorded.merged,
        "time_line": [span._asdict() | {"begin": round(span.begin, 3), "end": round(span.end, 3)} for span in recorded.spans],
    }


def _distributions(metric: str, samples: Mapping[Any, list[float]]) -> Iterator[dict[str, Any]]:
    for (cell, arm), values in samples.items():
        enough = [p for p in PERCENTS if values and not unsupported(f"x_p{p:02}", len(values), SHOWN_BEYOND)]
        found = {f"p{p}": rounded(percentile(values, p / 100)) for p in enough}
        head = {"metric": metric, "workload": cell[0], "concurrency": cell[1], "arm": arm}
        yield head | {"requests": len(values), "seconds": found}
