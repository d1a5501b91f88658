"""A preflight's reports, however they are shown: what they must say, and must not."""

import dataclasses
import itertools
import re

import pytest

from preflight.reports import FAILS, FITS, UNKNOWN, finding, five_findings, sampled, with_findings
from preflight.showing import page, plain, text_of_json, text_of_page, text_of_table
from tpu_estimator_compat.lowering.findings import Finding, Kind, Severity, Source
from tpu_estimator_compat.preflight.rendering import groups, limits, numbers
from tpu_estimator_compat.preflight.rendering.sources import place, printable
from tpu_estimator_compat.preflight.rendering.table import table
from tpu_estimator_compat.preflight.report import Depth, Verdict
from tpu_estimator_compat.preflight.result import Preflight

ways = pytest.mark.parametrize(
    "said", [text_of_table, text_of_json, text_of_page], ids=["table", "json", "page"]
)


# Verdicts.


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


def test_no_reports_are_no_result():
    with pytest.raises(ValueError, match="at least one"):
        Preflight([])
    with pytest.raises(ValueError, match="at least one"):
        table([])


@sampled
def test_each_report_is_named_with_its_verdict(reports):
    for text in (text_of_table(reports), text_of_page(reports)):
        for report in reports:
            assert report.topology in text
            assert report.verdict.value in text


# Findings.


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


def test_no_findings_is_said_and_headings_of_none_are_not():
    assert "No findings" in table([FITS])
    for text in (table([FITS]), page(FITS).text):
        assert "Certainly fails" not in text
        assert "Might fail" not in text


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


# What is not claimed.


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
    assert "Nothing was run on a TPU" in text
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
        assert ("not compiled for a TPU" in said) is not compiled
        assert ("7% apart" in said) is compiled
        assert ("XLA kernels for the CPU" in said) is (depth is not None)
        assert ("a TPU has them" in said) is (depth is not None)
        assert ("not lowered" in said) is (depth is Depth.SCAN)
        assert ("could not be captured" in said) is (depth is None)


def test_sentences_on_some_reports_name_them():
    text = plain(table([FITS, UNKNOWN]))
    assert "v5e:2x2: The memory is an estimate" in text
    assert "v5p:2x2x1: The step was not compiled" in text
    assert "- Nothing was run on a TPU" in text


# The user's code.


def test_files_below_the_working_directory_are_named_from_there(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/someone")
    assert place(Source(str(tmp_path / "a" / "model.py"), 7)) == "a/model.py:7"
    assert place(Source("/home/someone/model.py", 7)) == "~/model.py:7"
    assert place(Source("/elsewhere/model.py", 7)) == "/elsewhere/model.py:7"
    assert place(Source(f"{tmp_path}_2/model.py", 7)) == f"{tmp_path}_2/model.py:7"


def test_code_has_no_control_characters_where_it_is_shown():
    evil = Source("/m.py", 1, "f", "x = '\x1b[2J\x07\u202e'")
    assert printable("a\tb\x1b") == "a b?"
    report = with_findings(finding(source=evil))
    for text in (table([report]), Preflight([report]).to_html()):
        assert not {"\x1b", "\x07", "\u202e"} & set(text)
        assert "?[2J??" in text


# Numbers.


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (0, "0 bytes"),
        (1, "1 byte"),
        (1023, "1,023 bytes"),
        (1024, "1.0 KiB"),
        (2**20 - 1, "1.0 MiB"),
        (2**30 - 1, "1.00 GiB"),
        (int(15.75 * 2**30), "15.75 GiB"),
        (2**40, "1.00 TiB"),
    ],
)
def test_sizes(number, said):
    assert numbers.size(number) == said


@pytest.mark.parametrize(
    ("part", "whole", "said"),
    [
        (0, 100, "0%"),
        (1, 1000, "<1%"),
        (100, 100, "100%"),
        (10_000_001, 10_000_000, ">100%"),
        (9_999_999, 10_000_000, "<100%"),
        (1004, 1000, "100.4%"),
        (134, 100, "134%"),
    ],
)
def test_shares_never_round_across_the_limit(part, whole, said):
    assert numbers.share(part, whole) == said
