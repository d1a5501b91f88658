import dataclasses

import pytest

from tpu_estimator_compat.tools.preflight.rendering import bars
from tpu_estimator_compat.tools.preflight.report import Layer, Memory, Report

from ..reports import FAILS, FITS, UNKNOWN, over_the_line
from ..showing import Elements


def _percent(value: str) -> float:
    assert value.endswith("%")
    return float(value[:-1])


def _drawn(report: Report) -> tuple[list[bars.Segment], list[tuple[float, float]], float]:
    """Segments by kind, where they start and how wide they are drawn; where the line is."""
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
