"""`est.keras_model()`: Keras' own loops on the captured graph, in step with the estimator."""

import keras
import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as v1
from support.legacy_models import examples, logits_of, make_estimator, train_input_fn
from support.untuned import untuned

import tpu_estimator_compat as tpu

pytestmark = pytest.mark.usefixtures("quick_disposal")


def dataset(repeats=1, batch=16):
    """The examples as (features, labels) batches."""
    pairs = tf.data.Dataset.from_tensor_slices(examples())
    return untuned(pairs.repeat(repeats).batch(batch, drop_remainder=True))


@pytest.fixture(params=[1, 2])
def estimator(request, tmp_path, strategy):
    """An estimator on one and on two replicas."""
    return make_estimator(tmp_path, use_tpu=True, loop=3, train_distribute=strategy(request.param))


def test_fit_trains_and_leaves_a_checkpoint_for_train(estimator):
    model = estimator.keras_model()
    history = model.fit(dataset(), epochs=5, verbose=0)
    assert history.history["loss"][-1] < history.history["loss"][0]
    assert estimator.latest_checkpoint().endswith("model.ckpt-20")
    estimator.train(train_input_fn, steps=5)
    assert estimator.latest_checkpoint().endswith("model.ckpt-25")
    model.fit(dataset(), epochs=1, verbose=0)
    assert estimator.latest_checkpoint().endswith("model.ckpt-29")


def test_fit_equals_train(estimator, tmp_path, strategy):
    replicas = estimator.config.train_distribute.num_replicas_in_sync
    estimator.train(train_input_fn, steps=8)
    other = make_estimator(tmp_path / "other", use_tpu=True, train_distribute=strategy(replicas))
    other.keras_model().fit(dataset(2), epochs=1, verbose=0)
    for name in ("hidden", "output/Adam"):
        np.testing.assert_allclose(
            other.get_variable_value(name), estimator.get_variable_value(name), rtol=1e-6
        )


@pytest.mark.parametrize("steps", [1, 2, 3, 4, 7])
def test_steps_per_execution_never_overshoots(estimator, steps):
    model = estimator.keras_model()
    assert model.steps_per_execution == 3
    model.fit(dataset(None), steps_per_epoch=steps, epochs=2, verbose=0)
    assert estimator.latest_checkpoint().endswith(f"model.ckpt-{2 * steps}")


@pytest.mark.parametrize("steps", [None, 2, 7])
def test_validation_has_steps_of_its_own(estimator, steps):
    """Also where an epoch of training is shorter than a loop, or longer than the validation."""
    model = estimator.keras_model()
    data = dataset(None if steps else 2)
    for train_steps in (1, 5):
        history = model.fit(
            dataset(None),
            steps_per_epoch=train_steps,
            validation_data=data,
            validation_steps=steps,
            epochs=2,
            verbose=0,
        )
        expected = model.evaluate(data, steps=steps, return_dict=True, verbose=0)
        assert history.history["val_loss"][-1] == pytest.approx(expected["loss"], rel=1e-6)
        assert history.history["val_accuracy"][-1] == pytest.approx(expected["accuracy"], rel=1e-6)


def test_evaluate_agrees_with_the_estimator(estimator):
    estimator.train(train_input_fn, steps=6)
    model = estimator.keras_model()
    ours = model.evaluate(dataset(), return_dict=True, verbose=0)
    theirs = make_estimator(estimator.model_dir).evaluate(train_input_fn, steps=4)
    assert ours["accuracy"] == pytest.approx(theirs["accuracy"], rel=1e-6)
    assert ours["loss"] == pytest.approx(theirs["loss"], rel=1e-5)
    assert [m.name for m in model.metrics] == ["loss", "accuracy"]
    assert all(isinstance(m, keras.metrics.Metric) for m in model.metrics)
    again = model.evaluate(dataset(), return_dict=True, verbose=0)
    assert again == ours


def test_validation_and_callbacks(estimator, tmp_path):
    seen = []
    record = keras.callbacks.LambdaCallback(
        on_epoch_end=lambda epoch, logs: seen.append(sorted(logs))
    )
    stop = keras.callbacks.EarlyStopping("loss", patience=0, min_delta=10.0)
    model = estimator.keras_model()
    model.fit(dataset(), epochs=9, validation_data=dataset(), callbacks=[record, stop], verbose=0)
    assert seen == [["loss", "val_accuracy", "val_loss"]] * 2


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
    """The first 40 examples."""
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


def test_variables_carry_their_tf1_names_each_once(estimator):
    model = estimator.keras_model(train_input_fn)
    paths = [v.path for v in model.variables]
    assert sorted(paths) == sorted(set(paths))
    assert {"hidden", "output", "global_step", "hidden/Adam"} <= set(paths)
    assert [v.path for v in model.trainable_variables] == ["hidden", "output"]
    assert model.count_params() == sum(int(np.prod(v.shape)) for v in model.variables)
    hidden = model.trainable_variables[0]
    hidden.assign(np.full((4, 8), 0.5, np.float32))
    model.fit(dataset(), steps_per_epoch=1, verbose=0)
    assert np.abs(hidden.numpy() - 0.5).max() < 0.1


def test_weights_can_be_saved_and_loaded(estimator, tmp_path):
    model = estimator.keras_model(train_input_fn)
    model.fit(dataset(), epochs=1, verbose=0)
    expected = [v.numpy() for v in model.variables]
    path = tmp_path / "model.weights.h5"
    model.save_weights(path)
    model.fit(dataset(), epochs=1, verbose=0)
    model.load_weights(path)
    for variable, value in zip(model.variables, expected, strict=True):
        np.testing.assert_array_equal(variable.numpy(), value)


def test_what_the_model_fn_brings_is_refused(estimator):
    model = estimator.keras_model()
    with pytest.raises(ValueError, match=r"compile\(\) got \['loss', 'optimizer'\]"):
        model.compile(optimizer="adam", loss="mse")
    x, y = examples(16)
    with pytest.raises(ValueError, match="sample_weight is not supported"):
        model.fit(x, y, sample_weight=np.ones(16), verbose=0)


def test_another_signature_names_both(tmp_path):
    model = make_estimator(tmp_path).keras_model(train_input_fn)
    wrong = tf.data.Dataset.from_tensors((tf.zeros([16, 5]), tf.zeros([16], tf.int32)))
    with pytest.raises(ValueError, match=r"expected dtype float32 and shape \(16, 4\)"):
        model.fit(wrong, verbose=0)


def test_a_nan_ends_fit_with_the_number_of_its_step(tmp_path, caplog):
    """The last good checkpoint stays the newest."""

    def model_fn(features, labels, mode, params):
        step = v1.train.get_global_step()
        loss = v1.losses.sparse_softmax_cross_entropy(labels, logits_of(features))
        loss += tf.where(step >= params["until"], float("nan"), 0.0)
        optimizer = tpu.CrossShardOptimizer(v1.train.GradientDescentOptimizer(0.1))
        train_op = optimizer.minimize(loss, global_step=step)
        return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)

    estimator = make_estimator(tmp_path, model_fn, use_tpu=True, loop=3, params={"until": 4})
    model = estimator.keras_model()
    model.fit(dataset(None), steps_per_epoch=3, verbose=0)
    history = model.fit(dataset(None), steps_per_epoch=6, epochs=4, verbose=0)
    assert len(history.epoch) == 1
    assert np.isnan(history.history["loss"][-1])
    assert "The loss of step 5 is NaN: training stops." in caplog.text
    assert "fit ended with a NaN loss at step 5; nothing was saved." in caplog.text
    assert estimator.latest_checkpoint().endswith("model.ckpt-3")


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
