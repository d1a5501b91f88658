"""The page of a preflight: sound HTML, whole, safe, and drawn to scale."""

import dataclasses
import re

import pytest

from preflight.reports import (
    FAILS,
    FITS,
    UNKNOWN,
    finding,
    not_captured,
    over_the_line,
    sampled,
    with_findings,
)
from preflight.showing import Elements, page
from tpu_estimator_compat.lowering.findings import Finding, Kind, Severity, Source
from tpu_estimator_compat.preflight.rendering import bars, numbers
from tpu_estimator_compat.preflight.rendering.markup import Html, element
from tpu_estimator_compat.preflight.report import Collectives, Layer, Memory, Report
from tpu_estimator_compat.preflight.result import Preflight


@sampled
def test_the_page_is_whole_and_needs_nothing_else(reports):
    text = Preflight(reports).to_html()
    seen = Elements(text)
    assert text.startswith("<!DOCTYPE html>")
    tags = [tag for tag, _ in seen.elements]
    assert not {"script", "link", "img", "iframe", "object"} & set(tags)
    assert "http" not in text
    assert "@import" not in text
    assert not [a for _, a in seen.elements if "src" in a or "href" in a]
    assert "prefers-color-scheme: dark" in text
    used = set(re.findall(r"url\(#([\w-]+)\)", text))
    assert used == {a["id"] for tag, a in seen.elements if tag == "pattern"}


@sampled
def test_pictures_have_words(reports):
    seen = page(*reports)
    for tag, attributes in seen.elements:
        if tag == "svg":
            assert attributes.get("aria-label") or attributes.get("aria-hidden") == "true"
        if tag == "th":
            assert attributes["scope"] in ("row", "col")
    assert dict(seen.elements)["html"]["lang"] == "en"


def _percent(value: str) -> float:
    assert value.endswith("%")
    return float(value[:-1])


def _drawn(report: Report) -> tuple[list[bars.Segment], list[tuple[float, float]], float]:
    """Segments by kind, where they start and how wide they are drawn; where the HBM line is."""
    segments = bars.by_kind(report)
    seen = Elements(bars.bar("By kind", segments, report.hbm, segments))
    drawn = [(_percent(a["x"]), _percent(a["width"])) for a in seen.of_class("segment")]
    (line,) = [a for tag, a in seen.elements if tag == "line"]
    assert line["x1"] == line["x2"]
    return segments, drawn, _percent(line["x1"])


@pytest.mark.parametrize(
    "report", [FITS, FAILS, UNKNOWN, over_the_line()], ids=lambda r: r.topology
)
def test_bars_are_in_proportion_and_the_line_is_in_its_place(report):
    segments, drawn, line = _drawn(report)
    assert len(segments) == len(drawn) > 1
    per_byte = line / report.hbm
    start = 0
    for segment, (x, width) in zip(segments, drawn, strict=True):
        assert x == pytest.approx(start * per_byte, abs=1e-3)
        assert width == pytest.approx(segment.size * per_byte, abs=1e-3)
        start += segment.size
    assert 0 < line <= 100
    assert start * per_byte <= 100
    assert (start * per_byte > line) == (start > report.hbm)


def test_the_bar_by_kind_is_all_that_the_compiler_counted():
    assert FITS.memory is not None
    assert sum(segment.size for segment in bars.by_kind(FITS)) == FITS.memory.total
    assert sum(segment.size for segment in bars.by_layer(FITS)) >= FITS.memory.total


def test_the_bar_by_layer_has_each_layer_and_the_rest():
    report = dataclasses.replace(
        FITS,
        layers=[Layer("a", 100, 200, 999), Layer("b", 10, 20)],
        memory=Memory(500, 0, 0, 50, 7),
    )
    sizes = {segment.name: segment.size for segment in bars.by_layer(report)}
    assert sizes == {"a": 300, "b": 30, "temporaries of all layers": 50, "the rest": 177}


def test_without_a_compiler_only_variables_and_input_are_drawn_and_that_is_said():
    assert [segment.name for segment in bars.by_kind(UNKNOWN)] == ["variables", "input"]
    assert "variables and one replica's input only" in page(UNKNOWN).text
    assert "variables and one replica's input only" not in page(FITS).text
    assert not page(not_captured()).of_class("bar")


def test_the_page_says_in_words_how_the_memory_compares():
    assert "2.97 GiB of 15.75 GiB HBM, 19%" in page(FITS).text
    assert "12.78 GiB are left" in page(FITS).text
    # Variables alone can be too much.
    assert "more than 7.48 GiB HBM" in page(FAILS).text
    assert "The two alone are 737.3 MiB more than the device has" in page(FAILS).text
    assert "2.55 GiB more than the device has" in page(over_the_line()).text
    assert "memory not known (95.73 GiB HBM)" in page(UNKNOWN).text
    assert "the step could not be captured" in page(not_captured()).text


def test_very_many_layers_are_summed_up():
    layers = [Layer(f"layer_{i}", 4 * i + 4, 0) for i in range(100)]
    seen = page(dataclasses.replace(FITS, layers=layers))
    assert "100 layers" in seen.text
    assert "70 smaller layers" in seen.text
    assert "layer_99" in seen.text
    assert numbers.size(sum(layer.variables for layer in layers[:70])) in seen.text
    assert len(seen.of_class("layer")) == 31


def test_text_is_escaped_and_markup_is_not():
    inner = element("b", "1 < 2")
    assert element("p", inner, "&", title='"') == ('<p title="&quot;"><b>1 &lt; 2</b>&amp;</p>')
    assert isinstance(inner, Html)


def test_code_is_never_markup():
    bad = "\"><script>alert(1)</script><b a='&lt;"
    source = Source(f"/{bad}.py", 1, bad, bad)
    said = Finding(Severity.FAILS, Kind.COMPILER, bad, bad, bad, bad, source)
    report = with_findings(said)
    report.layers = [Layer(bad, 5, 6, 7)]
    report.notes, report.unknown, report.compiler = [bad], bad, bad
    report.topology = report.mode = bad
    report.buffers = [
        dataclasses.replace(b, op=bad, shape=bad, source=source) for b in FAILS.buffers
    ]
    report.collectives = Collectives(1, 2, 3, {bad: 1})
    seen, usual = page(report), page(with_findings(finding()))
    assert not [tag for tag, _ in seen.elements if tag in ("script", "b")]
    assert seen.text.count(bad) > 10
    assert {tag for tag, _ in seen.elements} - {tag for tag, _ in usual.elements} <= {"text"}


def test_a_notebook_shows_the_page_in_a_frame_that_keeps_it_apart():
    shown = Elements(Preflight([FITS])._repr_html_())
    ((tag, attributes),) = shown.elements
    assert tag == "iframe"
    assert attributes["sandbox"] == ""
    assert Elements(attributes["srcdoc"]).text.split() == page(FITS).text.split()
