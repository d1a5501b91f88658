"""The figures of reports side by side, and their names."""

from __future__ import annotations

import collections
from collections.abc import Callable, Sequence
from typing import Any

from tpu_estimator_compat.tools.preflight.report import Collectives, LargestBatch, Report, Verdict
from tpu_estimator_compat.tools.reports import numbers
from tpu_estimator_compat.tools.reports.document import Span, Table


def table(reports: Sequence[Report]) -> Table:
    """A column for each report, and a row for each figure that at least one of them has."""
    rows = [(name, *(cell(report) for report in reports)) for name, cell in _ROWS]
    verdicts = [Span(report.verdict_in_words, report.verdict.tone) for report in reports]
    known = [row for row in rows if any(row[1:])]
    stars = any(name.endswith("*") for name, *_ in known)
    footnotes = [_STAR if stars else "", _compiled_as(reports)]
    return Table(
        [("verdict", *verdicts), *known],
        ["", *(report.topology for report in reports)],
        [note for note in footnotes if note],
        split=True,
    )


def _compiled_as(reports: Sequence[Report]) -> str:
    """A sentence about the compiled program; empty if nothing was compiled."""
    steps = {report.dispatch_steps for report in reports if report.dispatch_steps}
    if not steps:
        return ""
    loop = "the steps of a dispatch in a loop, with the input of all of them"
    what = "one step in a dispatch" if steps == {1} else loop
    return f"Compiled as the JAX runtime runs it: {what}, and variables updated in place."


def summary(reports: Sequence[Report]) -> str:
    """The verdicts, the worst first: "fails on v2:1x1; compiles and fits on v3:1x1, v5e:1x1"."""
    having: dict[tuple[Verdict, str], list[str]] = collections.defaultdict(list)
    for report in reports:
        having[report.verdict, report.verdict_in_words].append(report.topology)
    order = list(Verdict)
    worst_first = sorted(having, key=lambda words: -order.index(words[0]))
    return "; ".join(f"{words[1]} on {', '.join(having[words])}" for words in worst_first)


def _where(field: str, cell: Callable[[Any], str]) -> Callable[[Report], str]:
    """A figure of a report; empty where the field is None."""
    return lambda report: "" if getattr(report, field) is None else cell(report)


def _known(field: str, cell: Callable[[Any], str]) -> Callable[[Report], str]:
    """A figure of a field; empty where the field is None."""
    return _where(field, lambda report: cell(getattr(report, field)))


def _devices(report: Report) -> str:
    hosts = f" on {report.hosts} hosts" if report.hosts > 1 else ""
    return f"{report.devices}{hosts}"


def _depth(report: Report) -> str:
    if report.reached is None:
        return "none"
    reached, asked = report.reached.name.lower(), report.asked.name.lower()
    return reached if reached == asked else f"{reached}, not {asked}"


def _available(report: Report) -> str:
    said = numbers.size(report.hbm)
    return said if report.memory_share is None else f"{said} ({report.memory_share:.0%})"


def _least_time(report: Any) -> str:
    return f"{numbers.duration(report.least_seconds)} at {report.peak_flops / 1e12:,.0f} TFLOP/s"


def _used(report: Any) -> str:
    used = report.memory.total
    return f"{numbers.size(used)} ({numbers.share(used, report.hbm)})"


def _all_reduces(asked: Collectives) -> str:
    if not asked.all_reduces:
        return "0"
    return f"{numbers.count(asked.all_reduces)} ({numbers.size(asked.all_reduce_bytes)})"


def _compiled_collectives(report: Any) -> str:
    kinds = report.collectives.compiled
    if not kinds:
        return "" if report.memory is None else "none"
    return ", ".join(f"{numbers.count(number)} {kind}" for kind, number in kinds.items())


def _largest_batch(found: LargestBatch) -> str:
    if not found.fits:
        return "none fits"
    if found.fails is None:
        return f"{numbers.count(found.fits)} or more"
    return f"{numbers.count(found.fits)} ({numbers.count(found.fails)} does not fit)"


_STAR = "* of one replica and one step; what precedes a loop counts for all its steps"
_ROWS: tuple[tuple[str, Callable[[Report], str]], ...] = (
    ("mode", lambda report: report.mode),
    ("devices", _devices),
    ("replicas", lambda report: str(report.replicas)),
    ("batch per replica", _known("batch_size", numbers.count)),
    ("global batch", _where("batch_size", lambda r: numbers.count(r.batch_size * r.replicas))),
    ("depth reached", _depth),
    ("operations", _where("reached", lambda r: numbers.count(r.ops))),
    ("parameters", _where("reached", lambda r: numbers.count(r.parameters))),
    ("variables", _where("reached", lambda r: numbers.size(r.variable_bytes))),
    ("input of a replica", _where("reached", lambda r: numbers.size(r.input_bytes))),
    ("steps in a dispatch", lambda r: str(r.dispatch_steps or "")),
    ("memory of a device", _available),
    ("memory used", _where("memory", _used)),
    ("  arguments", _known("memory", lambda m: numbers.size(m.arguments))),
    ("  new outputs", _known("memory", lambda m: numbers.size(m.outputs - m.aliased))),
    ("  temporaries", _known("memory", lambda m: numbers.size(m.temporaries))),
    # Not every compiler counts its program.
    ("  code", _known("memory", lambda m: numbers.size(m.code) if m.code else "")),
    ("FLOPs of a step *", _known("flops", numbers.flops)),
    ("bytes accessed *", _known("bytes_accessed", lambda n: numbers.size(round(n)))),
    ("arithmetic intensity", _known("intensity", lambda i: f"{i:,.1f} FLOPs/byte")),
    ("lower bound of a step *", _where("least_seconds", _least_time)),
    ("all-reduces asked for", _known("collectives", _all_reduces)),
    ("other exchanges", _known("collectives", lambda c: f"{c.others:,}" if c.others else "")),
    ("exchanges compiled", _where("collectives", _compiled_collectives)),
    ("largest batch *", _known("largest_batch", _largest_batch)),
    ("compiler", lambda report: report.compiler),
    ("from the cache", lambda r: r.compiler and ("yes" if r.cached else "no")),
    ("this check took", lambda r: f"{sum(r.seconds.values()):,.1f} s" if r.seconds else ""),
)
