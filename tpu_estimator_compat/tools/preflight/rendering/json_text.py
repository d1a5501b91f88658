"""The reports as JSON, for programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tpu_estimator_compat.tools.preflight.rendering import limits
from tpu_estimator_compat.tools.preflight.report import Report, Verdict
from tpu_estimator_compat.tools.reports import json_form

VERSION = 2
"""The format's version; rises when a key is removed or changes its meaning, not with new keys."""


def to_json(reports: Sequence[Report]) -> str:
    """An object: `version`, `verdict`, `exit_code`, and `reports`.

    A report is an object with the fields of the dataclass `Report`, nested ones included, enums as
    their values; with the derived `verdict`, `exit_code`, `intensity`, `least_seconds` and
    `memory.total`; and with `cannot_know`, sentences on its limits.
    """
    verdict = Verdict.worst([report.verdict for report in reports])
    said = {
        "version": VERSION,
        "verdict": verdict.value,
        "exit_code": verdict.exit_code,
        "reports": [_of_report(report) for report in reports],
    }
    return json_form.text(said)


def _of_report(report: Report) -> dict[str, Any]:
    said = json_form.encoded(report)
    if report.memory is not None:
        said["memory"]["total"] = report.memory.total
    return {
        "verdict": report.verdict.value,
        "exit_code": report.verdict.exit_code,
        **said,
        "intensity": report.intensity,
        "least_seconds": report.least_seconds,
        "cannot_know": limits.cannot_know(report),
    }
