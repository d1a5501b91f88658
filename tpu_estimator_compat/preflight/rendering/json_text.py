"""The reports as JSON, for programs."""

from __future__ import annotations

import dataclasses
import enum
import json
from collections.abc import Sequence
from typing import Any

from tpu_estimator_compat.preflight.rendering import limits
from tpu_estimator_compat.preflight.report import Report, Verdict

VERSION = 2
"""Of the format: another number where a key went or changed its meaning; new keys may come."""


def to_json(reports: Sequence[Report]) -> str:
    """An object: `version`, `verdict`, `exit_code`, and `reports`.

    A report is an object with the fields of the dataclass `Report` and of those in it, under
    their names, enums as their values, and what follows from them: `verdict`, `exit_code`,
    `intensity`, `memory.total`; and `cannot_know`, sentences on what it leaves open.

    Raises:
      ValueError: there is no report.
    """
    verdict = Verdict.worst([report.verdict for report in reports])
    said = {
        "version": VERSION,
        "verdict": verdict.value,
        "exit_code": verdict.exit_code,
        "reports": [_of_report(report) for report in reports],
    }
    return json.dumps(said, indent=1)


def _of_report(report: Report) -> dict[str, Any]:
    said = _plain(report)
    if report.memory is not None:
        said["memory"]["total"] = report.memory.total
    return {
        "verdict": report.verdict.value,
        "exit_code": report.verdict.exit_code,
        **said,
        "intensity": report.intensity,
        "cannot_know": limits.cannot_know(report),
    }


def _plain(value: Any) -> Any:
    """A value of a report in terms of what JSON has."""
    if isinstance(value, enum.Enum):
        return value.value
    if dataclasses.is_dataclass(value):
        return {f.name: _plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value
