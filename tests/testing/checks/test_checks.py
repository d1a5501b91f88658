"""All checks: under TensorFlow 1's behaviour, and in any order wherever users call them."""

import datetime
import os
import pathlib
import subprocess
import sys

import pytest
from support import TESTS
from support.notebooks import notebook

from .. import any_order

V1 = pathlib.Path(__file__).parents[1] / "v1_checks.py"
ANY_ORDER = pathlib.Path(any_order.__file__)


@pytest.mark.slow
def test_graphs_of_tensorflow_1(forks):
    done = forks.run(V1, TESTS, env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"})
    assert (done.returncode, done.stdout.splitlines()[-1:]) == (0, ["all as expected"]), done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        pytest.param("", marks=pytest.mark.parity),
        "-m unittest",
        "-m pytest -s",
        "-m tpu_estimator_compat run",
    ],
)
def test_any_order_in(words, tmp_path):
    order = os.environ.get("ORDER", str(datetime.date.today()))
    path = tmp_path / "test_any_order.py"
    if words.endswith("run"):
        path = path.with_suffix(".ipynb")
        text = ANY_ORDER.read_text().replace("CHECKS | OF_CHILDREN", "CHECKS")
        path.write_text(notebook("import tensorflow as tf; tf.constant(1)", text))
    else:
        path.write_text(ANY_ORDER.read_text())
    python_path = os.pathsep.join([str(TESTS), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, *words.split(), path.name],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": python_path, "ORDER": order},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert (done.returncode, done.stdout.count("all as expected")) == (0, 1), (
        done.stdout + done.stderr
    )
