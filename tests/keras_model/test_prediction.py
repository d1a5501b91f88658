import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as v1
from support.legacy_models import examples, make_estimator, train_input_fn

import tpu_estimator_compat as tpu

from .fitting import dataset


def test_predict_and_call(estimator):
    estimator.train(train_input_fn, steps=6)
    model = estimator.keras_model()
    x, _ = examples(40)
    found = model.predict(x, batch_size=16, verbose=0)
    np.testing.assert_array_equal(found["features"], x)
    expected = [p["class"] for p in make_estimator(estimator.model_dir).predict(predict_40)]
    np.testing.assert_array_equal(found["class"], expected)
    np.testing.assert_array_equal(model(x)["class"], found["class"])


def predict_40(params):
    return tf.data.Dataset.from_tensor_slices(examples(40)[0]).batch(params["batch_size"])


def test_arrays_and_single_batches(estimator):
    model = estimator.keras_model()
    x, y = examples()
    model.fit(x, y, batch_size=16, epochs=2, shuffle=False, verbose=0)
    assert model.evaluate(x, y, batch_size=16, verbose=0, return_dict=True)["loss"] > 0


def test_single_batches_on_one_replica(tmp_path):
    model = make_estimator(tmp_path).keras_model()
    x, y = examples(16)
    first = model.train_on_batch(x, y, return_dict=True)["loss"]
    for _ in range(20):
        last = model.train_on_batch(x, y, return_dict=True)["loss"]
    assert last < first
    assert model.test_on_batch(x, y, return_dict=True)["loss"] < first
    assert model.predict_on_batch(x)["class"].shape == (16,)


@pytest.mark.parametrize("kind", ["sparse", "ragged"])
def test_predict_takes_what_is_sparse_or_ragged(tmp_path, strategy, kind):
    rows = [[1.0], [2.0, 3.0], [], [4.0, 5.0, 6.0], [7.0]]

    def sums_of(features):
        if kind == "sparse":
            return tf.sparse.reduce_sum(features["x"], axis=1)
        return tf.reduce_sum(features["x"], axis=1)

    def model_fn(features, labels, mode, params):
        del labels, params
        scale = v1.get_variable("scale", [], initializer=v1.ones_initializer())
        return tpu.TPUEstimatorSpec(mode, predictions={"sum": scale * sums_of(features)})

    ragged = tf.ragged.constant(rows)
    given = {"x": ragged.to_sparse() if kind == "sparse" else ragged}
    data = tf.data.Dataset.from_tensor_slices(given).batch(2)
    config = tpu.RunConfig(model_dir=str(tmp_path), train_distribute=strategy(1))
    model = tpu.TPUEstimator(model_fn, config=config, params={}, train_batch_size=2).keras_model()
    found = model.predict(data, verbose=0)
    np.testing.assert_allclose(found["sum"], [sum(row) for row in rows])


def test_labels_do_not_change_predictions(estimator):
    model = estimator.keras_model()
    pairs = model.predict(dataset(), verbose=0)
    alone = model.predict(dataset().map(lambda x, y: x), verbose=0)
    assert pairs.keys() == alone.keys()
    for name, value in pairs.items():
        np.testing.assert_array_equal(value, alone[name])


@pytest.mark.parametrize("through_keras", [False, True])
def test_first_values_are_those_of_the_scaffolds_init_op(tmp_path, through_keras):
    """As they are for `train`."""

    def model_fn(features, labels, mode):
        del labels
        scale = v1.get_variable("scale", [], initializer=v1.ones_initializer())
        with v1.control_dependencies([v1.global_variables_initializer()]):
            set_scale = v1.assign(scale, 5.0)
        loss = tf.reduce_mean(features) * 0.0 + scale
        train_op = v1.assign_add(v1.train.get_global_step(), 1)
        scaffold = v1.train.Scaffold(init_op=set_scale)
        return tpu.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op, scaffold=scaffold)

    estimator = tpu.estimator.Estimator(model_fn, model_dir=str(tmp_path))

    def input_fn():
        return tf.data.Dataset.from_tensors(np.ones([4, 1], np.float32)).repeat(3)

    if through_keras:
        found = estimator.keras_model().fit(input_fn(), verbose=0).history["loss"]
    else:
        estimator.train(input_fn)
        found = [estimator.get_variable_value("scale")]
    assert found == [5.0]
