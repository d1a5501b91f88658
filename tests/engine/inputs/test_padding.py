import pytest
import tensorflow as tf

from tpu_estimator_compat.engine.inputs import padding
from tpu_estimator_compat.spec import ModeKeys

from .dealing import batches, dealt


def test_prediction_pads_and_marks(strategy):
    dataset = tf.data.Dataset.range(6).batch(4)
    found = dealt(strategy, 2, [dataset], mode=ModeKeys.PREDICT, size=4)
    assert found == [[[[0, 1], [0, 0]], [[2, 3], [0, 0]]], [[[4, 5], [0, 0]], [[0, 0], [1, 1]]]]
    assert padding.pad(dataset, 4).element_spec.is_padding == tf.TensorSpec([4], tf.int32)


def test_more_rows_than_the_batch_size_are_refused(strategy):
    with pytest.raises(ValueError, match="more rows than params"):
        dealt(strategy, 1, [batches(8)], mode=ModeKeys.PREDICT, size=4)
    with pytest.raises(tf.errors.InvalidArgumentError, match="more rows than params"):
        dealt(strategy, 1, [tf.data.Dataset.range(8).batch(8)], mode=ModeKeys.PREDICT, size=4)
