import dataclasses
import json
import re

import pytest

from tpu_estimator_compat.engine.graph.source_line import SourceLine
from tpu_estimator_compat.engine.jax.lowering.findings import Finding, Kind, Severity
from tpu_estimator_compat.tools.preflight import limits
from tpu_estimator_compat.tools.preflight.estimator_mode import Preflight
from tpu_estimator_compat.tools.preflight.report import Collectives, Layer
from tpu_estimator_compat.tools.preflight.showing import shown
from tpu_estimator_compat.tools.reports import json_form

from .reports import (
    FAILS,
    FITS,
    UNKNOWN,
    finding,
    five_findings,
    sampled,
    with_findings,
)
from .showing import page, text_of_json, text_of_page, text_of_table

ways = pytest.mark.parametrize(
    "said", [text_of_table, text_of_json, text_of_page], ids=["table", "json", "page"]
)
for_people = pytest.mark.parametrize("said", [text_of_table, text_of_page], ids=["table", "page"])


@sampled
@for_people
def test_each_report_is_named_with_its_verdict(reports, said):
    text = said(reports)
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


@for_people
def test_headings_of_no_findings_are_not_said(said):
    assert "No findings" in said([FITS])
    for heading in ("Certainly fails", "Might fail", "Largest buffers"):
        assert heading not in said([FITS])


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


@for_people
def test_sentences_on_some_reports_name_them(said):
    text = said([FITS, UNKNOWN, five_findings()])
    assert "v5e:2x2: The memory is an estimate" in text
    assert "v5p:2x2x1: The step was not compiled" not in text
    assert "v5p:2x2x1, v3:2x2: The step was not compiled" in text
    assert ": Nothing was run on such a device" not in text
    assert f"v3:2x2: {five_findings().notes[0]}" in text
    assert f"v5p:2x2x1: {UNKNOWN.unknown}" in text


@for_people
def test_what_fails_comes_before_what_might(said):
    report = with_findings(
        finding(1, Severity.MIGHT, message="Might."), finding(2, message="Certain.")
    )
    text = said([report])
    places = [
        text.index(words)
        for words in ("Certainly fails (1)", "Certain.", "Might fail (1)", "Might.")
    ]
    assert places == sorted(places)


@for_people
def test_a_finding_of_several_topologies_is_told_once(said):
    same = [with_findings(finding(), topology=name) for name in ("v2:2x2", "v3:2x2", "v5e:2x2")]
    text = said(same)
    assert text.count("No kernel.") == 1
    assert "on: " not in text
    text = said([*same[:2], with_findings(topology="v5e:2x2")])
    assert text.count("No kernel.") == 1
    assert re.search("[Oo]n: v2:2x2, v3:2x2(?!,)", text)


@for_people
def test_findings_that_differ_in_their_node_only_are_one(said):
    report = with_findings(*(finding(op="StringLower", node=f"layer_{i}/Lower") for i in range(12)))
    text = said([report, report])
    assert "StringLower: layer_0/Lower, layer_1/Lower, layer_2/Lower and 9 more" in text
    assert "layer_3" not in text


@for_people
def test_findings_of_different_lines_stay_apart_and_are_sorted_by_kind(said):
    bad = Finding(Severity.FAILS, Kind.CONFIGURATION, "A bad configuration.")
    text = said([with_findings(finding(3), finding(4), bad)])
    places = [text.index(words) for words in ("A bad", "model.py:3", "model.py:4")]
    assert places == sorted(places)


@for_people
def test_largest_buffers_come_with_their_lines(said):
    text = said([FAILS])
    assert "6 of f32[512,12,128,128]{3,2,1,0:T(8,128)}, 1.50 GiB of it padding" in text
    assert "bert/encoder/layer_0/attention/self/MatMul" in text
    assert "my_project/model.py:120" in text
    assert "3.00 GiB" in text


@sampled
@pytest.mark.parametrize("width", [60, 80, 120])
def test_text_keeps_to_the_width_and_is_ascii(reports, width):
    text = shown(reports).text(width)
    for line in text.splitlines():
        # A line goes past it only where its one word does.
        assert len(line) <= width or len(line.split()) == 1
        assert line == line.rstrip()
    assert text.isascii()


def test_code_is_never_markup():
    bad = "\"><script>alert(1)</script><b a='&lt;\x1b[2J\u202e"
    said = bad.replace("\x1b", "?").replace("\u202e", "?")
    source = SourceLine(f"/{bad}.py", 1, bad, bad)
    report = with_findings(Finding(Severity.FAILS, Kind.COMPILER, bad, bad, bad, bad, source))
    report.layers = [Layer(bad, 5, 6, 7)]
    report.notes, report.unknown, report.compiler = [bad], bad, bad
    report.topology = report.mode = bad
    report.buffers = [
        dataclasses.replace(b, op=bad, shape=bad, source=source) for b in FAILS.buffers
    ]
    report.collectives = Collectives(1, 2, 3, {bad: 1})
    seen = page(report)
    assert not [tag for tag, attributes in seen.elements if tag == "script" or "a" in attributes]
    assert seen.text.count(said) > 10
    for text in (seen.text, shown([report]).text(80)):
        assert not {"\x1b", "\u202e"} & set(text)


@sampled
def test_json_has_the_reports(reports):
    said = json.loads(shown(reports).json())
    assert said["version"] == 2
    verdict = Preflight(reports).verdict
    assert (said["verdict"], said["exit_code"]) == (verdict.value, verdict.exit_code)
    more = {"verdict", "exit_code", "intensity", "least_seconds", "cannot_know"}
    for read, report in zip(said["reports"], reports, strict=True):
        assert read["verdict"] == report.verdict.value
        if report.memory:
            assert read["memory"].pop("total") == report.memory.total
        fields = json_form.encoded(report)
        assert set(read) == set(fields) | more
        assert {name: read[name] for name in fields} == fields
