import numpy as np
import pytest
import tensorflow as tf2
import tensorflow.compat.v1 as tf
from support.legacy_models import gradient_descent, make_estimator, train_input_fn

import tpu_estimator_compat as tpu


@pytest.mark.parametrize("library", ["keras", "tf1"])
def test_the_seed_reaches_the_first_values_of_layers(tmp_path, library):
    import random

    import keras

    from tpu_estimator_compat import layers

    def model_fn(features, labels, mode, params):
        dense = keras.layers.Dense(3) if library == "keras" else layers.Dense(3)
        loss = tf.losses.sparse_softmax_cross_entropy(labels, dense(features))
        return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=gradient_descent(loss))

    def first_values(name, seed):
        estimator = make_estimator(tmp_path / name, model_fn, tf_random_seed=seed)
        estimator.train(train_input_fn, steps=1)
        return tf2.train.load_variable(str(tmp_path / name / "model.ckpt-0"), "dense/kernel")

    before = random.getstate()
    one, again, other = first_values("a", 3), first_values("b", 3), first_values("c", 4)
    assert random.getstate() == before
    np.testing.assert_array_equal(one, again)
    assert not np.allclose(one, other)
