import h5py
import numpy as np
import pytest
import tensorflow as tf
from support.legacy_models import examples, logits_of, make_estimator, make_model_fn, train_input_fn

import tpu_estimator_compat as tpu
from tpu_estimator_compat.estimator.export import TensorServingInputReceiver

from .fitting import dataset


def model_fn(features, labels, mode, params):
    if mode != tpu.ModeKeys.PREDICT:
        return make_model_fn()(features, labels, mode, params)
    logits = logits_of(features)
    predictions = {"class": tf.argmax(logits, axis=-1), "logits": logits}
    return tpu.TPUEstimatorSpec(mode, predictions=predictions)


def loaded(path):
    """Its signatures; beside the graph for CPUs there is one for TPUs."""
    return tf.saved_model.load(str(path), tags=["serve"]).signatures


def served(path, rows):
    return loaded(path)["serving_default"](tf.constant(rows))


def test_an_export_answers_with_the_values_of_now(tmp_path):
    estimator = make_estimator(tmp_path / "model", model_fn, use_tpu=True, loop=3)
    model = estimator.keras_model()
    model.fit(dataset(), verbose=0)
    model.trainable_variables[0].assign(np.ones([4, 8], np.float32))
    rows, _ = examples(3)
    model.export(tmp_path / "served")
    expected = model.predict(rows, verbose=0)
    answer = served(tmp_path / "served", rows)
    assert set(answer) == set(expected)
    for name, value in expected.items():
        np.testing.assert_allclose(answer[name], value, rtol=1e-6)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["model", "served"]

    def receiver_fn():
        fed = tf.compat.v1.placeholder(tf.float32, [None, 4])
        return TensorServingInputReceiver(fed, fed)

    path = estimator.export_saved_model(tmp_path / "base", receiver_fn).decode()
    ours, theirs = (
        {
            name: (each.structured_input_signature, each.structured_outputs)
            for name, each in loaded(p).items()
        }
        for p in (tmp_path / "served", path)
    )
    assert str(ours) == str(theirs)


def test_an_export_takes_the_place_of_one_and_of_nothing_else(tmp_path):
    model = make_estimator(tmp_path / "model", model_fn).keras_model(train_input_fn)
    model.export(f"{tmp_path}/served/")
    model.trainable_variables[1].assign(np.zeros([8, 3], np.float32))
    model.export(tmp_path / "served")
    assert not served(tmp_path / "served", np.ones([1, 4], np.float32))["class"].numpy().any()
    (tmp_path / "notes").mkdir()
    note = tmp_path / "notes" / "note.txt"
    note.write_text("mine")
    with pytest.raises(FileExistsError, match="something other than a SavedModel is there"):
        model.export(tmp_path / "notes")
    assert note.read_text() == "mine"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["notes", "served"]


def test_what_fails_leaves_nothing(tmp_path):
    def failing(features, labels, mode, params):
        if mode == "infer":
            raise RuntimeError("not for serving")
        return make_model_fn()(features, labels, mode, params)

    model = make_estimator(tmp_path / "model", failing).keras_model(train_input_fn)
    with pytest.raises(RuntimeError, match="not for serving"):
        model.export(tmp_path / "served")
    assert not list(tmp_path.iterdir())


def test_a_signature_of_ones_own_is_refused(tmp_path):
    model = make_estimator(tmp_path).keras_model(train_input_fn)
    with pytest.raises(TypeError, match=r"\['input_signature'\].*export_saved_model"):
        model.export(tmp_path / "served", input_signature=[])
    assert not (tmp_path / "served").exists()


@pytest.fixture(params=[1, 2])
def make(request, tmp_path, strategy):
    """`make(name)` is an estimator on one or on two replicas."""

    def of(name):
        return make_estimator(
            tmp_path / name, use_tpu=True, train_distribute=strategy(request.param)
        )

    return of


def test_there_and_back(make, tmp_path):
    source = make("source")
    source.train(train_input_fn, steps=5)
    file = str(tmp_path / "all.weights.h5")
    source.keras_model(train_input_fn).save_weights(file)
    with h5py.File(file) as opened:
        saved = {key.replace(":", "/"): np.array(value) for key, value in opened["vars"].items()}
    assert {"hidden", "output", "hidden/Adam", "global_step"} < set(saved)
    for name, value in saved.items():
        np.testing.assert_array_equal(value, source.get_variable_value(name))

    target = make("target")
    model = target.keras_model(train_input_fn)
    model.load_weights(file)
    for variable in model.variables:
        if variable.path in saved:
            np.testing.assert_array_equal(variable.numpy(), saved[variable.path])
    model.fit(dataset(), epochs=1, verbose=0)
    source.train(train_input_fn, steps=4)
    assert target.latest_checkpoint().endswith("model.ckpt-9")
    for name in ("hidden", "output/Adam_1"):
        np.testing.assert_allclose(
            target.get_variable_value(name), source.get_variable_value(name), rtol=1e-5, atol=1e-7
        )


def test_weights_of_predictions_alone(make, tmp_path):
    source = make("source")
    source.train(train_input_fn, steps=5)
    x, _ = examples(8)
    model = source.keras_model()
    expected = model.predict(x, verbose=0)
    small = str(tmp_path / "small.weights.h5")
    model.save_weights(small)
    whole = make("whole").keras_model(train_input_fn)
    whole.load_weights(small)  # Its slots stay as they are.
    np.testing.assert_array_equal(whole.predict(x, verbose=0)["class"], expected["class"])
    assert whole.evaluate(dataset(), verbose=0)
    big = str(tmp_path / "big.weights.h5")
    whole.save_weights(big)
    model.load_weights(big)  # The file's slots are not needed.


def test_a_file_that_does_not_fit(make, tmp_path):
    model = make("source").keras_model(train_input_fn)
    file = str(tmp_path / "a.weights.h5")
    model.save_weights(file)
    with pytest.raises(ValueError, match="This model has no variables yet"):
        make("empty").keras_model().load_weights(file)
    with h5py.File(file, "a") as opened:
        del opened["vars/output"]
    with pytest.raises(ValueError, match=r"no values for \['output'\]"):
        model.load_weights(file)
    with h5py.File(file, "a") as opened:
        opened["vars/output"] = np.zeros([2, 2], np.float32)
    with pytest.raises(ValueError, match="shape"):
        model.load_weights(file)
