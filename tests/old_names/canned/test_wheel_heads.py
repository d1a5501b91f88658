"""Heads: served names, and what a model_fn of a TPUEstimator returns of them.

What they do in an `Estimator` is judged by the original, in `tests/conformance`.
"""

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.feature_column import feature_column

import tpu_estimator_compat.tpu as tpu
from tpu_estimator_compat.old_names.canned import contrib_heads as contrib
from tpu_estimator_compat.v1 import estimator as heads

X = np.linspace(-1.0, 1.0, 8, dtype=np.float32)[:, None]

ANSWERS = np.array([0, 1, 1, 0, 1, 0, 1, 1], np.int64)

WEIGHTS = np.array([1, 2, 0.5, 1, 1, 3, 1, 0.25], np.float32)


def model_fn_of(make_head):
    def model_fn(features, labels, mode, params):
        head = make_head()
        size = head.logits_dimension
        weights = tf.compat.v1.get_variable(
            "w", [1, size], initializer=tf.compat.v1.constant_initializer(0.5)
        )

        def train_op_fn(loss):
            optimizer = tf.compat.v1.train.GradientDescentOptimizer(0.5)
            if params["use_tpu"]:
                optimizer = tpu.CrossShardOptimizer(optimizer)
            return optimizer.minimize(loss, tf.compat.v1.train.get_global_step())

        spec = head._create_tpu_estimator_spec(
            features=features,
            mode=mode,
            logits=tf.matmul(features["x"], weights),
            labels=labels,
            train_op_fn=train_op_fn,
        )
        return spec if mode != "infer" else spec._replace(export_outputs=None)

    return model_fn


def input_fn(params):
    features = {"x": X, "weight": WEIGHTS[:, None]}
    data = tf.data.Dataset.from_tensor_slices((features, ANSWERS[:, None]))
    return data.batch(params["batch_size"], drop_remainder=True).repeat()


@pytest.mark.parametrize(
    "make_head",
    [
        lambda: contrib.binary_classification_head("weight"),
        lambda: heads.BinaryClassHead("weight"),
        lambda: contrib.multi_class_head(3),
    ],
)
def test_trains_and_evaluates_on_replicas(make_head, strategy, tmp_path):
    """The same weights and metrics as without a TPU."""
    found = []
    for use_tpu in False, True:
        config = tpu.RunConfig(
            model_dir=str(tmp_path / str(use_tpu)),
            tpu_config=tpu.TPUConfig(iterations_per_loop=2),
            **(
                {"train_distribute": strategy(2), "eval_distribute": strategy(2)} if use_tpu else {}
            ),
        )
        estimator = tpu.TPUEstimator(
            model_fn_of(make_head),
            use_tpu=use_tpu,
            config=config,
            train_batch_size=8,
            eval_batch_size=8,
        )
        estimator.train(input_fn, steps=4)
        metrics = estimator.evaluate(input_fn, steps=2)
        found.append((estimator.get_variable_value("w"), metrics))
    np.testing.assert_allclose(found[0][0], found[1][0], rtol=1e-5)
    assert found[0][1].keys() == found[1][1].keys()
    for key, value in found[0][1].items():
        np.testing.assert_allclose(found[1][1][key], value, rtol=1e-5, err_msg=key)


def test_weights_of_a_column_of_tensorflow_1():
    column = feature_column._numeric_column("weight")
    features, logits = {"weight": WEIGHTS[:, None]}, 2 * X
    loss = heads.BinaryClassHead(column).loss(ANSWERS, logits, features)
    assert loss == heads.BinaryClassHead("weight").loss(ANSWERS, logits, features)


@pytest.mark.parametrize(
    ("make_head", "words"),
    [
        (
            lambda: contrib.multi_label_head(3, loss_reduction="none"),
            "Invalid loss_reduction: none",
        ),
        (lambda: contrib.multi_head([]), "Must specify heads"),
        (
            lambda: contrib.multi_label_head(3, loss_fn=len),
            "loss_fn must contain argument: labels",
        ),
    ],
)
def test_wrong_arguments_are_named(make_head, words):
    with pytest.raises(ValueError) as error:
        make_head()
    assert words in str(error.value)
