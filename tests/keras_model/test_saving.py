"""`export` of a Keras model: a SavedModel with the values of now; what is refused."""

import pathlib

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
    with pytest.raises(FileExistsError, match="something else than a SavedModel is there"):
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


def test_what_is_refused(tmp_path):
    model = make_estimator(tmp_path).keras_model()
    with pytest.raises(ValueError, match="no variables yet"):
        model.export(tmp_path / "served")
    with pytest.raises(ValueError, match="given: 'onnx'"):
        model.export(tmp_path / "served", format="onnx")
    with pytest.raises(TypeError, match=r"\['input_signature'\].*export_saved_model"):
        model.export(tmp_path / "served", input_signature=[])
    with pytest.raises(NotImplementedError, match=r"export\(path\) writes a SavedModel"):
        model.save(tmp_path / "model.keras")
    assert not pathlib.Path(tmp_path / "served").exists()
