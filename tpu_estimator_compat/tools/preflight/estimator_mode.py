"""Implements `TPUEstimator.preflight`."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

from tpu_estimator_compat.config.arguments import (
    as_list,
    check_callable,
    check_input_fn,
    check_number,
)
from tpu_estimator_compat.engine.modes.rules import InputFn, Rules
from tpu_estimator_compat.spec.validation import check_is_mode
from tpu_estimator_compat.tools.preflight.check import Options, check
from tpu_estimator_compat.tools.preflight.planned_mode import PlannedMode
from tpu_estimator_compat.tools.preflight.report import Depth, Report, Verdict
from tpu_estimator_compat.tools.preflight.showing import shown
from tpu_estimator_compat.tools.reports.document import Document
from tpu_estimator_compat.tools.reports.page import in_a_frame

__all__ = ["Preflight", "preflight"]


@dataclasses.dataclass
class Preflight:
    """The result of one preflight. `print` shows it as a table, a notebook as a page.

    Attributes:
      reports: one for each topology, at least one.
    """

    reports: list[Report]

    @property
    def verdict(self) -> Verdict:
        """FAILS if one report fails, else UNKNOWN if one is, else CLOSE if one is, else FITS."""
        return Verdict.worst(report.verdict for report in self.reports)

    @property
    def exit_code(self) -> int:
        """For the shell: 0 for FITS, 1 for FAILS, 2 for CLOSE and UNKNOWN."""
        return self.verdict.exit_code

    @property
    def document(self) -> Document:
        return shown(self.reports)

    def __str__(self) -> str:
        return self.document.text()

    def to_json(self) -> str:
        """The text that `tools/preflight/showing.py` describes."""
        return self.document.json()

    def to_html(self) -> str:
        """A complete HTML page, to be written to a file or served."""
        return self.document.page()

    def _repr_html_(self) -> str:
        return in_a_frame(self.to_html(), "Preflight")


def preflight(
    rules: Rules,
    input_fn: InputFn,
    topology: str | Sequence[str],
    mode: str,
    depth: str,
    largest_batch: bool,
    time_limit: float,
    memory_share: float,
    progress: Callable[[str, float], None] | None,
) -> Preflight:
    """Checks a mode of an estimator with these rules; arguments as in `TPUEstimator.preflight`."""
    check_input_fn(input_fn)
    check_number(time_limit, "time_limit", least=0)
    if progress is not None:
        check_callable(progress, "progress", "It is given a text and a number of seconds.")
    check_is_mode(mode)
    names = {d.name.lower(): d for d in Depth}
    if depth not in names:
        raise ValueError(f"depth must be one of {list(names)}, got {depth!r}.")
    wanted = [topology] if isinstance(topology, str) else as_list(topology, "topology", "str")
    if not wanted:
        raise ValueError('topology must name one at least, such as "v5e:2x2"; got none.')
    told = progress or (lambda *_: None)
    options = Options(names[depth], largest_batch, time_limit, told, memory_share)
    distinct = list(dict.fromkeys(wanted))
    return Preflight(check(PlannedMode(rules, input_fn, mode), distinct, options))
