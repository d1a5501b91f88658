"""What was private to the original's modules, and subclasses of estimators, as in TF 2.15."""

import pathlib
import sys

import pytest
from support import probing

PROBE = pathlib.Path(__file__).with_name("subclass_probe.py")


@pytest.mark.slow
@pytest.mark.parity
def test_the_same_answers_as_the_original(original, tmp_path):
    command = [sys.executable, "-m", "tpu_estimator_compat", "run", PROBE]
    assert probing.run(*command, cwd=tmp_path) == original.run(PROBE, cwd=tmp_path)
