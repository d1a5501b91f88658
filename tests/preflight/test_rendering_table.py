"""The table of a preflight: its figures, its lines and its columns."""

import dataclasses
import re

import pytest

from preflight.reports import FAILS, FITS, SAMPLES, UNKNOWN, five_findings, not_captured, sampled
from preflight.showing import page, plain
from tpu_estimator_compat.preflight.rendering import comparison, groups
from tpu_estimator_compat.preflight.rendering.table import table
from tpu_estimator_compat.preflight.report import LargestBatch, Report


@sampled
@pytest.mark.parametrize("width", [60, 80, 120])
def test_lines_keep_to_the_width(reports, width):
    for line in table(reports, width).splitlines():
        # A line goes past it only where its one word does.
        assert len(line) <= width or len(line.split()) == 1


@sampled
def test_text_of_our_own_is_ascii_and_has_no_spaces_at_line_ends(reports):
    text = table(reports, 80)
    assert text.isascii()
    assert not [line for line in text.splitlines() if line != line.rstrip()]


def test_colours_change_nothing_but_colours():
    reports = SAMPLES["side by side"]
    colored = table(reports, 80, color=True)
    assert "\x1b[31m" in colored
    assert "\x1b[32m" in colored
    assert re.sub(r"\x1b\[\d+m", "", colored) == table(reports, 80)


def test_columns_without_room_go_below_with_their_own_header():
    many = [dataclasses.replace(FITS, topology=f"v5e:{2 * n}x{2 * n}") for n in range(1, 9)]
    lines = table(many, 80).splitlines()
    assert sum(line.startswith("verdict") for line in lines) > 1
    header = [line for line in lines if re.fullmatch(r"(\s+v5e:\d+x\d+)+", line)]
    assert " ".join(header).split() == [report.topology for report in many]


def test_the_width_of_none_is_the_terminals(monkeypatch):
    for columns, width in (("72", 72), ("300", 120)):
        monkeypatch.setenv("COLUMNS", columns)
        assert table([FITS]) == table([FITS], width)


def cell(name: str, report: Report) -> str:
    """What the row of a name says of one report; empty if there is no such row."""
    return {row.name.strip(): row.cells[0] for row in comparison.rows([report])}.get(name, "")


def test_what_was_compiled_is_said():
    loop = "the steps of a dispatch in a loop, with the input of all of them"
    for steps, words in ((64, loop), (1, "one step in a dispatch")):
        report = dataclasses.replace(FITS, dispatch_steps=steps)
        said = f"Compiled as the JAX runtime runs it: {words}, and variables updated in place."
        for text in (table([report]), page(report).text):
            assert said in plain(text)
        assert cell("steps in a dispatch", report) == str(steps)
    assert "JAX runtime" not in table([UNKNOWN]).partition("What this cannot know")[0]


def test_figures():
    assert cell("operations", FITS) == "14,871"
    assert cell("global batch", FITS) == "128"
    assert cell("HBM used", FITS) == "2.97 GiB (19%)"
    assert cell("FLOPs of a step *", FITS) == "2.25 TFLOPs"
    assert cell("arithmetic intensity", FITS) == "70.3 FLOPs/byte"
    assert cell("all-reduces asked for", FITS) == "196 (420.0 MiB)"
    assert cell("exchanges compiled", FITS) == "4 all-reduce"
    assert cell("largest batch *", FITS) == "288 (296 does not fit)"
    assert cell("depth reached", UNKNOWN) == "lower, not compile"
    # The parts make the whole.
    assert FITS.memory is not None
    parts = ["arguments", "new outputs", "temporaries", "code"]
    assert all(cell(part, FITS) for part in parts)


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (LargestBatch(0, 1, (8, 1)), "none fits"),
        (LargestBatch(64, None, (32, 64)), "64 or more"),
        (LargestBatch(64, 65, (64, 65)), "64 (65 does not fit)"),
    ],
)
def test_largest_batch(found, said):
    assert cell("largest batch *", dataclasses.replace(FITS, largest_batch=found)) == said


def test_rows_that_no_report_has_are_left_out():
    for name in ("FLOPs of a step *", "HBM used", "temporaries", "largest batch *", "compiler"):
        assert cell(name, FITS)
        assert not cell(name, UNKNOWN)
        (row,) = [r for r in comparison.rows([UNKNOWN, FITS]) if r.name.strip() == name]
        assert row.cells[0] == ""
        assert row.cells[1]
    assert not cell("operations", not_captured())


def test_the_star_is_explained_where_there_is_one():
    for text in (table([FITS]), page(FITS).text):
        assert "* of one replica" in text
    for text in (table([not_captured()]), page(not_captured()).text):
        assert "*" not in text


def test_reports_of_one_topology_are_told_apart():
    several = [FITS, dataclasses.replace(FITS, mode="eval"), FITS]
    assert comparison.labels(several) == ["v5e:2x2 train (1)", "v5e:2x2 eval", "v5e:2x2 train (2)"]
    assert comparison.labels([FITS, FAILS]) == ["v5e:2x2", "v2:1x1"]


def test_largest_buffers_come_with_their_lines():
    for text in (table([FAILS]), page(FAILS).text):
        assert "f32[512,12,128,128]{3,2,1,0:T(8,128)}" in text
        assert "bert/encoder/layer_0/attention/self/MatMul" in text
        assert "my_project/model.py:120" in text
        assert "1.50 GiB" in text
    assert groups.buffers(FAILS)[0].number == 6
    assert "Largest buffers" not in table([FITS]) + page(FITS).text


def test_notes_and_reasons_are_said():
    noted = five_findings()
    for text in (plain(table([noted, UNKNOWN])), plain(page(noted, UNKNOWN).text)):
        assert f"v3:2x2: {noted.notes[0]}" in text
        assert f"v5p:2x2x1: {UNKNOWN.unknown}" in text
