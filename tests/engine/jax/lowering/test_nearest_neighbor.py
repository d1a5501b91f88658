"""The gradient of nearest-neighbour resizing, as XLA computes it, is TensorFlow's."""

import numpy as np
import pytest
import tensorflow as tf
from support.jax_estimators import RUNTIMES, on, variables
from support.legacy_models import train_input_fn

import tpu_estimator_compat as tpu
from tpu_estimator_compat.engine.jax.lowering import nearest_neighbor


@pytest.mark.parametrize(
    "switches",
    [(False, False), (False, True), (True, False)],
    ids=["plain", "half_pixel_centers", "align_corners"],
)
@pytest.mark.parametrize(
    ("before", "after"), [((3, 4), (6, 8)), ((5, 1), (7, 1)), ((8, 9), (3, 4))]
)
@pytest.mark.parametrize("dtype", [tf.float32, tf.float16])
def test_it_is_tensorflows(before, after, switches, dtype):
    given = np.random.RandomState(0).randint(-8, 8, [2, *after, 3])
    gradients = tf.constant(given, dtype)
    named = dict(zip(("align_corners", "half_pixel_centers"), switches, strict=True))
    expected = tf.raw_ops.ResizeNearestNeighborGrad(grads=gradients, size=before, **named)

    @tf.function(jit_compile=True)
    def compiled(value):
        return nearest_neighbor.call("", [value, tf.constant(before)], named)

    [found] = compiled(gradients)
    np.testing.assert_array_equal(found, expected)  # sums of small integers are exact


def test_a_training_is_that_of_tensorflow(tmp_path):
    def model_fn(features, labels, mode, params):
        v1 = tf.compat.v1
        image = tf.reshape(features, [-1, 2, 2, 1]) * v1.get_variable("w", [2, 2, 1])
        resized = v1.image.resize_nearest_neighbor(image, [5, 6])
        weights = tf.reshape(tf.range(30.0), [1, 5, 6, 1]) / 30.0
        loss = tf.reduce_mean((resized * weights - 1.0) ** 2)
        optimizer = tpu.CrossShardOptimizer(v1.train.GradientDescentOptimizer(0.1))
        train_op = optimizer.minimize(loss, v1.train.get_global_step())
        return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)

    found = []
    for runtime in RUNTIMES:
        estimator = on(runtime, 1, tmp_path / runtime, model_fn)
        estimator.train(train_input_fn, max_steps=5)
        found.append(variables(estimator))
    np.testing.assert_allclose(*(each["w"] for each in found), rtol=1e-6)
