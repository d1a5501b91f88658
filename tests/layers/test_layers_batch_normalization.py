import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from tpu_estimator_compat import layers


class OverridesMoments(layers.BatchNormalization):
    def _moments(self, inputs, reduction_axes, keep_dims):
        mean, variance = super()._moments(inputs, reduction_axes, keep_dims=keep_dims)
        return mean + 1.0, variance


class OverridesMeanAndVariance(layers.BatchNormalization):
    def _calculate_mean_and_var(self, x, axes, keep_dims):
        mean, variance = super()._calculate_mean_and_var(x, axes, keep_dims)
        return mean + 1.0, variance


class OfAnother(OverridesMoments):
    def _moments(self, inputs, reduction_axes, keep_dims):
        mean, variance = super()._moments(inputs, reduction_axes, keep_dims=keep_dims)
        return mean + 2.0, variance


class TakesMask(layers.BatchNormalization):
    def _moments(self, inputs, reduction_axes, keep_dims, mask=None):
        mean, variance = super()._moments(inputs, reduction_axes, keep_dims, mask=mask)
        return mean + 1.0, variance


@pytest.mark.parametrize(
    ("cls", "more"),
    [(OverridesMoments, 1), (OverridesMeanAndVariance, 1), (OfAnother, 3), (TakesMask, 1)],
)
def test_moments_are_those_of_the_subclass(cls, more):
    x = np.array([[1.0, 2.0], [3.0, 6.0]], np.float32)
    with tf.Graph().as_default(), tf.Session() as session:
        y = cls(momentum=0.0, epsilon=0.0, fused=False)(tf.constant(x), training=True)
        names = [v.op.name.partition("/")[2] for v in tf.global_variables()]
        session.run(tf.global_variables_initializer())
        output, _ = session.run([y, tf.get_collection(tf.GraphKeys.UPDATE_OPS)])
        moving_mean = session.run(tf.global_variables()[2])
    assert names == ["gamma", "beta", "moving_mean", "moving_variance"]
    np.testing.assert_allclose(moving_mean, x.mean(0) + more, rtol=1e-6)
    np.testing.assert_allclose(output, (x - x.mean(0) - more) / x.std(0), rtol=1e-5)
