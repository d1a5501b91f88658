"""`tensorflow-privacy` 0.6.2: its optimizers and canned model, unchanged, against the original.

The noise is the original's too: its seeds come from the graph's.
"""

import numpy as np
import pytest

from .results import record
from .runs import COMMAND, HERE, assert_alike, found, python

pytestmark = pytest.mark.full


def test_trains_with_noise_as_the_original_does(clients, tmp_path, original):
    script = str(HERE / "privacy_script.py")
    options = ["--legacy-package=tensorflow_privacy"]
    ours = found(python(clients, tmp_path, "-m", *COMMAND, *options, script, "here"))
    theirs = found(python(clients, tmp_path, script, "there", executable=original.python))
    assert theirs.keys() == {"looped", "vectorized", "canned"}
    # Only the canned head has a sigmoid, which TensorFlow 2.21 rounds differently from 2.15.
    assert_alike(ours.pop("canned"), theirs.pop("canned"), atol=np.finfo(np.float32).eps)
    assert_alike(ours, theirs)
    what = "DP-SGD, vectorized DP-Adam and DNNClassifier: train, evaluate, as the original"
    record("tensorflow-privacy 0.6.2", what)
