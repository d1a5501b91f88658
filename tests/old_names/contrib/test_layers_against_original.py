import importlib.util
import pathlib
import sys

import numpy as np
import pytest
from support import probing

PROBE = pathlib.Path(__file__).with_name("layers_probe.py")


@pytest.fixture
def folder(tmp_path):
    """`folder(name)` is a new one, through which the original imports tf_slim."""

    def make(name):
        made = tmp_path / name
        made.mkdir()
        found = importlib.util.find_spec("tf_slim").origin
        (made / "tf_slim").symlink_to(pathlib.Path(found).parent)
        return made

    return make


@pytest.mark.slow
@pytest.mark.parity
def test_the_same_variables_and_numbers(original, folder):
    place = folder("original")
    expected_by_name = original.run(PROBE, "original", place, cwd=place)
    place = folder("ours")
    ours = probing.run(sys.executable, PROBE, "ours", place, cwd=place)
    assert set(ours) == set(expected_by_name)
    for name, expected in expected_by_name.items():
        if name.startswith("batches"):
            assert ours[name] == expected, name
            continue
        assert ours[name]["variables"] == expected["variables"], name
        assert ours[name]["trainable"] == expected["trainable"], name
        assert ours[name]["updates"] == expected["updates"], name
        for a, b in zip(ours[name]["values"], expected["values"], strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5, err_msg=name)
