"""A loss that is NaN ends the loop, whoever makes its steps."""

import numpy as np
import tensorflow as tf

from tpu_estimator_compat.loop.device_loop import DeviceLoop
from tpu_estimator_compat.loop.result import LoopResult


class OwnSteps(DeviceLoop):
    """Makes its steps otherwise, as the loop of several machines does."""

    def _run(self, iterator, call):
        return LoopResult(1, tf.constant(np.nan), np.nan, False)


def test_a_loop_that_makes_its_steps_otherwise_ends_too():
    for stop_on_nan, steps in (True, 1), (False, 5):
        loop = OwnSteps(
            lambda data: [tf.constant(0.0)],
            tf.float32,
            stop_on_nan=stop_on_nan,
            may_choose=False,
            interrupted=lambda: False,
        )
        result = loop(iter(tf.data.Dataset.range(9)), 5)
        assert (result.stopped_by_nan, result.steps) == (stop_on_nan, steps)
