import itertools

import pytest

from tpu_estimator_compat.tools.preflight.estimator_mode import Preflight
from tpu_estimator_compat.tools.preflight.report import Verdict

from .reports import FAILS, FITS, UNKNOWN
from .showing import Elements, page


@pytest.mark.parametrize("size", [1, 2, 3])
def test_the_verdict_is_the_worst_of_the_reports(size):
    for reports in itertools.product([FITS, FAILS, UNKNOWN], repeat=size):
        verdicts = {report.verdict for report in reports}
        preflight = Preflight(list(reports))
        if Verdict.FAILS in verdicts:
            assert (preflight.verdict, preflight.exit_code) == (Verdict.FAILS, 1)
        elif Verdict.UNKNOWN in verdicts:
            assert (preflight.verdict, preflight.exit_code) == (Verdict.UNKNOWN, 2)
        else:
            assert (preflight.verdict, preflight.exit_code) == (Verdict.FITS, 0)


def test_the_samples_have_the_verdicts_that_they_are_for():
    assert (FITS.verdict, FAILS.verdict, UNKNOWN.verdict) == (
        Verdict.FITS,
        Verdict.FAILS,
        Verdict.UNKNOWN,
    )


def test_a_notebook_shows_the_page_in_a_frame():
    shown = Elements(Preflight([FITS])._repr_html_())
    ((tag, attributes),) = shown.elements
    assert tag == "iframe"
    assert attributes["sandbox"] == ""
    assert Elements(attributes["srcdoc"]).text.split() == page(FITS).text.split()
