import dataclasses

import numpy as np

from tpu_estimator_compat.tools.compare.evidence import Evidence
from tpu_estimator_compat.tools.compare.report import Side, Verdict

from .evidences import evidence, judged


def test_equal_runs_are_the_same():
    report = judged(evidence())
    assert (report.verdict, report.first_difference) == (Verdict.SAME, None)
    assert report.steps == 3


def test_rounding():
    run = evidence()
    values = {n: v * np.float32(1 + 1e-6) for n, v in run.variables.items()}
    report = judged(dataclasses.replace(run, variables=values))
    assert (report.verdict, report.first_difference) == (Verdict.ROUNDING, None)


def test_nothing_in_common():
    report = judged(Evidence(Side("new", "/new")), Evidence(Side("old", "/old")))
    assert report.verdict is Verdict.UNKNOWN
    assert "Nothing was found" in report.unknown
