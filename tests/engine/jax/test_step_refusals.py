"""What a step cannot have on JAX's devices, and what is said of it."""

import numpy as np
import pytest
import tensorflow as tf2
import tensorflow.compat.v1 as tf
from support.jax_estimators import on
from support.legacy_models import adam, logits_of, train_input_fn

import tpu_estimator_compat as tpu


def _python(x):
    return tf.py_func(lambda v: v, [x], tf.float32)


def _unknown_size(x):
    return tf.tile(x, [tf.cast(tf.reduce_max(tf.abs(x)), tf.int32), 1])


def _unbounded_loop(x):
    """The gradient of which keeps something of each turn."""
    weight = tf.get_variable("weight", [], initializer=tf.ones_initializer())
    return tf.while_loop(lambda i, _: i < 3, lambda i, v: (i + 1, v * weight), [0, weight])[1]


REFUSED = {
    "EmptyTensorList": (_unbounded_loop, "give tf.while_loop a constant maximum_iterations"),
    "PyFunc": (_python, "do it in input_fn"),
    "Tile": (_unknown_size, "as Python numbers"),
    "RandomPoissonV2": (lambda x: tf.random.poisson(3.0, []), ""),
}


@pytest.mark.parametrize("op", REFUSED)
def test_refusals_name_the_line(tmp_path, op):
    """Node, file, line, and what to write instead, where the table knows it."""
    offend, advice = REFUSED[op]

    def model_fn(features, labels, mode, params):
        bad = offend(features)  # this line
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits_of(features))
        loss += 0 * tf.reduce_mean(tf.cast(bad, tf.float32))
        return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=adam(loss, params))

    with pytest.raises(NotImplementedError, match='runtime="jax"') as raised:
        on("jax", 2, tmp_path, model_fn).train(train_input_fn, steps=1)
    message = str(raised.value)
    for part in (op, "test_step_refusals.py:", advice):
        assert part in message
    for part in ("TF_DUMP_GRAPH_PREFIX", "dummy_file_name"):
        assert part not in message


def test_strings_as_input_are_refused(tmp_path):
    def input_fn(params):
        return tf.data.Dataset.from_tensors(({"s": ["a"] * 16}, [0] * 16)).repeat()

    def model_fn(features, labels, mode, params):
        raise AssertionError

    with pytest.raises((ValueError, TypeError, NotImplementedError), match="string"):
        on("jax", 2, tmp_path, model_fn).train(input_fn, steps=1)


def test_ragged_and_sparse_input_is_refused(tmp_path):
    def input_fn(params):
        sparse = tf2.sparse.from_dense(np.eye(16, dtype=np.float32))
        return tf.data.Dataset.from_tensors(({"s": sparse}, [0] * 16)).repeat()

    def model_fn(features, labels, mode, params):
        return None

    with pytest.raises(ValueError, match="static shape"):
        on("jax", 1, tmp_path, model_fn).train(input_fn, steps=1)


DYNAMIC = {
    "boolean_mask": lambda rows, x: tf.boolean_mask(rows, x[:, 0] > 0),
    "unique": lambda rows, x: (
        rows[0] + tf.cast(tf.unique(tf.cast(x[:, 0] * 2, tf.int32))[0], tf.float32)
    ),
    "gather_nd": lambda rows, x: tf.gather_nd(rows, tf.where(x[:, 0] > 0)),
    "in a branch": lambda rows, x: tf.cond(
        x[0, 0] > 0,
        lambda: tf.reduce_sum(tf.boolean_mask(rows, x[:, 0] > 0)),
        lambda: tf.reduce_sum(rows),
    ),
}


@pytest.mark.parametrize("kind", DYNAMIC)
@pytest.mark.parametrize("replicas", [pytest.param(1, marks=pytest.mark.full), 2])
def test_shapes_that_depend_on_data_are_refused(tmp_path, kind, replicas):
    """By the line; on whatever number of devices."""

    def model_fn(features, labels, mode, params):
        logits = logits_of(features)
        rows = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
        loss = tf.reduce_mean(DYNAMIC[kind](rows, features))
        return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=adam(loss, params))

    with pytest.raises(NotImplementedError, match="depends on data") as raised:
        on("jax", replicas, tmp_path, model_fn).train(train_input_fn, steps=1)
    assert "test_step_refusals.py:" in str(raised.value)
