"""The checks in a random order, twice, after TensorFlow has started, on functions without a module.

A script, a module of unittest and of pytest, or a cell of a notebook; the variable ORDER is a seed.
"""

import os
import random
import unittest

import tensorflow as tf

from testing.models import X, Y, classifier
from testing.portable_model import linear
from testing.sound_models import SOUND
from tpu_estimator_compat import testing

INNER = classifier()


def of_main(features, labels, mode, params):
    return INNER(features, labels, mode, params)


CHECKS = {
    "learns": lambda: testing.check_learns(
        lambda features, labels, mode, params: of_main(features, labels, mode, params), X, Y
    ),
    "replicas_agree": lambda: testing.check_replicas_agree(of_main, X, Y, replicas=8),
    "modes_agree": lambda: testing.check_modes_agree(*SOUND["batch_norm"]),
    "batch_independent": lambda: testing.check_batch_independent(of_main, X),
    "deterministic": lambda: testing.check_deterministic(*SOUND["dropout"]),
    "resumes": lambda: testing.check_resumes(of_main, X, Y, steps=1, replicas=2),
    "exports": lambda: testing.check_exports(of_main, X, Y),
    "fits_tpu": lambda: testing.check_fits_tpu(of_main, X, Y),
}
OF_CHILDREN = {
    "same_as_original": lambda: testing.check_same_as_original(
        linear, {"x": X}, X[:, :1] * 2.0, {"rate": 0.1}, steps=2
    )
}


def run(seed, checks=CHECKS):
    """Runs each check twice; what this process had before is as it was after each."""
    made = tf.Variable(1.0)
    count = tf.function(lambda: made.assign_add(1.0))
    count()
    devices = tf.config.list_logical_devices()
    order = 2 * list(checks)
    random.Random(seed).shuffle(order)
    print(f"ORDER={seed}:", *order)
    for number, name in enumerate(order):
        checks[name]()
        assert tf.config.list_logical_devices() == devices
        assert count() == number + 3.0
    print("all as expected")


class AnyOrder(unittest.TestCase):
    def test_any_order(self):
        run(os.environ["ORDER"])


if __name__ == "__main__":
    run(os.environ["ORDER"], CHECKS | OF_CHILDREN)
