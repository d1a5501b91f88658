import json
import math

import pytest

from tpu_estimator_compat.tools.compare.report import Failure, Report, Side, Verdict
from tpu_estimator_compat.tools.compare.showing import shown

from .reports import curve, made


def test_json_gives_the_report_back():
    """It has no NaN and no Infinity, which are no JSON."""

    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    report = made(
        new=Side("new", "/new", failure=Failure("script", "raised", "Traceback")),
        loss=curve("loss", 1.0, math.inf, math.nan, first_step=2),
        instead="with sessions",
    )
    text = shown(report).json()
    assert repr(Report.from_json(text)) == repr(report)  # NaN is not equal to itself
    said = json.loads(text, parse_constant=refuse)
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


def test_exit_codes():
    assert {verdict.name: verdict.exit_code for verdict in Verdict} == {
        "SAME": 0,
        "ROUNDING": 0,
        "UNKNOWN": 2,
        "DIVERGES": 1,
        "DIFFERENT": 1,
    }
