"""Results that a script does not read to their end."""

import subprocess
import sys

import pytest

GIVEN_UP = """
import threading
import numpy as np
import tensorflow.compat.v1 as tf

from tpu_estimator_compat import estimator

def model_fn(features, labels, mode):
    return estimator.EstimatorSpec(mode, predictions=features * 2)

def examples():
    for i in range(3):
        yield np.full([1, 4], i, np.float32)
    %s

def input_fn():
    return tf.data.Dataset.from_generator(examples, tf.float32, [1, 4])

results = estimator.Estimator(model_fn).predict(input_fn)
print("first", next(results)[0])


class Keeps:
    pass  # Python finds out at its very end that nobody wants what a circle holds


keeps = Keeps()
keeps.circle, keeps.results = keeps, results
del keeps, results
"""


# A process of its own: a fork does not end as a script does.
@pytest.mark.slow
@pytest.mark.parametrize("then", ["return", "threading.Event().wait()"], ids=["ends", "blocks"])
def test_a_script_that_gives_them_up_ends_in_silence(then):
    script = [sys.executable, "-c", GIVEN_UP % then]
    done = subprocess.run(script, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "first 0.0" in done.stdout
    assert "Exception ignored" not in done.stderr
    assert "Traceback" not in done.stderr
