"""All checks under TensorFlow 1's behaviour."""

import os
import pathlib

import pytest
from support import TESTS

V1 = pathlib.Path(__file__).parents[1] / "v1_checks.py"


@pytest.mark.slow
def test_graphs_of_tensorflow_1(forks):
    done = forks.run(V1, TESTS, env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"})
    assert (done.returncode, done.stdout.splitlines()[-1:]) == (0, ["all as expected"]), done.stderr
