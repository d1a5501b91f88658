import keras
import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from support.legacy_models import (
    Calls,
    Fetching,
    finite_input_fn,
    last_loss,
    make_estimator,
    train_input_fn,
)

from tpu_estimator_compat import estimator as namespace

STOPS = {"train": "stop_training", "test": "stop_evaluating", "predict": "stop_predicting"}


class Notes(keras.callbacks.Callback):
    """Notes its calls with their arguments; stops after so many batches."""

    def __init__(self, stop_after=None):
        super().__init__()
        self.calls = []
        self.stop_after = stop_after

    def names(self):
        return [name for name, *_ in self.calls]

    def batches(self, event):
        return [arguments[0] for name, *arguments in self.calls if name == event]


def noting(event):
    def note(self, *arguments, **logs):
        self.calls.append((event, *arguments, *logs.values()))
        if event.endswith("batch_end") and arguments[0] + 1 == self.stop_after:
            setattr(self.model, STOPS[event.split("_")[1]], True)

    return note


for name in ("train_begin", "epoch_begin", "train_batch_begin", "epoch_end", "test_begin"):
    setattr(Notes, f"on_{name}", noting(f"on_{name}"))
for name in STOPS:
    setattr(Notes, f"on_{name}_batch_end", noting(f"on_{name}_batch_end"))
    setattr(Notes, f"on_{name}_end", noting(f"on_{name}_end"))


def test_calls_in_training_are_those_of_one_epoch(tmp_path):
    notes, expected = Notes(), Fetching(last_loss)
    make_estimator(tmp_path).train(train_input_fn, hooks=[notes, expected], max_steps=3)
    batch = ["on_train_batch_begin", "on_train_batch_end"]
    begin, end = ["on_train_begin", "on_epoch_begin"], ["on_epoch_end", "on_train_end"]
    assert notes.names() == [*begin, *3 * batch, *end]
    assert notes.batches("on_train_batch_begin") == [0, 1, 2]
    assert notes.batches("on_train_batch_end") == [0, 1, 2]
    losses = [call[2]["loss"] for call in notes.calls if call[0] == "on_train_batch_end"]
    assert losses == expected.seen
    assert len(losses) == 3
    assert notes.calls[-1][1] == {"loss": losses[-1]}


@pytest.mark.parametrize("replicas", [1, 2])
def test_on_tpu_batches_are_loops(tmp_path, strategy, replicas):
    notes = Notes()
    estimator = make_estimator(tmp_path, use_tpu=True, loop=4, train_distribute=strategy(replicas))
    estimator.train(train_input_fn, hooks=[notes], max_steps=10)
    assert notes.batches("on_train_batch_begin") == [0, 4, 8]
    assert notes.batches("on_train_batch_end") == [3, 7, 9]


def test_stop_training_stops(tmp_path):
    notes = Notes(stop_after=4)
    estimator = make_estimator(tmp_path)
    estimator.train(train_input_fn, hooks=[notes], max_steps=100)
    assert estimator.get_variable_value("global_step") == 4
    assert notes.names()[-1] == "on_train_end"
    results = estimator.evaluate(train_input_fn, steps=50, hooks=[notes])
    assert notes.batches("on_test_batch_end") == [0, 1, 2, 3]
    assert notes.calls[-1] == ("on_test_end", results)
    assert len(list(estimator.predict(finite_input_fn(100), hooks=[notes]))) == 4 * 16
    assert notes.batches("on_predict_batch_end") == [0, 1, 2, 3]
    assert notes.names()[-1] == "on_predict_end"


def test_evaluation_and_prediction_give_their_logs(tmp_path):
    notes = Notes()
    estimator = make_estimator(tmp_path)
    results = estimator.evaluate(finite_input_fn(32), hooks=[notes])
    losses = [call[2]["loss"] for call in notes.calls if call[0] == "on_test_batch_end"]
    assert np.mean(losses) == pytest.approx(results["loss"])
    predictions = list(estimator.predict(finite_input_fn(32), hooks=[notes]))
    # Keras flattens what is nested in logs: a dict of outputs comes by the names in it.
    outputs = [call[2]["class"] for call in notes.calls if call[0] == "on_predict_batch_end"]
    classes = np.concatenate(outputs)
    assert classes.tolist() == [p["class"] for p in predictions]


def test_a_callback_without_batch_methods_costs_no_turns(tmp_path):
    class Quiet(keras.callbacks.Callback):
        def on_train_end(self, logs=None):
            ends.append(logs)

    class Every(keras.callbacks.Callback):
        def steps_until_control(self, global_step):
            return 100 - global_step % 100

        def on_train_batch_end(self, batch, logs=None):
            batches.append(batch)

    ends, batches, counts = [], [], {}
    for name, callback in (("none", None), ("quiet", Quiet()), ("every", Every())):
        turns = Calls()
        hooks = [turns, *([callback] if callback else [])]
        estimator = make_estimator(tmp_path / name, log_step_count_steps=None)
        estimator.train(train_input_fn, hooks=hooks, max_steps=600)
        counts[name] = turns.count
    assert len(ends) == 1
    assert counts["quiet"] < 30
    assert {99, 199, 299, 399, 499, 599} <= set(batches)
    assert counts["every"] < 50


def test_callbacks_of_keras(tmp_path):
    log = tmp_path / "log.csv"
    history = keras.callbacks.History()
    seen = []
    callbacks = [
        history,
        keras.callbacks.CSVLogger(str(log)),
        keras.callbacks.TerminateOnNaN(),
        keras.callbacks.LambdaCallback(on_train_batch_end=lambda batch, logs: seen.append(batch)),
        keras.callbacks.EarlyStopping("loss"),
    ]
    make_estimator(tmp_path / "model").train(train_input_fn, hooks=callbacks, max_steps=5)
    assert seen == [0, 1, 2, 3, 4]
    assert list(history.history) == ["loss"]
    header, row = log.read_text().splitlines()
    assert header.startswith("epoch,loss")
    assert float(row.split(",")[1]) == pytest.approx(history.history["loss"][0])


def test_the_model_gives_and_takes_weights(tmp_path):
    class Undoes(keras.callbacks.Callback):
        def on_train_begin(self, logs=None):
            self.first = self.model.get_weights()

        def on_train_batch_end(self, batch, logs=None):
            if batch == 2:
                self.model.set_weights(self.first)

    estimator = make_estimator(tmp_path)
    estimator.train(train_input_fn, hooks=[Undoes()], steps=3)
    start = tf.train.load_variable(str(tmp_path / "model.ckpt-0"), "hidden")
    assert estimator.get_variable_value("global_step") == 0
    np.testing.assert_array_equal(estimator.get_variable_value("hidden"), start)


def test_train_and_evaluate_takes_them(tmp_path):
    trained, evaluated = Notes(), Notes()
    namespace.train_and_evaluate(
        make_estimator(tmp_path, save_checkpoints_steps=5),
        namespace.TrainSpec(train_input_fn, max_steps=10, hooks=[trained]),
        namespace.EvalSpec(train_input_fn, steps=2, hooks=[evaluated], throttle_secs=0),
    )
    assert trained.names().count("on_train_begin") == 1
    assert evaluated.names().count("on_test_end") == 2
