import shutil
import warnings

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from support.legacy_models import (
    examples,
    finite_input_fn,
    make_estimator,
    make_model_fn,
    train_input_fn,
)

from tpu_estimator_compat.engine.checkpoint import state
from tpu_estimator_compat.engine.checkpoint.state import latest

from .files import KINDS, damage


@pytest.fixture(scope="module")
def two_checkpoints(tmp_path_factory):
    model_dir = tmp_path_factory.mktemp("model")
    make_estimator(model_dir, save_checkpoints_steps=4).train(train_input_fn, steps=8)
    return model_dir


@pytest.fixture
def damaged(tmp_path, two_checkpoints):
    """`damaged(kind)` is an estimator whose newest checkpoint, that of step 8, is damaged so."""

    def of(kind):
        shutil.copytree(two_checkpoints, tmp_path, dirs_exist_ok=True)
        damage(tmp_path, 8, kind)
        return make_estimator(tmp_path, save_checkpoints_steps=4)

    return of


@pytest.mark.parametrize("kind", KINDS)
def test_damaged_checkpoints_fall_back_to_the_one_before(damaged, caplog, kind):
    estimator = damaged(kind)
    assert estimator.evaluate(train_input_fn, steps=1)["global_step"] == 4
    assert len(list(estimator.predict(finite_input_fn(20)))) == 20
    if kind != "no index":
        assert "model.ckpt-8 cannot be read" in caplog.text
        assert "Falling back to checkpoint" in caplog.text
    estimator.train(train_input_fn, steps=2)
    assert estimator.latest_checkpoint().endswith("model.ckpt-6")
    assert estimator.evaluate(train_input_fn, steps=1)["global_step"] == 6


def test_a_checkpoint_with_a_cut_global_step_is_passed_over(tmp_path):
    def model_fn(features, labels, mode, params):
        tf.get_variable("a_long_one", [1000])  # before the step, by name
        return make_model_fn()(features, labels, mode, params)

    estimator = make_estimator(tmp_path, model_fn, save_checkpoints_steps=4)
    estimator.train(train_input_fn, steps=8)
    damage(tmp_path, 8, "cut")
    estimator.train(train_input_fn, steps=2)
    assert estimator.latest_checkpoint().endswith("model.ckpt-6")


@pytest.mark.parametrize("kind", KINDS)
def test_under_keras_damaged_checkpoints_fall_back_too(damaged, caplog, kind):
    estimator = damaged(kind)
    x, y = examples(16)
    expected = [p["class"] for p in estimator.predict(finite_input_fn(16))]  # from step 4
    model = estimator.keras_model(train_input_fn)
    np.testing.assert_array_equal(model.predict(x, verbose=0)["class"], expected)
    model.fit(x, y, batch_size=16, epochs=2, verbose=0)
    assert estimator.latest_checkpoint().endswith("model.ckpt-6")
    if kind != "no index":
        assert "model.ckpt-8 cannot be read" in caplog.text
        assert "Falling back to checkpoint" in caplog.text


def test_a_live_model_takes_over_no_damaged_checkpoint(tmp_path):
    estimator = make_estimator(tmp_path, save_checkpoints_steps=4)
    model = estimator.keras_model(train_input_fn)
    x, y = examples(16)
    model.fit(x, y, batch_size=16, epochs=2, verbose=0)
    step = 2
    for kind in KINDS:
        own = model.get_weights()
        estimator.train(train_input_fn, max_steps=step + 2)
        damage(tmp_path, step + 2, kind)
        model.evaluate(x, y, batch_size=16, verbose=0)
        for found, expected in zip(model.get_weights(), own, strict=True):
            np.testing.assert_array_equal(found, expected, kind)
        estimator.train(train_input_fn, max_steps=step + 6)
        model.evaluate(x, y, batch_size=16, verbose=0)
        step += 6
        assert int(model_step(model)) == step, kind


def model_step(model):
    return next(v.numpy() for v in model.variables if v.path == "global_step")


def test_a_checkpoint_of_another_model_is_not_passed_over(tmp_path):
    make_estimator(tmp_path, save_checkpoints_steps=4).train(train_input_fn, steps=8)

    def more(features, labels, mode, params):
        spec = make_model_fn()(features, labels, mode, params)
        tf.get_variable("extra", [])
        return spec

    with pytest.raises(tf.errors.NotFoundError, match="Variable 'extra' is not in the checkpoint"):
        make_estimator(tmp_path, more).train(train_input_fn, steps=1)


def test_looking_for_checkpoints_warns_of_nothing(tmp_path, caplog):
    tf.io.gfile.makedirs(str(tmp_path))
    (tmp_path / "checkpoint").write_text('model_checkpoint_path: "model.ckpt-3"\n')
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert latest(str(tmp_path)) is None
        (tmp_path / "model.ckpt-3.index").write_text("")
        assert latest(str(tmp_path)) == str(tmp_path / "model.ckpt-3")
    assert "deprecated" not in caplog.text


def test_a_directory_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    state.check_writable(str(tmp_path / "new" / "deep"))
    state.check_writable("gs://bucket/anything")
    with pytest.raises(tf.errors.FailedPreconditionError, match="/file is not a directory"):
        state.check_writable(str(tmp_path / "file" / "model"))
    with pytest.raises(tf.errors.FailedPreconditionError, match="cannot write to model_dir="):
        make_estimator(tmp_path / "file" / "model").train(train_input_fn, steps=1)
    with pytest.raises(tf.errors.FailedPreconditionError, match="cannot write to model_dir="):
        make_estimator(tmp_path / "file" / "model").keras_model().fit(examples(), verbose=0)


def test_a_directory_without_permission_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr("os.access", lambda path, mode: False)  # who runs tests may write anywhere
    with pytest.raises(tf.errors.PermissionDeniedError, match="cannot write to model_dir="):
        state.check_writable(str(tmp_path))


def to_wrong_digit(path):
    path.write_text(path.read_text().replace("ckpt-8", "ckpt-7", 1))


def to_dangling_link(path):
    path.unlink()
    path.symlink_to("nowhere")


@pytest.mark.parametrize(
    ("change", "word"), [(to_wrong_digit, "is not there"), (to_dangling_link, "cannot be read")]
)
def test_a_state_file_that_leads_nowhere(tmp_path, two_checkpoints, caplog, change, word):
    """The checkpoints that it names besides, or those in the folder, are not begun anew."""
    shutil.copytree(two_checkpoints, tmp_path, dirs_exist_ok=True)
    change(tmp_path / "checkpoint")
    estimator = make_estimator(tmp_path, save_checkpoints_steps=4)
    assert estimator.evaluate(train_input_fn, steps=1)["global_step"] == 8
    assert word in caplog.text
    estimator.train(train_input_fn, steps=2)
    assert estimator.latest_checkpoint().endswith("model.ckpt-10")


def test_a_checkpoint_with_the_state_of_an_iterator_is_whole(tmp_path):
    with tf.Graph().as_default(), tf.Session() as session:
        iterator = tf.data.make_one_shot_iterator(tf.data.Dataset.range(3))
        saveable = tf.data.experimental.make_saveable_from_iterator(iterator)
        path = tf.train.Saver([saveable]).save(session, str(tmp_path / "model.ckpt"))
    assert state.is_whole(path)
