import dataclasses
import re

import pytest

from tpu_estimator_compat.tools.preflight import figures
from tpu_estimator_compat.tools.preflight.report import LargestBatch, Report
from tpu_estimator_compat.tools.preflight.showing import shown

from .reports import FITS, UNKNOWN, not_captured


def cell(name: str, report: Report) -> str:
    """What the row of a name says of one report; empty if there is no such row."""
    rows = {row[0].strip(): row[1] for row in figures.table([report]).rows}
    return rows.get(name, "")


@pytest.mark.parametrize(
    ("steps", "words"),
    [
        (64, "the steps of a dispatch in a loop, with the input of all of them"),
        (1, "one step in a dispatch"),
    ],
)
def test_what_was_compiled_is_said(steps, words):
    report = dataclasses.replace(FITS, dispatch_steps=steps)
    said = f"Compiled as the JAX runtime runs it: {words}, and variables updated in place."
    assert said in figures.table([report]).footnotes
    assert cell("steps in a dispatch", report) == str(steps)
    assert not any("JAX runtime" in note for note in figures.table([UNKNOWN]).footnotes)


def test_figures():
    assert cell("operations", FITS) == "14,871"
    assert cell("global batch", FITS) == "128"
    assert cell("memory used", FITS) == "2.97 GiB (19%)"
    assert cell("FLOPs of a step *", FITS) == "2.25 TFLOPs"
    assert cell("arithmetic intensity", FITS) == "70.3 FLOPs/byte"
    assert cell("all-reduces asked for", FITS) == "196 (420.0 MiB)"
    assert cell("exchanges compiled", FITS) == "4 all-reduce"
    assert cell("largest batch *", FITS) == "288 (296 does not fit)"
    assert cell("depth reached", UNKNOWN) == "lower, not compile"
    assert all(cell(part, FITS) for part in ("arguments", "new outputs", "temporaries", "code"))


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
    both = {name.strip(): cells for name, *cells in figures.table([UNKNOWN, FITS]).rows}
    for name in ("FLOPs of a step *", "memory used", "temporaries", "largest batch *", "compiler"):
        assert not cell(name, UNKNOWN)
        assert both[name] == ["", cell(name, FITS)]
        assert cell(name, FITS)
    assert not cell("operations", not_captured())
    assert not figures.table([not_captured()]).footnotes


def test_columns_without_room_go_below_with_their_own_header():
    many = [dataclasses.replace(FITS, topology=f"v5e:{2 * n}x{2 * n}") for n in range(1, 9)]
    lines = shown(many).text(80).splitlines()
    assert sum(line.startswith("verdict") for line in lines) > 1
    header = [line for line in lines if re.fullmatch(r"(\s+v5e:\d+x\d+)+", line)]
    assert " ".join(header).split() == [report.topology for report in many]
