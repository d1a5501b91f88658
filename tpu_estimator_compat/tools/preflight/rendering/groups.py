"""Groups equal statements, to show each once with the labels of its reports."""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Iterable, Sequence
from typing import Generic, TypeVar

from tpu_estimator_compat.engine.jax.lowering.findings import Finding, Kind, Severity
from tpu_estimator_compat.tools.preflight.rendering import comparison, limits
from tpu_estimator_compat.tools.preflight.report import Buffer, Report

HEADINGS = {Severity.FAILS: "Certainly fails", Severity.MIGHT: "Might fail"}
"""Headings of the findings, in their order."""

_NAMES = 3

_Said = TypeVar("_Said", bound=Hashable)


@dataclasses.dataclass(frozen=True)
class Shared(Generic[_Said]):
    """A statement of some reports; `where` lists their labels, and is empty if all make it."""

    said: _Said
    where: str


@dataclasses.dataclass(frozen=True)
class FindingGroup:
    """Findings that differ only by the node; `where` is empty if all reports have them."""

    finding: Finding
    nodes: tuple[str, ...]
    where: str

    @property
    def operations(self) -> str:
        """The operations, such as "StringToNumber: a/b, a/c, a/d and 7 more"; may be empty."""
        return ": ".join(filter(None, [self.finding.op, _few(self.nodes)]))


@dataclasses.dataclass(frozen=True)
class BufferGroup:
    """Buffers of one report that differ only by their operation, as in repeated layers."""

    buffer: Buffer
    number: int
    ops: tuple[str, ...]

    @property
    def operations(self) -> str:
        """The names, such as "layer_0/MatMul, layer_1/MatMul and 9 more"; may be empty."""
        return _few(self.ops)


def findings(reports: Sequence[Report], severity: Severity) -> list[FindingGroup]:
    """The findings of a severity by kind, and within a kind in the order of the reports."""
    nodes: dict[Finding, dict[str, None]] = {}
    said: list[list[Finding]] = []
    for report in reports:
        said.append([])
        for finding in report.findings:
            if finding.severity is severity:
                alike = dataclasses.replace(finding, node="")
                nodes.setdefault(alike, {})[finding.node] = None
                said[-1].append(alike)
    order = list(Kind)
    groups = [
        FindingGroup(alike.said, tuple(filter(None, nodes[alike.said])), alike.where)
        for alike in _shared(reports, said)
    ]
    return sorted(groups, key=lambda group: order.index(group.finding.kind))


def buffers(report: Report) -> list[BufferGroup]:
    alike: dict[Buffer, list[str]] = {}
    for buffer in report.buffers:
        alike.setdefault(dataclasses.replace(buffer, op=""), []).append(buffer.op)
    return [
        BufferGroup(buffer, len(ops), tuple(dict.fromkeys(filter(None, ops))))
        for buffer, ops in alike.items()
    ]


def notes(reports: Sequence[Report]) -> list[Shared[str]]:
    return _shared(reports, [report.notes for report in reports])


def unknowns(reports: Sequence[Report]) -> list[Shared[str]]:
    return _shared(reports, [filter(None, [report.unknown]) for report in reports])


def cannot_know(reports: Sequence[Report]) -> list[Shared[str]]:
    said = _shared(reports, [limits.cannot_know(report) for report in reports])
    return sorted(said, key=lambda shared: limits.ORDER.index(shared.said))


def _few(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMES} more" if len(names) > _NAMES else ""
    return ", ".join(names[:_NAMES]) + more


def _shared(reports: Sequence[Report], said: Sequence[Iterable[_Said]]) -> list[Shared[_Said]]:
    """Each different statement once, in the order of first mention."""
    sayers: dict[_Said, dict[str, None]] = {}
    for label, things in zip(comparison.labels(reports), said, strict=True):
        for thing in things:
            sayers.setdefault(thing, {})[label] = None
    return [
        Shared(thing, "" if len(names) == len(reports) else ", ".join(names))
        for thing, names in sayers.items()
    ]
