import dataclasses

import keras
import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from support.legacy_models import examples, make_estimator, make_model_fn, train_input_fn

from tpu_estimator_compat.keras_model import variable_table
from tpu_estimator_compat.keras_model.callbacks import HostCallCallback

from .fitting import dataset


@dataclasses.dataclass
class Variable:
    """What a table needs of a variable."""

    path: str
    shape: tuple[int, ...]
    trainable: bool = True


ENCODER = [
    Variable("encoder/layer_0/kernel", (64, 32)),
    Variable("global_step", (), trainable=False),
    Variable("encoder/layer_0/kernel/Adam", (64, 32), trainable=False),
    Variable("encoder/layer_1/kernel", (1, 1000)),
    Variable("encoder/layer_0/bias", (32,)),
]


def test_scopes_list_their_untrained_variables_last():
    assert variable_table.as_text("encoder", ENCODER).splitlines() == [
        'Model: "encoder"',
        "-" * 42,
        "Variable                 Shape      Params",
        "-" * 42,
        "encoder/layer_0/                     2,080",
        "  kernel                 (64, 32)    2,048",
        "  bias                   (32,)          32",
        "encoder/layer_1/                     1,000",
        "  kernel                 (1, 1000)   1,000",
        "global_step              ()              1",
        "encoder/layer_0/kernel/              2,048",
        "  Adam                   (64, 32)    2,048",
        "-" * 42,
        "Total params: 5,129",
        "Trainable params: 3,080",
        "Non-trainable params: 2,049",
    ]


def test_width_and_trainable():
    lines = variable_table.as_text("e", ENCODER[:2], width=60, show_trainable=True).splitlines()
    assert lines[1] == "-" * 60
    assert [line.split()[-1] for line in lines[4:7]] == ["2,048", "yes", "no"]


def test_a_model_shows_what_its_model_fn_made(tmp_path, capsys):
    model = make_estimator(tmp_path).keras_model(train_input_fn)
    model.summary()
    told = capsys.readouterr().out
    for variable in model.variables:
        *scope, name = variable.path.split("/")
        assert name in told
        assert "/".join([*scope, ""]) in told
        assert str(tuple(variable.shape)) in told
    assert f"Total params: {model.count_params():,}" in told
    lines = []
    model.summary(print_fn=lines.append)
    assert "\n".join(lines) + "\n" == told


def test_a_model_without_variables_says_how_to_get_them(tmp_path, capsys):
    model = make_estimator(tmp_path / "model").keras_model()
    model.summary()
    assert "It has no variables yet. Make it with keras_model(input_fn)" in capsys.readouterr().out
    with pytest.raises(ValueError, match="This model has no variables yet"):
        model.save_weights(str(tmp_path / "w.weights.h5"))
    assert not (tmp_path / "w.weights.h5").exists()


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


def counting():
    """A host call that counts its calls in a variable, after a while."""

    def host_call(loss):
        calls = tf.get_variable("calls", [], tf.int64, tf.zeros_initializer(), trainable=False)
        with tf.control_dependencies([loss]):
            return [calls.assign_add(1)]

    return host_call, [tf.reshape(tf.train.get_global_step(), [1])]


def test_a_users_callback_sees_what_host_calls_did(tmp_path):
    counts = []

    class Looks(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            counts.append(int({v.path: v for v in self.model.variables}["calls"].numpy()))

    model_fn = make_model_fn(host_call=counting)
    model = make_estimator(tmp_path, model_fn, use_tpu=True, loop=2).keras_model()
    given = keras.callbacks.CallbackList([Looks()], add_history=True, model=model)
    model.fit(dataset(), epochs=1, callbacks=given, verbose=0)
    assert counts == [2, 4]
    kinds = [type(callback) for callback in given.callbacks]
    assert kinds.index(HostCallCallback) < kinds.index(Looks)


def test_single_batches_make_theirs(tmp_path):
    model_fn = make_model_fn(host_call=counting)
    model = make_estimator(tmp_path, model_fn, use_tpu=True).keras_model()
    x, y = examples(16)
    model.train_on_batch(x, y)
    assert int({v.path: v for v in model.variables}["calls"].numpy()) == 1
