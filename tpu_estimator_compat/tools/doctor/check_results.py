"""The results of checks, and the exit status that they give together."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Sequence


class Status(enum.StrEnum):
    OK = "ok"
    WARNING = "warning"
    FAILURE = "failure"
    NOT_MADE = "not made"
    FIGURE = "figure"


@dataclasses.dataclass(frozen=True)
class CheckResult:
    """The result of a check, such as "versions": one line of the report, and a remedy."""

    check: str
    status: Status
    text: str
    advice: str = ""


def exit_status(results: Sequence[CheckResult]) -> int:
    return int(any(result.status is Status.FAILURE for result in results))


def verdict(results: Sequence[CheckResult]) -> str:
    counts = {status: sum(f.status is status for f in results) for status in Status}
    told = ", ".join(
        f"{counts[status]} {status}"
        for status in (Status.OK, Status.WARNING, Status.FAILURE, Status.NOT_MADE)
        if counts[status]
    )
    if counts[Status.FAILURE]:
        return f"Doctor: do not trust this installation yet: {told}."
    return f"Doctor: no check failed: {told}."
