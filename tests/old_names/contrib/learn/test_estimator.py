"""`tf.contrib.learn.Estimator` against numbers that TensorFlow 1.15.5 gave for the same calls."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from support.proofs.contrib.learn import estimator as proofs
from support.proofs.proving import each_proof_of

from tpu_estimator_compat.old_names.contrib import learn

from .line_model import LINE, fitted, line, line_input_fn

test_served_names = each_proof_of(proofs)

X = np.random.RandomState(0).randn(20, 3).astype(np.float32)

Y = (X.sum(1) > 0).astype(np.int64)


class Losses(tf.train.SessionRunHook):
    def __init__(self):
        self.values = []

    def before_run(self, run_context):
        return tf.train.SessionRunArgs(tf.get_collection(tf.GraphKeys.LOSSES)[0])

    def after_run(self, run_context, run_values):
        self.values.append(run_values.results)


def classes(inputs, target):
    """A model_fn that asks for no mode, and has other names for its arguments."""
    first = 0.1 * np.arange(6).reshape(3, 2)
    weights = tf.get_variable("w", [3, 2], initializer=tf.constant_initializer(first))
    logits = tf.matmul(inputs, weights)
    loss = tf.losses.softmax_cross_entropy(tf.one_hot(target, 2), logits)
    optimizer = tf.train.AdagradOptimizer(0.5)
    train_op = optimizer.minimize(loss, tf.train.get_global_step())
    return {"class": tf.argmax(logits, 1), "prob": tf.nn.softmax(logits)}, loss, train_op


def test_arrays_are_fed_in_the_order_of_the_original(tmp_path):
    losses = Losses()
    estimator = learn.Estimator(classes, str(tmp_path))
    estimator.fit(X, Y, steps=7, batch_size=6, monitors=[losses])
    expected = [0.60699654, 0.30347502, 0.31961724, 0.30437514, 0.27038142, 0.13123700, 0.22290243]
    np.testing.assert_allclose(losses.values, expected, rtol=1e-5)
    accuracy = learn.MetricSpec(tf.metrics.accuracy, prediction_key="class")
    results = estimator.evaluate(X, Y, batch_size=8, metrics={"accuracy": accuracy})
    expected_results = {"accuracy": 1.0, "loss": 0.17479818, "global_step": 7}
    assert results == pytest.approx(expected_results, rel=1e-5)
    found = [each["prob"][0] for each in estimator.predict(X[:3])]
    np.testing.assert_allclose(found, [0.0047588027, 0.010052568, 0.1731492], rtol=1e-4)
    every = learn.SKCompat(estimator).predict(X, batch_size=7, outputs=["class"])
    np.testing.assert_array_equal(every["class"], Y)
    batches = list(estimator.predict(X, batch_size=7, iterate_batches=True))
    assert [len(batch["prob"]) for batch in batches] == [7, 7, 6]


def test_input_functions(tmp_path):
    estimator = learn.Estimator(line, str(tmp_path), params={"rate": 0.01})
    input_fn = learn.io.numpy_input_fn({"x": LINE}, 1.0 - LINE, 4, num_epochs=9, shuffle=False)
    estimator.fit(input_fn=input_fn, steps=5)
    estimator.fit(input_fn=input_fn, max_steps=8)
    assert estimator.get_variable_value("w") == pytest.approx(-0.4850063, rel=1e-5)
    results = estimator.evaluate(input_fn=input_fn, steps=3)
    assert results["loss"] == pytest.approx(0.41417035, rel=1e-5)
    features = learn.io.numpy_input_fn({"x": LINE}, batch_size=3, shuffle=False)
    assert len(list(estimator.predict(input_fn=features))) == 4


def test_a_prediction_without_queues_is_one_batch(tmp_path):
    estimator = fitted(tmp_path)

    def pairs():
        dataset = tf.data.Dataset.from_tensor_slices({"x": LINE}).batch(2)
        return tf.data.make_one_shot_iterator(dataset).get_next()

    expected = -0.4850063 * LINE
    np.testing.assert_allclose(list(estimator.predict(input_fn=pairs)), expected[:2], rtol=1e-5)
    found = estimator.predict(input_fn=line_input_fn, as_iterable=False)
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_features_are_engineered_for_model_fn_alone(tmp_path):
    def tenfold(features, labels):
        return {"x": features["x"] * 0.1}, labels

    estimator = fitted(tmp_path, feature_engineering_fn=tenfold)
    [value, *_] = estimator.predict(input_fn=line_input_fn)
    assert value == pytest.approx(0.1 * estimator.get_variable_value("w"))


def test_wrong_calls(tmp_path):
    estimator = fitted(tmp_path / "fitted")
    with pytest.raises(ValueError, match="Can not provide both input_fn and x or y"):
        estimator.fit(X, Y, line_input_fn)
    with pytest.raises(ValueError, match="Either x or input_fn must be provided"):
        estimator.fit(steps=1)
    with pytest.raises(ValueError, match="Can not provide both input_fn and batch_size"):
        estimator.fit(input_fn=line_input_fn, batch_size=3)
    with pytest.raises(ValueError, match="Can not provide both steps and max_steps"):
        estimator.fit(input_fn=line_input_fn, steps=1, max_steps=3)
    with pytest.raises(ValueError, match="Metrics argument should be None or dict"):
        estimator.evaluate(input_fn=line_input_fn, metrics=[1])
    with pytest.raises(ValueError, match="Features are incompatible with given information"):
        estimator.evaluate(input_fn=lambda: ({"x": tf.constant(X)}, tf.constant(LINE)), steps=1)
    with pytest.raises(learn.NotFittedError, match="Couldn't find trained model"):
        learn.Estimator(line, str(tmp_path / "new"), params={}).evaluate(input_fn=line_input_fn)
    with pytest.raises(ValueError, match="does not have a params argument"):
        learn.Estimator(classes, params={})
    with pytest.raises(ValueError, match=r"Invalid mode predict\."):
        learn.ModelFnOps("predict", tf.constant(1))
