import math
import re
from xml.etree import ElementTree

import pytest

from tpu_estimator_compat.tools.reports import charts
from tpu_estimator_compat.tools.reports.document import Curves, Line


def drawn(steps, values):
    return ElementTree.fromstring(
        charts.figure(Curves("loss", [Line("loss", "old", steps, values)]))
    )


class TestAxis:
    @pytest.mark.parametrize(
        ("low", "high", "ticks"),
        [
            (0.0, 1.0, [0, 0.2, 0.4, 0.6, 0.8, 1.0]),
            (-3.0, 7.0, [-2, 0, 2, 4, 6]),
            (95.0, 405.0, [100, 200, 300, 400]),
        ],
    )
    def test_linear(self, low, high, ticks):
        axis = charts.Axis(low, high, 0, 100)
        assert axis.ticks() == pytest.approx(ticks)
        assert [axis(low), axis((low + high) / 2), axis(high)] == pytest.approx([0, 50, 100])

    def test_logarithmic(self):
        axis = charts.Axis(1e-8, 1e-4, 0, 100, logarithmic=True)
        assert axis.ticks() == pytest.approx([1e-8, 1e-7, 1e-6, 1e-5, 1e-4])
        assert [axis(1e-6), axis(0.0), axis(1.0)] == pytest.approx([50, 0, 100])


def test_a_long_curve_keeps_its_peaks_and_gaps():
    steps = range(1, 100_001)
    values = [1.0] * 100_000
    values[54_321], values[70_000] = 9.0, math.nan
    chart = drawn(steps, values)
    path = chart.find("svg/path").get("d")
    top = min(float(y) for y in re.findall(r" ([\d.]+)(?= |$)", path.removesuffix(" h0.01")))
    flat = float(path.split()[1])
    assert top < flat / 2
    assert path.count("M") == 2
    assert len(path) < 60_000


def test_one_step():
    chart = drawn((7,), (0.25,))
    assert chart.find("svg/path").get("d").endswith("h0.01")
