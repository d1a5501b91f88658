"""First values from checkpoints: warm starts, init_from_checkpoint, scaffolds."""

import numpy as np
import tensorflow.compat.v1 as tf
from support.legacy_models import logits_of, make_estimator, train_input_fn

import tpu_estimator_compat as tpu
from tpu_estimator_compat import estimator as tf_estimator
from tpu_estimator_compat import layers


def test_init_from_checkpoint_in_model_fn_and_scaffold_fn(tmp_path):
    first = make_estimator(tmp_path / "first")
    first.train(train_input_fn, steps=5)
    path = first.latest_checkpoint()

    def in_model_fn(features, labels, mode, params):
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits_of(features))
        tf.train.init_from_checkpoint(path, {"hidden": "hidden", "output": "output"})
        no_op = tf.assign_add(tf.train.get_global_step(), 1)
        return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=no_op)

    def in_scaffold_fn(features, labels, mode, params):
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits_of(features))

        def scaffold_fn():
            tf.train.init_from_checkpoint(path, {"/": "/"} if False else {"hidden": "hidden"})
            return tf.train.Scaffold()

        # Changes nothing, yet exchanges, as TPU rules demand.
        optimizer = tpu.CrossShardOptimizer(tf.train.GradientDescentOptimizer(0.0))
        train_op = optimizer.minimize(loss, tf.train.get_global_step())
        return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op, scaffold_fn=scaffold_fn)

    for use_tpu, model_fn in (
        (False, in_model_fn),
        (False, in_scaffold_fn),
        (True, in_scaffold_fn),
    ):
        name = f"{model_fn.__name__}-{use_tpu}"
        second = make_estimator(tmp_path / name, model_fn, use_tpu=use_tpu)
        second.train(train_input_fn, steps=1)
        np.testing.assert_array_equal(
            second.get_variable_value("hidden"), first.get_variable_value("hidden")
        )


def test_init_from_checkpoint_of_layers(tmp_path):
    """Their first initialisers, which lie in the code of layers, are not updates of theirs."""

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
