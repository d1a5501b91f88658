import json
import math

import pytest

from tpu_estimator_compat.engine.graph.source_line import SourceLine
from tpu_estimator_compat.tools.compare import report
from tpu_estimator_compat.tools.compare.report import Agreement, Report, Verdict
from tpu_estimator_compat.tools.compare.showing import document


def made() -> Report:
    array = report.Array((3, 2), "float32", 0.5)
    compared = report.ArrayComparison(
        "w", Agreement.EQUAL, array, None, 1e-7, 1e-8, 1e-6, 1e-6, "note"
    )
    return Report(
        Verdict.DIVERGES,
        "diverges from step 2 on",
        report.Side("old", "/old", {"tensorflow": "2.15.1"}, report.Speed(10.0, 5.0, 6.0, 2**30)),
        report.Side("new", "/new", failure=report.Failure("script", "raised", "Traceback")),
        command=("train.py", "--flag"),
        steps=2,
        tolerance=report.Tolerance("by two runs", 10.0, 1e-6, True),
        first_difference=report.FirstDifference(
            report.Stage.UPDATE,
            "what",
            1,
            ("w",),
            SourceLine("train.py", 3, code="x = 1"),
            by="TensorFlow",
        ),
        loss=report.CurveComparison(
            "loss",
            Agreement.DIFFERENT,
            report.Curve((1, 2), (1.0, math.inf)),
            report.Curve((1, 2), (1.0, -math.inf)),
            (1, 2),
            (0.0, math.inf),
            (1e-6, 1e-6),
            2,
            by="this package",
        ),
        variables=(compared,),
        names=(report.NamesComparison("tags", ("loss",), ("a",)),),
        first_step=(report.OpComparison("w/Read", "ReadVariableOp", False, compared),),
        notes=("a remark",),
        instead="with sessions",
    )


def test_json_gives_the_report_back():
    assert Report.from_json(document(made()).json()) == made()


def test_json_is_strict():
    """No NaN or Infinity, which are no JSON."""

    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    said = json.loads(document(made()).json(), parse_constant=refuse)
    assert (said["version"], said["exit_code"], said["verdict"]) == (1, 1, "diverges")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[]", "Expected a JSON object, got list"),
        ('{"version": 99}', "has version 99; expected 1"),
        ('{"version": 1, "verdict": "same"}', "Expected the fields of Report"),
    ],
)
def test_other_json_is_refused(text, words):
    with pytest.raises(ValueError, match=words):
        Report.from_json(text)


@pytest.mark.parametrize(
    ("verdict", "code"),
    [
        (Verdict.SAME, 0),
        (Verdict.ROUNDING, 0),
        (Verdict.DIVERGES, 1),
        (Verdict.DIFFERENT, 1),
        (Verdict.UNKNOWN, 2),
    ],
)
def test_exit_codes(verdict, code):
    assert verdict.exit_code == code
