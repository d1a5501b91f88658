"""The model that a Keras callback among the hooks finds: whole, and that of the steps at work."""

import keras
import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from support.legacy_models import (
    examples,
    finite_input_fn,
    logits_of,
    make_estimator,
    make_model_fn,
    train_input_fn,
)

import tpu_estimator_compat as tpu
from tpu_estimator_compat.engine.modes.model_modes import ModelModes
from tpu_estimator_compat.engine.session.graph_session import RunnerSession
from tpu_estimator_compat.engine.state import variables
from tpu_estimator_compat.engine.state.variables import VariableStore
from tpu_estimator_compat.keras_model.model import ModelFnModel


class Calls(keras.callbacks.Callback):
    """Calls a function with the model and the number of each batch, at its end."""

    def __init__(self, function, event="on_train_batch_end"):
        super().__init__()
        setattr(self, event, lambda batch, logs=None: function(self.model, batch))


def descent(rate):
    """A model_fn with dropout that descends at a rate, a number or a function of the step."""

    def model_fn(features, labels, mode, params):
        del params
        kept = tf.nn.dropout(features, rate=0.2, seed=3)
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits_of(kept))
        step = tf.train.get_global_step()
        optimizer = tf.train.GradientDescentOptimizer(rate(step) if callable(rate) else rate)
        return tpu.TPUEstimatorSpec(
            mode, loss=loss, train_op=optimizer.minimize(loss, global_step=step)
        )

    return model_fn


def trained(model_dir, model_fn, hooks=(), **config):
    estimator = make_estimator(model_dir, model_fn, **config)
    estimator.train(train_input_fn, hooks=list(hooks), max_steps=6)
    return estimator.get_variable_value("hidden")


def test_it_is_the_model_of_keras_model_with_the_values_at_work(tmp_path):
    found = {}

    def look(model, batch):
        if batch == 2:
            found["model"], found["weights"] = model, model.get_weights()
            found["iterations"] = int(model.optimizer.iterations)
            model.save_weights(str(tmp_path / "third.weights.h5"))

    estimator = make_estimator(tmp_path, save_checkpoints_steps=3)
    estimator.train(train_input_fn, hooks=[Calls(look)], max_steps=6)
    model = found["model"]
    assert isinstance(model, ModelFnModel)
    assert model.metrics_names == ["loss"]
    assert found["iterations"] == 3
    paths = [variable.path for variable in model.variables]
    assert paths == [variable.path for variable in estimator.keras_model(train_input_fn).variables]
    for path, value in zip(paths, found["weights"], strict=True):
        saved = tf.train.load_variable(str(tmp_path / "model.ckpt-3"), path)
        np.testing.assert_array_equal(value, saved, path)
    other = make_estimator(tmp_path / "other").keras_model(train_input_fn)
    other.load_weights(str(tmp_path / "third.weights.h5"))
    for value, loaded in zip(found["weights"], other.get_weights(), strict=True):
        np.testing.assert_array_equal(value, loaded)


@pytest.mark.parametrize("config", [{}, {"use_tpu": True, "loop": 1}, {"runtime": "jax"}], ids=str)
def test_a_rate_that_it_is_given_is_that_of_the_next_step(tmp_path, strategy, config):
    if "use_tpu" in config:
        config = {**config, "train_distribute": strategy(1)}

    def halve(model, batch):
        model.optimizer.learning_rate = 0.5 ** (batch + 2)

    def schedule(step):
        return 0.5 ** (tf.cast(step, tf.float32) + 1.0)

    ours = trained(tmp_path / "callback", descent(0.5), [Calls(halve)], **config)
    expected = trained(tmp_path / "schedule", descent(schedule), [Calls(print)], **config)
    np.testing.assert_allclose(ours, expected, rtol=1e-6)


def test_random_numbers_go_on_where_the_steps_are_made_anew(tmp_path):
    """A rate is replaced by a variable, in another graph; dropout does not draw its masks again."""

    def same_rate(model, batch):
        if batch == 2:
            model.optimizer.learning_rate = 0.5

    ours = trained(tmp_path / "replaced", descent(0.5), [Calls(same_rate)])
    expected = trained(tmp_path / "plain", descent(0.5), [Calls(lambda model, batch: None)])
    np.testing.assert_array_equal(ours, expected)


def test_schedules_of_keras(tmp_path):
    rates = []

    def note(model, batch):
        rates.append(float(model.optimizer.learning_rate))

    schedule = keras.callbacks.LearningRateScheduler(lambda epoch, rate: rate / 4)
    plateau = keras.callbacks.ReduceLROnPlateau("loss", factor=0.1)
    trained(tmp_path, descent(0.5), [schedule, plateau, Calls(note)])
    assert rates == 6 * [0.125]


def test_machines_that_train_together_keep_their_graph(tmp_path, monkeypatch):
    """One that made its steps anew would wait for the others for ever."""
    monkeypatch.setattr(RunnerSession, "may_renew_steps", False)
    schedule = keras.callbacks.LearningRateScheduler(lambda epoch: 0.1)
    with pytest.raises(NotImplementedError, match="cannot be set while several machines"):
        trained(tmp_path, descent(0.5), [schedule])


def test_what_has_no_rate_says_so(tmp_path):
    schedule = keras.callbacks.LearningRateScheduler(lambda epoch: 0.1)
    model_fn = make_model_fn(lambda loss, params: tf.train.get_global_step().assign_add(1))
    with pytest.raises(ValueError, match="has no learning_rate: the step of model_fn has no one"):
        trained(tmp_path, model_fn, [schedule])


def test_evaluates_and_predicts_by_the_live_weights(tmp_path):
    x, y = examples(32)
    found = []

    def look(model, batch):
        if batch == 2:
            found.append(model.evaluate(x, y, batch_size=16, verbose=0, return_dict=True))
            found.append(model.predict(x, batch_size=16, verbose=0)["class"])

    estimator = make_estimator(tmp_path, save_checkpoints_steps=3)
    estimator.train(train_input_fn, hooks=[Calls(look)], max_steps=6)
    path = str(tmp_path / "model.ckpt-3")
    expected = estimator.evaluate(finite_input_fn(32), checkpoint_path=path)
    assert found[0]["loss"] == pytest.approx(expected["loss"], rel=1e-6)
    assert found[0]["accuracy"] == pytest.approx(expected["accuracy"])
    predictions = estimator.predict(finite_input_fn(32), checkpoint_path=path)
    assert found[1].tolist() == [p["class"] for p in predictions]


def test_machines_that_train_together_do_nothing_else(tmp_path, monkeypatch):
    """One that evaluated would wait for the others."""
    monkeypatch.setattr(ModelModes, "is_alone", False)
    other = Calls(lambda model, batch: model.evaluate(*examples(16)))
    with pytest.raises(NotImplementedError, match="during a call on several machines"):
        trained(tmp_path, None, [other])


def test_callbacks_of_keras_that_write_files(tmp_path):
    callbacks = [
        keras.callbacks.ModelCheckpoint(
            str(tmp_path / "best.weights.h5"), save_weights_only=True, save_freq=2
        ),
        keras.callbacks.TensorBoard(str(tmp_path / "board")),
        keras.callbacks.EarlyStopping("loss", restore_best_weights=True),
    ]
    trained(tmp_path / "model", None, callbacks)
    assert (tmp_path / "best.weights.h5").stat().st_size
    assert list((tmp_path / "board" / "train").glob("events.*"))


def test_evaluations_and_predictions_have_it(tmp_path):
    seen = []

    def look(model, batch):
        seen.append(len(model.get_weights()))

    estimator = make_estimator(tmp_path)
    estimator.train(train_input_fn, max_steps=1)
    estimator.evaluate(finite_input_fn(16), hooks=[Calls(look, "on_test_batch_end")])
    list(estimator.predict(finite_input_fn(16), hooks=[Calls(look, "on_predict_batch_end")]))
    assert seen == [3, 3]  # hidden, output, global_step


@pytest.mark.parametrize("method", ["fit", "train_on_batch"])
def test_no_steps_are_made_between_those_of_a_training(tmp_path, method):
    x, y = examples(16)
    trains = Calls(lambda model, batch: getattr(model, method)(x, y))
    with pytest.raises(RuntimeError, match="train steps of this model are made by the running"):
        trained(tmp_path, None, [trains])


@pytest.mark.parametrize("method", ["evaluate", "test_on_batch"])
def test_no_steps_are_made_between_those_of_an_evaluation(tmp_path, method):
    """Their metrics would begin anew."""
    x, y = examples(16)
    evaluates = Calls(lambda model, batch: getattr(model, method)(x, y), "on_test_batch_end")
    with pytest.raises(RuntimeError, match="eval steps of this model are made by the running"):
        make_estimator(tmp_path).evaluate(finite_input_fn(16), hooks=[evaluates])


def test_without_a_callback_its_memory_is_freed_with_the_call(tmp_path, monkeypatch):
    """The test keeps all handles, so Python's garbage collector cannot have freed the memory."""
    monkeypatch.setattr(variables, "_LARGE", 0)
    handles, plain = [], VariableStore.close

    def close(store):
        handles.extend(store[name].handle for name in store)
        plain(store)

    monkeypatch.setattr(VariableStore, "close", close)
    estimator = make_estimator(tmp_path)
    estimator.train(train_input_fn, max_steps=2)
    estimator.evaluate(finite_input_fn(16))
    list(estimator.predict(finite_input_fn(16)))
    shapes = [tf.raw_ops.VariableShape(input=handle).numpy().tolist() for handle in handles]
    assert len(shapes) > 10
    assert not any(shapes)
