import numpy as np
import tensorflow.compat.v1 as tf

from tpu_estimator_compat import estimator as tf_estimator
from tpu_estimator_compat import layers


def test_init_from_checkpoint_of_layers(tmp_path):
    """Their first initializers, which lie in the code of layers, are not updates of theirs."""

    def model_fn(features, labels, mode):
        logits = layers.dense(features, 3)
        if tf.io.gfile.exists(f"{first.model_dir}/checkpoint"):
            tf.train.init_from_checkpoint(first.model_dir, {"dense/": "dense/"})
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
        no_op = tf.assign_add(tf.train.get_global_step(), 1)
        return tf_estimator.EstimatorSpec(mode, loss=loss, train_op=no_op)

    def input_fn():
        data = np.ones([8, 4], np.float32), np.zeros([8], np.int64)
        return tf.data.Dataset.from_tensors(data).repeat()

    first = tf_estimator.Estimator(model_fn, str(tmp_path / "first"))
    first.train(input_fn, steps=2)
    second = tf_estimator.Estimator(model_fn, str(tmp_path / "second"))
    second.train(input_fn, steps=2)
    np.testing.assert_array_equal(
        second.get_variable_value("dense/kernel"), first.get_variable_value("dense/kernel")
    )
