import dataclasses
import re

import pytest

from tpu_estimator_compat.engine.jax.lowering.findings import Finding, Kind, Severity
from tpu_estimator_compat.tools.preflight.rendering import bars, groups, limits
from tpu_estimator_compat.tools.preflight.rendering.table import table
from tpu_estimator_compat.tools.preflight.report import Depth, Layer
from tpu_estimator_compat.tools.reports import numbers

from ..reports import (
    FAILS,
    FITS,
    UNKNOWN,
    finding,
    five_findings,
    not_captured,
    over_the_line,
    sampled,
    with_findings,
)
from ..showing import page, plain, text_of_json, text_of_page, text_of_table

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


@sampled
@ways
def test_what_cannot_be_known_is_said(reports, said):
    text = said(reports)
    assert "Nothing was run on such a device" in text
    for report in reports:
        for sentence in limits.cannot_know(report):
            assert sentence in text


def test_what_cannot_be_known_depends_on_the_depth():
    at = {
        depth: " ".join(limits.cannot_know(dataclasses.replace(FITS, reached=depth)))
        for depth in (None, *Depth)
    }
    for depth, said in at.items():
        compiled = depth is Depth.COMPILE
        assert ("not compiled for the device" in said) is not compiled
        assert ("7% apart" in said) is compiled
        assert ("XLA kernels for the CPU" in said) is (depth is not None)
        assert ("a TPU has them" in said) is (depth is not None)
        assert ("not lowered" in said) is (depth is Depth.SCAN)
        assert ("could not be captured" in said) is (depth is None)


def test_sentences_on_some_reports_name_them():
    text = plain(table([FITS, UNKNOWN]))
    assert "v5e:2x2: The memory is an estimate" in text
    assert "v5p:2x2x1: The step was not compiled" in text
    assert "- Nothing was run on such a device" in text


def test_without_a_compiler_only_variables_and_input_are_drawn():
    assert [segment.name for segment in bars.by_kind(UNKNOWN)] == ["variables", "input"]
    assert "variables and one replica's input only" in page(UNKNOWN).text
    assert "variables and one replica's input only" not in page(FITS).text
    assert not page(not_captured()).of_class("bar")


def test_the_page_says_in_words_how_the_memory_compares():
    assert "2.97 GiB of 15.75 GiB, 19%" in page(FITS).text
    assert "12.78 GiB are left" in page(FITS).text
    # Variables alone can be too much.
    assert "more than 7.48 GiB" in page(FAILS).text
    assert "The two alone are 737.3 MiB more than the device has" in page(FAILS).text
    assert "2.55 GiB more than the device has" in page(over_the_line()).text
    assert "memory not known (of 95.73 GiB)" in page(UNKNOWN).text
    assert "the step could not be captured" in page(not_captured()).text


def test_very_many_layers_are_summed_up():
    layers = [Layer(f"layer_{i}", 4 * i + 4, 0) for i in range(100)]
    seen = page(dataclasses.replace(FITS, layers=layers))
    assert "100 layers" in seen.text
    assert "70 smaller layers" in seen.text
    assert "layer_99" in seen.text
    assert numbers.size(sum(layer.variables for layer in layers[:70])) in seen.text
    assert len(seen.of_class("layer")) == 31


def test_what_fails_comes_before_what_might():
    report = with_findings(
        finding(1, Severity.MIGHT, message="Might."), finding(2, message="Certain.")
    )
    for text in (table([report]), page(report).text):
        places = [
            text.index(said) for said in ("Certainly fails (1)", "Certain.", "Might fail (1)")
        ]
        assert places == sorted(places)
        assert places[-1] < text.index("Might.")


def test_a_finding_of_several_topologies_is_told_once():
    names = ["v2:2x2", "v3:2x2", "v5e:2x2"]
    same = [with_findings(finding(), topology=name) for name in names]
    for text in (table(same), page(*same).text):
        assert text.count("No kernel.") == 1
        assert "on: " not in text
    other = [*same[:2], with_findings(topology="v5e:2x2")]
    for text in (table(other), page(*other).text):
        assert text.count("No kernel.") == 1
        assert re.search("[Oo]n:? v2:2x2, v3:2x2\\b", text)


def test_findings_that_differ_in_their_node_only_are_one():
    report = with_findings(*(finding(op="StringLower", node=f"layer_{i}/Lower") for i in range(12)))
    (group,) = groups.findings([report, report], Severity.FAILS)
    assert group.nodes == tuple(f"layer_{i}/Lower" for i in range(12))
    assert group.operations == (
        "StringLower: layer_0/Lower, layer_1/Lower, layer_2/Lower and 9 more"
    )


def test_findings_of_different_lines_stay_apart():
    report = with_findings(finding(3), finding(4))
    assert len(groups.findings([report], Severity.FAILS)) == 2
    for line in (3, 4):
        assert f"model.py:{line}" in table([report])


def test_findings_are_sorted_by_kind():
    first = finding(9, message="Later in the code.")
    second = Finding(Severity.FAILS, Kind.CONFIGURATION, "A bad configuration.")
    found = groups.findings([with_findings(first, second)], Severity.FAILS)
    assert [group.finding.kind for group in found] == [Kind.CONFIGURATION, Kind.UNSUPPORTED_OP]


def test_largest_buffers_come_with_their_lines():
    for text in (table([FAILS]), page(FAILS).text):
        assert "f32[512,12,128,128]{3,2,1,0:T(8,128)}" in text
        assert "bert/encoder/layer_0/attention/self/MatMul" in text
        assert "my_project/model.py:120" in text
        assert "1.50 GiB" in text
    assert groups.buffers(FAILS)[0].number == 6
    assert "Largest buffers" not in table([FITS]) + page(FITS).text
