import dataclasses

import pytest

from tpu_estimator_compat.tools.preflight import memory_bars
from tpu_estimator_compat.tools.preflight.report import Layer, Memory

from .reports import FAILS, FITS, UNKNOWN, not_captured, over_the_line
from .showing import page


@pytest.mark.parametrize(
    "report", [FITS, FAILS, UNKNOWN, over_the_line()], ids=lambda r: r.topology
)
def test_bars_are_in_proportion_and_the_mark_is_in_its_place(report):
    segments = memory_bars.by_kind(report)
    bar = memory_bars.bar("By kind", segments, report.hbm, segments)
    per_byte = bar.mark / report.hbm
    assert [part.share for part in bar.parts] == pytest.approx(
        [s.size * per_byte for s in segments]
    )
    assert len(segments) > 1
    assert 0 < bar.mark < 1
    assert sum(part.share for part in bar.parts) < 1


def test_the_bar_by_kind_is_all_that_the_compiler_counted():
    assert sum(segment.size for segment in memory_bars.by_kind(FITS)) == FITS.memory.total
    assert sum(segment.size for segment in memory_bars.by_layer(FITS)) >= FITS.memory.total


def test_the_bar_by_layer_has_each_layer_and_the_rest():
    report = dataclasses.replace(
        FITS,
        layers=[Layer("a", 100, 200, 999), Layer("b", 10, 20)],
        memory=Memory(500, 0, 0, 50, 7),
    )
    sizes = {segment.name: segment.size for segment in memory_bars.by_layer(report)}
    assert sizes == {"a": 300, "b": 30, "temporaries of all layers": 50, "the rest": 177}


def test_without_a_compiler_only_variables_and_input_are_drawn():
    assert [segment.name for segment in memory_bars.by_kind(UNKNOWN)] == ["variables", "input"]
    assert "variables and one replica's input only" in page(UNKNOWN).text
    assert "variables and one replica's input only" not in page(FITS).text
    assert not [a for _, a in page(not_captured()).elements if a.get("role") == "img"]


def test_the_page_says_in_words_how_the_memory_compares():
    assert "2.97 GiB of 15.75 GiB, 19%" in page(FITS).text
    assert "12.78 GiB are left" in page(FITS).text
    # Variables alone can be too much.
    assert "more than 7.48 GiB" in page(FAILS).text
    assert "The two alone are 737.3 MiB more than the device has" in page(FAILS).text
    assert "2.55 GiB more than the device has" in page(over_the_line()).text
    assert "memory not known (of 95.73 GiB)" in page(UNKNOWN).text
    assert "the step could not be captured" in page(not_captured()).text


def test_pictures_have_words():
    pictures = [a for _, a in page(FITS).elements if a.get("role") == "img"]
    assert len(pictures) == 2 + len(FITS.layers)
    assert all(attributes["aria-label"] for attributes in pictures)
