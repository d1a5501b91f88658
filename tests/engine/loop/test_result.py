"""Loops that are cut into pieces, whatever runs the pieces."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from tpu_estimator_compat.engine.functions.tuner import Tuner
from tpu_estimator_compat.engine.loop.device_loop import Loop
from tpu_estimator_compat.engine.loop.result import LoopResult, ends_training

from .steps import PlainStep


def result(steps, loss=1.0, exhausted=False):
    return LoopResult(steps, tf.constant(loss), loss * steps, exhausted)


def run(results, steps=9, *, trains=True, interrupted=lambda: False):
    """What is left of `results` when calls have given them one by one, and the whole."""
    left = list(results)
    asked = []

    class Calls(Loop):
        def _run_piece(self, iterator, steps):
            asked.append(steps)
            return left.pop(0)

    step = PlainStep(lambda data: [], trains=trains)
    found = Calls(step, Tuner(may_choose=False), interrupted)(None, steps)
    return len(left), asked, found


def test_pieces_go_on_until_all_steps_are_made():
    left, asked, found = run([result(4), result(3), result(2), result(1)])
    assert (left, asked) == (1, [9, 5, 2])
    assert (found.steps, found.loss_sum, found.exhausted) == (9, 9.0, False)


@pytest.mark.parametrize(
    ("trains", "exhausted", "steps"),
    [(True, False, 2), (False, False, 9), (True, True, 2)],
)
def test_a_nan_is_the_last_loss_where_it_ends_training(trains, exhausted, steps):
    """Where the data ended at the same step, that is what is told."""
    results = [result(2, np.nan, exhausted), result(7)]
    _, _, found = run(results, trains=trains)
    assert found.steps == steps
    assert found.stopped_by_nan == (trains and not exhausted)


def test_the_end_of_the_data_and_an_interruption_end_a_loop():
    assert run([result(2), result(0, np.nan, exhausted=True)])[2].steps == 2
    left, _, found = run([result(2), result(2)], interrupted=lambda: True)
    assert (left, found.steps) == (1, 2)
    assert float(found.loss) == 1.0


@pytest.mark.parametrize(("loss", "ends"), [(np.nan, True), (np.inf, False), (0.5, False)])
def test_losses_that_end_training(loss, ends):
    """TF's NanTensorHook goes on after an infinite loss."""
    assert ends_training(np.float32(loss)) == ends
    assert ends_training(tf.constant(loss)) == ends
    built = tf.function(ends_training)(tf.constant(loss))
    assert bool(built) == ends


def test_a_result_without_steps_keeps_the_last_loss():
    whole = result(3, 2.0).followed_by(dataclasses.replace(result(0, np.nan), exhausted=True))
    assert (float(whole.loss), whole.steps, whole.exhausted) == (2.0, 3, True)
