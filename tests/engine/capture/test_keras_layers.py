"""Variables of Keras layers have the names that they had in the original, so checkpoints fit."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from support.legacy_models import (
    Fetching,
    examples,
    finite_input_fn,
    make_estimator,
    train_input_fn,
)

import tpu_estimator_compat as tpu
from tpu_estimator_compat.engine.capture.capture import new_graph

from . import keras_names_probe


def names_of(model):
    return keras_names_probe.names_of(model, lambda: new_graph(None))


def test_one_scope_per_layer():
    kernels = names_of(keras_names_probe.several)[::2]
    assert kernels == ["dense/kernel", "dense_1/kernel", "dense_2/kernel"]


def test_layers_within_layers():
    names = names_of(keras_names_probe.stack)
    assert names[:2] == ["stack/block_0/dense/kernel", "stack/block_0/dense/bias"]
    assert names[-1] == "stack/dense_4/bias"


def test_twice_in_one_process():
    assert names_of(keras_names_probe.blocks) == names_of(keras_names_probe.blocks)


@pytest.fixture(scope="module")
def originals(original):
    return original.run(keras_names_probe.__file__)


@pytest.mark.slow
@pytest.mark.parity
@pytest.mark.parametrize("model", keras_names_probe.MODELS, ids=lambda model: model.__name__)
def test_names_of_the_original(model, originals):
    assert names_of(model) == originals[model.__name__]


def model_fn(features, labels, mode, params):
    training = mode == tpu.ModeKeys.TRAIN
    weights = tf.get_variable("weights", [4, 3], initializer=tf.glorot_uniform_initializer(1))
    kept = tf.keras.layers.Dropout(0.5)(tf.ones_like(features), training=training)
    logits = tf.matmul(features * kept, weights)
    if mode == tpu.ModeKeys.PREDICT:
        return tpu.TPUEstimatorSpec(mode, predictions={"logits": logits})
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    tf.identity(kept, name="kept")
    optimizer = tf.train.GradientDescentOptimizer(0.0)
    if params["use_tpu"]:
        optimizer = tpu.CrossShardOptimizer(optimizer)
    train_op = optimizer.minimize(loss, tf.train.get_global_step())
    return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)


def masks_of(model_dir, steps):
    hook = Fetching("kept:0")
    make_estimator(model_dir, model_fn).train(train_input_fn, steps=steps, hooks=[hook])
    return hook.seen


def test_every_step_has_another_mask_and_the_seed_decides(tmp_path):
    masks = masks_of(tmp_path / "a", 4)
    assert set(np.unique(masks)) == {0.0, 2.0}
    for i in range(3):
        assert not np.array_equal(masks[i], masks[i + 1])
    np.testing.assert_array_equal(masks_of(tmp_path / "b", 4), masks)


@pytest.mark.parametrize("replicas", [pytest.param(1, marks=pytest.mark.full), 2])
def test_generators_are_in_no_checkpoint(replicas, tmp_path, strategy):
    est = make_estimator(
        tmp_path, model_fn, use_tpu=True, train_distribute=strategy(replicas), loop=2
    )
    est.train(train_input_fn, steps=4)
    est.train(train_input_fn, steps=2)
    assert set(est.get_variable_names()) == {"weights", "global_step"}
    assert est.evaluate(train_input_fn, steps=1)["global_step"] == 6
    [found] = est.predict(finite_input_fn(1))
    x, _ = examples(1)
    np.testing.assert_allclose(found["logits"], (x @ est.get_variable_value("weights"))[0], 1e-5)
    model = est.keras_model()
    data = tf.data.Dataset.from_tensor_slices(examples()).batch(16)
    model.fit(data, epochs=1, verbose=0)
    assert est.latest_checkpoint().endswith("model.ckpt-10")
