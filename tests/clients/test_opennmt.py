"""`OpenNMT-tf` 1.25.3: its runner, unchanged. It needs tf.contrib, which TensorFlow 2.15 lacks."""

import pytest

from .results import record
from .runs import COMMAND, HERE, found, python

pytestmark = pytest.mark.full


def test_runner(clients, tmp_path):
    script = str(HERE / "opennmt_script.py")
    ours = found(python(clients, tmp_path, "-m", *COMMAND, script, str(tmp_path)))
    assert ours["right"] >= 30  # of 32
    assert ours["served"] == ours["first"]
    what = "Runner with attention: train_and_evaluate, beam search, exporter, serving"
    record("OpenNMT-tf 1.25.3", what)
