"""`tf.contrib.rnn`: served names; cells are tested in the files of their modules."""

import pathlib

from . import cells_probe
from .recorded_cells import MODULES, ORIGINAL


def test_all_that_was_recorded_is_compared():
    cases = cells_probe.cases()
    assert len(ORIGINAL) == sum(len(cells_probe.modes(name)) for name in cases)
    assert sorted(case for cases in MODULES.values() for case in cases) == sorted(cases)
    for module in MODULES:
        text = pathlib.Path(__file__).with_name(f"test_{module}.py").read_text()
        assert f'= compared("{module}")' in text
