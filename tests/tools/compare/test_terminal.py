from tpu_estimator_compat.tools.compare.report import Failure, Report, Side, Verdict
from tpu_estimator_compat.tools.compare.terminal import table


def test_failures_are_shown_with_their_tracebacks():
    old = Side("original", "/a", failure=Failure("script", "ImportError: no x", "Traceback\nno x"))
    new = Side("new", "/b", failure=Failure("time", "it took more than 1 s (--time-limit)"))
    shown = table(Report(Verdict.UNKNOWN, "could not be judged", old, new), 80)
    assert "original: ImportError: no x\n  | Traceback\n  | no x" in shown
    assert "new: it took more than 1 s" in shown
