import dataclasses

import pytest

from tpu_estimator_compat.tools.preflight.rendering import comparison
from tpu_estimator_compat.tools.preflight.rendering.table import table
from tpu_estimator_compat.tools.preflight.report import LargestBatch, Report

from ..reports import FAILS, FITS, UNKNOWN, not_captured
from ..showing import page, plain


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
    assert cell("memory used", FITS) == "2.97 GiB (19%)"
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
    for name in ("FLOPs of a step *", "memory used", "temporaries", "largest batch *", "compiler"):
        assert cell(name, FITS)
        assert not cell(name, UNKNOWN)
        (row,) = [r for r in comparison.rows([UNKNOWN, FITS]) if r.name.strip() == name]
        assert row.cells[0] == ""
        assert row.cells[1]
    assert not cell("operations", not_captured())


def test_reports_of_one_topology_are_told_apart():
    several = [FITS, dataclasses.replace(FITS, mode="eval"), FITS]
    assert comparison.labels(several) == ["v5e:2x2 train (1)", "v5e:2x2 eval", "v5e:2x2 train (2)"]
    assert comparison.labels([FITS, FAILS]) == ["v5e:2x2", "v2:1x1"]
