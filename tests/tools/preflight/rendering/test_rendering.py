import pytest

from tpu_estimator_compat.tools.preflight.rendering.table import table

from ..reports import FITS, five_findings, sampled
from ..showing import page, text_of_json, text_of_page, text_of_table

ways = pytest.mark.parametrize(
    "said", [text_of_table, text_of_json, text_of_page], ids=["table", "json", "page"]
)


@sampled
def test_each_report_is_named_with_its_verdict(reports):
    for text in (text_of_table(reports), text_of_page(reports)):
        for report in reports:
            assert report.topology in text
            assert report.verdict.value in text


@ways
def test_each_finding_tells_line_code_and_advice(said):
    report = five_findings()
    text = said([report])
    assert len(report.findings) == 5
    for each in report.findings:
        for words in (each.message, each.advice, each.op, each.node):
            assert words in text
        if each.source:
            assert each.source.code in text
            line = each.source.line
            assert f"model.py:{line}" in text or f"model.py line {line}" in text


def test_no_findings_is_said_and_headings_of_none_are_not():
    assert "No findings" in table([FITS])
    for text in (table([FITS]), page(FITS).text):
        assert "Certainly fails" not in text
        assert "Might fail" not in text


@sampled
@ways
def test_no_time_of_a_step_is_claimed(reports, said):
    text = said(reports).lower()
    for claim in ("step time", "time per step", "seconds per", "per second", "s/step", "steps/s"):
        assert claim not in text
    assert "flops/s" not in text
    assert "milliseconds" not in text
