import numpy as np
import pytest
import tensorflow as tf

from tpu_estimator_compat import estimator as estimators
from tpu_estimator_compat.estimator.extending import forward_features

X = np.arange(4, dtype=np.float32)[:, None]


def input_fn():
    features = {"x": X, "id": np.arange(4, dtype=np.int64) + 10}
    return tf.data.Dataset.from_tensor_slices((features, 2 * X)).batch(2)


def model_fn(features, labels, mode):
    w = tf.compat.v1.get_variable("w", [], initializer=tf.compat.v1.ones_initializer())
    predictions = {"y": w * features["x"]}
    if mode == estimators.ModeKeys.PREDICT:
        return estimators.EstimatorSpec(mode, predictions)
    loss = tf.reduce_mean((predictions["y"] - labels) ** 2)
    metrics = {"mean": tf.compat.v1.metrics.mean(predictions["y"])}
    optimizer = tf.compat.v1.train.GradientDescentOptimizer(0.0)
    train_op = optimizer.minimize(loss, tf.compat.v1.train.get_global_step())
    return estimators.EstimatorSpec(mode, predictions, loss, train_op, metrics)


@pytest.fixture
def estimator(tmp_path):
    made = estimators.Estimator(model_fn, str(tmp_path))
    made.train(input_fn)
    return made


def test_adds_metrics_and_replaces_some(estimator):
    def metric_fn(predictions, labels, features, config):
        assert config.model_dir == estimator.model_dir
        return {
            "error": tf.compat.v1.metrics.mean_absolute_error(labels, predictions["y"]),
            "mean": tf.compat.v1.metrics.mean(features["id"]),
        }

    more = estimators.add_metrics(estimator, metric_fn)
    metrics = more.evaluate(input_fn)
    assert metrics["error"] == 1.5
    assert metrics["mean"] == 11.5
    assert estimator.evaluate(input_fn)["mean"] == 1.5
    more.train(input_fn)  # on, in the same place
    assert estimator.get_variable_value("global_step") == 4


@pytest.mark.parametrize("keys", ["id", ["id"]])
def test_forwards_features(estimator, keys):
    found = list(forward_features(estimator, keys).predict(input_fn))
    assert [int(each["id"]) for each in found] == [10, 11, 12, 13]
    assert set(found[0]) == {"y", "id"}
    assert set(next(estimator.predict(input_fn))) == {"y"}


def test_forwards_all_features_into_exports(estimator, tmp_path):
    def receiver():
        x = tf.compat.v1.placeholder(tf.float32, [None, 1])
        return estimators.export.ServingInputReceiver({"x": x}, {"x": x})

    path = forward_features(estimator).export_saved_model(str(tmp_path / "exports"), receiver)
    answer = tf.saved_model.load(path).signatures["serving_default"](x=tf.constant(X))
    np.testing.assert_array_equal(answer["x"], X)
    np.testing.assert_array_equal(answer["y"], X)


def test_forwards_sparse_features_with_something_in_their_gaps(estimator):
    def with_sparse():
        sparse = tf.SparseTensor([[0, 0], [1, 1]], tf.constant([5, 6], tf.int64), [2, 2])
        return tf.data.Dataset.from_tensors(({"x": X[:2], "s": sparse}, X[:2]))

    found = forward_features(estimator, "s", {"s": -1}).predict(with_sparse)
    assert [each["s"].tolist() for each in found] == [[5, -1], [-1, 6]]
    with pytest.raises(ValueError, match="'s' is a SparseTensor"):
        next(forward_features(estimator, "s").predict(with_sparse))


@pytest.mark.parametrize(
    ("keys", "words"), [(["z"], '"z" is not in features dict'), ([3], "keys should be strings")]
)
def test_wrong_keys_are_named(estimator, keys, words):
    with pytest.raises((ValueError, TypeError), match=words):
        next(forward_features(estimator, keys).predict(input_fn))
