"""`Preflight`, the result of a preflight: its reports, and the ways to show them."""

from __future__ import annotations

import dataclasses

from tpu_estimator_compat.tools.preflight.rendering.json_text import to_json
from tpu_estimator_compat.tools.preflight.rendering.page import in_a_frame, to_html
from tpu_estimator_compat.tools.preflight.rendering.table import table
from tpu_estimator_compat.tools.preflight.report import Report, Verdict
from tpu_estimator_compat.tools.reports.terminal import are_colors_shown


@dataclasses.dataclass
class Preflight:
    """The result of one preflight. `print` shows it as a table, a notebook as a page.

    Attributes:
      reports: one for each mode and topology, at least one.
    """

    reports: list[Report]

    def __post_init__(self) -> None:
        Verdict.worst(report.verdict for report in self.reports)

    @property
    def verdict(self) -> Verdict:
        """FAILS if one report fails, else UNKNOWN if one is, else CLOSE if one is, else FITS."""
        return Verdict.worst(report.verdict for report in self.reports)

    @property
    def exit_code(self) -> int:
        """For the shell: 0 for FITS, 1 for FAILS, 2 for CLOSE and UNKNOWN."""
        return self.verdict.exit_code

    def __str__(self) -> str:
        return table(self.reports)

    def for_terminal(self) -> str:
        """The text of `str`, in color where standard output is a terminal."""
        return table(self.reports, color=are_colors_shown())

    def to_json(self) -> str:
        """The text that `tools/preflight/rendering/json_text.py` describes."""
        return to_json(self.reports)

    def to_html(self) -> str:
        """A complete HTML page, to be written to a file or served."""
        return to_html(self.reports)

    def _repr_html_(self) -> str:
        return in_a_frame(to_html(self.reports))
