"""The modes of a script's first training, and what it would begin with."""

import numpy as np
import pytest
import tensorflow as tf

import tpu_estimator_compat.v1 as tf1
from tpu_estimator_compat import config
from tpu_estimator_compat.engine.checkpoint.state import latest, read_variables
from tpu_estimator_compat.estimator.estimator import Estimator
from tpu_estimator_compat.estimator.tpu_estimator import TPUEstimator
from tpu_estimator_compat.spec import EstimatorSpec, TPUEstimatorSpec
from tpu_estimator_compat.tools.to_keras import script

v1 = tf.compat.v1


def model_fn(features, labels, mode, params):
    x = features["outer"]["x"]
    logits = tf1.layers.dense(x, 2, name="out")
    if mode == "infer":
        words = tf.lookup.KeyValueTensorInitializer(["c", "b", "a"], [0, 1, 2])
        place = tf.lookup.StaticHashTable(words, -1).lookup(features["id"])
        return EstimatorSpec(mode, {"logits": logits, "id": features["id"], "place": place})
    loss = v1.losses.sparse_softmax_cross_entropy(labels["kind"], logits)
    if mode == "eval" and params.get("only_trains"):
        raise NotImplementedError("not here")
    train_op = v1.train.GradientDescentOptimizer(0.1).minimize(loss, v1.train.get_global_step())
    return EstimatorSpec(mode, logits, loss, train_op)


def input_fn():
    data = {"outer": {"x": np.ones((12, 3), "float32")}, "id": np.array(["a", "b"] * 6)}
    labels = {"kind": np.arange(12) % 2}
    return tf.data.Dataset.from_tensor_slices((data, labels)).repeat().batch(4)


def test_modes(tmp_path):
    estimator = Estimator(model_fn, str(tmp_path / "m"), params={})
    modes = script.of_estimator(estimator, input_fn)
    assert not (tmp_path / "m").exists()
    assert list(modes.modes) == ["train", "eval", "infer"]
    assert {k: v.shape for k, v in modes.features.items()} == {"id": (4,), "outer/x": (4, 3)}
    assert modes.labels["kind"].tolist() == [0, 1, 0, 1]
    assert list(modes.modes["train"].labels) == ['y["kind"]']
    assert list(modes.modes["eval"].predictions) == ["output"]
    predict = modes.modes["infer"]
    assert predict.inputs["outer/x"].shape.as_list() == [None, 3]
    assert not predict.labels
    assert modes.step == 0
    found = predict.run(predict.predictions)
    expected = modes.features["outer/x"] @ modes.weights["out/kernel"].value
    np.testing.assert_allclose(found["logits"], expected, rtol=1e-6)
    nodes = predict.read(predict.predictions, modes.weights).nodes()
    [table] = [node for node in nodes if node.kind.startswith("HashTable")]
    assert table.attrs["keys"].tolist() == [b"c", b"b", b"a"]  # in the order of their numbers
    again = script.of_estimator(estimator, input_fn)
    np.testing.assert_array_equal(
        again.weights["out/kernel"].value, modes.weights["out/kernel"].value
    )


def test_the_newest_checkpoint(tmp_path):
    estimator = Estimator(model_fn, str(tmp_path), params={"only_trains": True})
    estimator.train(input_fn, steps=3)
    before = sorted(tmp_path.iterdir())
    modes = script.of_estimator(estimator, input_fn)
    assert sorted(tmp_path.iterdir()) == before
    assert list(modes.modes) == ["train", "infer"]
    assert modes.step == 3
    for name, value in read_variables(latest(str(tmp_path)), ["out/kernel", "out/bias"]):
        np.testing.assert_array_equal(modes.weights[name].value, value)


def on_tpu(features, labels, mode, params):
    logits = tf1.layers.dense(v1.reshape(features, [params["batch_size"], 3]), 2, name="out")
    loss = v1.losses.sparse_softmax_cross_entropy(labels, logits)
    optimizer = v1.train.GradientDescentOptimizer(0.1)
    optimizer = v1.tpu.CrossShardOptimizer(optimizer)
    return TPUEstimatorSpec(
        mode,
        logits,
        loss=loss,
        train_op=optimizer.minimize(loss, v1.train.get_global_step()),
        host_call=(lambda x: x, [v1.reshape(loss, [1])]),
        eval_metrics=(lambda x, y: {"mean": v1.metrics.mean(x)}, [logits, labels]),
    )


def sized(params):
    arrays = np.ones((12, 3), "float32"), np.arange(12) % 2
    data = tf.data.Dataset.from_tensor_slices(arrays).repeat()
    return data.batch(params["batch_size"], drop_remainder=True)


def test_of_a_tpu_estimator(tmp_path):
    """As on one CPU; a model_fn that takes one batch size only keeps it."""
    run = config.TPURunConfig(model_dir=str(tmp_path))
    estimator = TPUEstimator(on_tpu, config=run, use_tpu=True, train_batch_size=4)
    modes = script.of_estimator(estimator, sized)
    assert modes.modes["train"].inputs["features"].shape.as_list()[-1] == 3
    assert modes.features["features"].shape == (4, 3)
    assert list(modes.modes["train"].labels) == ["y"]
    train = modes.modes["train"]
    first, second = (
        train.run([train.captured.spec.loss, train.captured.spec.train_op])[0] for _ in "12"
    )
    assert second < first


def test_a_model_fn_without_predictions(tmp_path):
    def trains(features, labels, mode, params):
        spec = model_fn(features, labels, mode, params)
        return EstimatorSpec(mode, None, spec.loss, spec.train_op)

    with pytest.raises(ValueError, match="A Keras model has outputs, and model_fn gives"):
        script.of_estimator(Estimator(trains, str(tmp_path), params={}), input_fn)


def test_the_first_training(tmp_path):
    first = Estimator(model_fn, str(tmp_path / "a"), params={})
    second = Estimator(model_fn, str(tmp_path / "b"), params={})
    left = []

    def both():
        first.train(input_fn, steps=1)
        left.append(second.train(input_fn, steps=1))

    assert script.first_training(both) == (first, input_fn)
    assert script.first_training(lambda: 0) is None
    assert not left
    with pytest.raises(ValueError, match=r"calls evaluate\(\) before it trains"):
        script.first_training(lambda: first.evaluate(input_fn, steps=1))
