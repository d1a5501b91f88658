import numpy as np
import pytest
from support.proofs import evaluate, graph

import tpu_estimator_compat.v1 as tf


def test_the_v1_meaning_of_arguments():
    x = np.ones([1000], np.float32)
    kept = evaluate(lambda: tf.nn.dropout(tf.constant(x), 0.9))
    assert 0.8 < np.count_nonzero(kept) / 1000 < 1.0  # the second argument is keep_prob
    assert evaluate(lambda: tf.reduce_sum([[1, 2]], keep_dims=True)).tolist() == [[3]]
    assert evaluate(lambda: tf.squeeze([[1]], squeeze_dims=[0])).tolist() == [1]
    logits, labels = [[0.0, 0.0]], [[1.0, 0.0]]
    loss = evaluate(lambda: tf.nn.softmax_cross_entropy_with_logits(labels=labels, logits=logits))
    np.testing.assert_allclose(loss, [np.log(2)], rtol=1e-6)
    with graph():
        assert tf.placeholder(tf.float32, [2, 3]).shape.as_list() == [2, 3]


def test_layers_keep_names_update_ops_and_moments():
    class Shifted(tf.layers.BatchNormalization):
        def _moments(self, inputs, reduction_axes, keep_dims, **kwargs):
            mean, variance = super()._moments(inputs, reduction_axes, keep_dims, **kwargs)
            return mean + 1.0, variance

    def build():
        x = tf.layers.conv2d(tf.ones([1, 4, 4, 1]), 2, 3, name="conv")
        x = tf.layers.batch_normalization(x, training=True)
        x = tf.layers.dense(tf.layers.flatten(x), 1)
        return Shifted(fused=False, epsilon=0.0)(tf.constant([[1.0], [3.0]]), training=True), x

    with graph():
        build()
        assert [v.op.name for v in tf.global_variables()][:6] == [
            "conv/kernel",
            "conv/bias",
            "batch_normalization/gamma",
            "batch_normalization/beta",
            "batch_normalization/moving_mean",
            "batch_normalization/moving_variance",
        ]
        assert len(tf.get_collection(tf.GraphKeys.UPDATE_OPS)) == 4
    np.testing.assert_allclose(evaluate(build)[0], [[-2.0], [0.0]], rtol=1e-6)


def test_layers_and_contrib_layers_share_their_classes():
    from tpu_estimator_compat.v1.contrib import slim
    from tpu_estimator_compat.v1.python.layers import base

    assert issubclass(tf.layers.Dense, base.Layer)
    assert slim.layers.core_layers.Dense is tf.layers.Dense


def test_submodules_can_be_imported():
    import tpu_estimator_compat.v1.contrib.slim as slim
    from tpu_estimator_compat.v1.contrib import tpu
    from tpu_estimator_compat.v1.contrib.tpu.python.tpu import tpu_estimator
    from tpu_estimator_compat.v1.estimator import tpu as estimator_tpu

    assert tpu.TPUEstimator is tpu_estimator.TPUEstimator is estimator_tpu.TPUEstimator
    assert slim is tf.contrib.slim
    with pytest.raises(ImportError, match=r"nothing in its place.*names PART"):
        from tpu_estimator_compat.v1.contrib.tpu import missing  # noqa: F401
