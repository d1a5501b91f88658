"""Paths are never patterns: any folder does, and its neighbours are left alone."""

import os
import shutil

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from support.legacy_models import (
    examples,
    finite_input_fn,
    make_estimator,
    train_input_fn,
)

from tpu_estimator_compat import estimator as tf_estimator
from tpu_estimator_compat.engine.checkpoint import state, training_lock
from tpu_estimator_compat.estimator import early_stopping
from tpu_estimator_compat.old_names.contrib import predictor
from tpu_estimator_compat.tools import weight_map
from tpu_estimator_compat.tools.compare import evidence

from .models import servable_model_fn, serving_input_receiver

NAMES = [
    "lr[0.1]",
    "a\\b",
    *(pytest.param(name, marks=pytest.mark.slow) for name in ("a*", "a?b", "[!x]", "a]b[")),
]
NEIGHBOUR = {"lr[0.1]": "lr0", "a*": "ab", "a?b": "aXb", "[!x]": "y"}
"""Folders that the names match as patterns."""


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A folder with a plain name after the same trainings."""
    folder = tmp_path_factory.mktemp("whole")
    train_twice(folder)
    return folder


def train_twice(folder, **config):
    for steps in (2, 4):
        estimator = make_estimator(
            folder, save_checkpoints_steps=1, keep_checkpoint_max=2, **config
        )
        estimator.train(train_input_fn, max_steps=steps)
    return estimator


def test_a_local_path_with_the_sign_of_a_scheme(tmp_path, whole, monkeypatch, caplog):
    """It is local for the disk, links and locks, too."""
    synced = []
    fsync = os.fsync
    monkeypatch.setattr(os, "fsync", lambda d: (synced.append(d), fsync(d))[1])
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "precious").write_text("kept")
    link = tmp_path / "gs:" / "b" / ".model.ckpt-9.unfinished-0123abcd"
    link.parent.mkdir(parents=True)
    link.symlink_to(tmp_path / "notes")
    folder = f"{tmp_path}/gs://b"
    with training_lock.training_in(folder):
        train_twice(folder)
    assert "Another training writes to model_dir" in caplog.text
    assert synced
    assert (tmp_path / "notes" / "precious").read_text() == "kept"
    checkpoint = "model.ckpt-4.data-00000-of-00001"
    assert (link.parent / checkpoint).read_bytes() == (whole / checkpoint).read_bytes()


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


@pytest.mark.parametrize("name", NAMES)
def test_training_goes_on_and_the_neighbour_is_left_alone(tmp_path, whole, name):
    folder = tmp_path / name
    neighbour = tmp_path / NEIGHBOUR.get(name, "neighbour")
    neighbour.mkdir()
    for step in range(5):
        for end in ("index", "meta", "data-00000-of-00001"):
            (neighbour / f"model.ckpt-{step}.{end}").write_text("kept")
    before = contents(neighbour)
    estimator = train_twice(folder)
    assert contents(neighbour) == before
    expected = {n for n in os.listdir(whole) if not n.startswith("events")}
    assert {n for n in os.listdir(folder) if not n.startswith("events")} == expected
    assert estimator.get_variable_value("global_step") == 4
    for name in estimator.get_variable_names():
        np.testing.assert_array_equal(
            estimator.get_variable_value(name), make_estimator(whole).get_variable_value(name)
        )


@pytest.mark.slow
def test_everything_else_reads_such_a_folder(tmp_path, caplog):
    folder = tmp_path / "lr[0.1]"
    estimator = train_twice(folder, save_input_state=True)
    assert "starts anew" not in caplog.text  # the input, whose position is beside the checkpoint
    found = estimator.evaluate(train_input_fn, steps=1)
    assert found["global_step"] == 4
    path = str(folder / "model.ckpt-4")
    assert estimator.evaluate(train_input_fn, steps=1, checkpoint_path=path) == found
    assert len(list(estimator.predict(finite_input_fn(20)))) == 20
    assert list(early_stopping.read_eval_metrics(estimator.eval_dir())) == [4]
    for start in (str(folder), path):
        warm = make_estimator(tmp_path / "w[1]", warm_start_from=start)
        assert warm.evaluate(train_input_fn, steps=1)["loss"] == found["loss"]


def test_a_keras_model_in_such_a_folder(tmp_path):
    estimator = train_twice(tmp_path / "lr[0.1]")
    model = estimator.keras_model(train_input_fn)
    assert {v.path: v.numpy() for v in model.variables}["global_step"] == 4
    x, y = examples(16)
    model.fit(x, y, batch_size=16, epochs=1, verbose=0)
    assert estimator.latest_checkpoint() == str(tmp_path / "lr[0.1]" / "model.ckpt-5")


def test_exports_into_such_a_folder(tmp_path):
    estimator = make_estimator(tmp_path / "lr[0.1]", servable_model_fn)
    estimator.train(train_input_fn, steps=1)
    folder = estimator.export_saved_model(str(tmp_path / "ex[1]"), serving_input_receiver).decode()
    assert sorted(os.listdir(folder)) == ["saved_model.pb", "variables"]
    model = estimator.keras_model(train_input_fn)
    for _ in range(2):
        model.export(str(tmp_path / "served[1]"))
    assert sorted(os.listdir(tmp_path)) == ["ex[1]", "lr[0.1]", "served[1]"]


def test_tools_read_such_a_folder(tmp_path):
    estimator = make_estimator(tmp_path / "lr[0.1]", servable_model_fn)
    estimator.train(train_input_fn, steps=1)
    folder = estimator.export_saved_model(str(tmp_path / "ex[1]"), serving_input_receiver).decode()
    values = weight_map.read_variables(estimator.model_dir)
    assert values["global_step"] == 1
    assert set(weight_map.read_variables(folder)) == {"global_step", "hidden", "output"}
    assert set(evidence.CheckpointVariables(estimator.latest_checkpoint())) == set(values)
    served = predictor.from_saved_model(folder)
    assert served({"input": examples(3)[0]})["class"].shape == (3,)


def test_a_saver_hook_of_the_user_leaves_the_neighbour_alone(tmp_path):
    folder, neighbour = tmp_path / "[!x]", tmp_path / "y"
    neighbour.mkdir()
    (neighbour / "model.ckpt-0.data-00000-of-00001").write_text("kept")
    hook = tf.train.CheckpointSaverHook(str(folder), save_steps=1)
    estimator = make_estimator(folder, keep_checkpoint_max=1)
    estimator.train(train_input_fn, steps=2, hooks=[hook])
    assert os.listdir(neighbour) == ["model.ckpt-0.data-00000-of-00001"]
    assert "model.ckpt-0.data-00000-of-00001" not in os.listdir(folder)


def test_old_names_in_the_first_format_are_patterns_at_their_end(tmp_path):
    (tmp_path / "a[1]").mkdir()
    (tmp_path / "a[1]" / "model.ckpt-3-00000-of-00001").write_text("")
    assert state.exists(str(tmp_path / "a[1]" / "model.ckpt-3-?????-of-00001"))
    assert not state.exists(str(tmp_path / "a[1]" / "model.ckpt-4-?????-of-00001"))


def test_a_folder_that_is_made_anew_is_read_anew(tmp_path):
    folder = tmp_path / "a[1]"
    for step in (1, 2):
        make_estimator(folder, save_checkpoints_steps=100).train(train_input_fn, steps=step)
        assert make_estimator(folder).get_variable_value("global_step") == step
        shutil.rmtree(folder)


def test_results_of_evaluations_for_the_best_exporter(tmp_path):
    estimator = train_twice(tmp_path / "lr[0.1]")
    estimator.evaluate(train_input_fn, steps=1)
    best = tf_estimator.BestExporter(serving_input_receiver_fn=serving_input_receiver)
    best._has_exported = True
    assert best.export(estimator, str(tmp_path), None, {"loss": 1e9}, False) is None


@pytest.mark.parametrize("before", ["missing", "link"])
def test_a_folder_beyond_one_that_is_left_again(tmp_path, before):
    """TensorFlow takes `a/../b` for `b`, whatever `a` is."""
    (tmp_path / "elsewhere" / "deep").mkdir(parents=True)
    (tmp_path / "link").symlink_to("elsewhere/deep")
    train_twice(os.path.join(tmp_path, before, "..", "out"))
    assert (tmp_path / "out" / "model.ckpt-4.index").exists()
    assert os.listdir(tmp_path / "elsewhere") == ["deep"]
