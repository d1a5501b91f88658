"""Nothing is deleted through a link, and nothing but files of names that this package gave."""

import os

import pytest
import tensorflow.compat.v1 as tf
from support.legacy_models import make_estimator, make_model_fn, train_input_fn

from tpu_estimator_compat.engine.files import cache_files
from tpu_estimator_compat.engine.state.sharded_variables import ShardedVariables
from tpu_estimator_compat.estimator import exporters


@pytest.fixture
def notes(tmp_path):
    """A folder of the user's, which has to stay."""
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "precious").write_text("kept")
    yield folder
    assert (folder / "precious").read_text() == "kept"


@pytest.fixture
def model_dir(tmp_path):
    (tmp_path / "model").mkdir()
    return tmp_path / "model"


def train(model_dir, steps=3, **config):
    make_estimator(model_dir, save_checkpoints_steps=100, **config).train(
        train_input_fn, steps=steps
    )


def test_links_with_names_of_unfinished_files(model_dir, notes):
    links = [f".model.ckpt-{step}.unfinished-0123abcd" for step in (0, 3, 7)]
    links += [".model.ckpt-3.input-00000-of-00001.unfinished-0123abcd"]
    for name in links:
        (model_dir / name).symlink_to(notes)
    train(model_dir, save_input_state=True)
    assert {n for n in os.listdir(model_dir) if n.startswith(".")} == set(links)


def test_folders_of_the_user_with_such_names(model_dir):
    names = (".my_notes.unfinished", ".notes-3.unfinished", ".model.ckpt-3.unfinished")
    for name in names:
        (model_dir / name).mkdir()
        (model_dir / name / "text").write_text("kept")
    train(model_dir)
    assert [(model_dir / name / "text").read_text() for name in names] == ["kept"] * 3


def test_links_in_what_a_killed_save_left(model_dir, notes):
    leftover = model_dir / ".model.ckpt-7.unfinished-0123abcd"
    leftover.mkdir()
    (leftover / "model.ckpt-7_temp").symlink_to(notes)
    train(model_dir)
    assert not leftover.exists()


def test_links_with_names_of_temporary_files(model_dir, notes):
    names = {f"checkpoint.tmp{'0' * 32}", f"model.ckpt-3.meta.tmp{'0' * 32}"}
    for name in names:
        (model_dir / name).symlink_to(notes / "precious")
    train(model_dir)
    assert names <= set(os.listdir(model_dir))


@pytest.mark.parametrize("save_input_state", [False, True])
def test_input_positions_that_are_none_of_ours(model_dir, save_input_state):
    names = (
        "mine.input-00000-of-00001.index",
        "train-2019.input-00003-of-00010.index",
        "queries-7.input-00000-of-00001.data-00000-of-00001",
        "model.ckpt-9.input-00000-of-00002.index",
    )
    for name in names:
        (model_dir / name).write_text("kept")
    train(model_dir, save_input_state=save_input_state)
    assert [(model_dir / name).read_text() for name in names] == ["kept"] * len(names)


def test_shards_beside_a_folder_of_the_user(tmp_path, notes):
    (tmp_path / "model.ckpt-3.shards").symlink_to(notes)
    variables = object.__new__(ShardedVariables)
    variables.names = ["table"]
    with (
        pytest.raises(KeyError, match="the disk is full"),
        variables.completed(str(tmp_path / "model.ckpt-3"), ["table"]),
    ):
        raise KeyError("the disk is full")
    assert sorted(os.listdir(tmp_path)) == ["model.ckpt-3.shards", "notes"]


def test_old_exports_that_are_links(tmp_path, notes):
    exports = tmp_path / "exports"
    for name in ("1600000001", "1600000002"):
        (exports / name).mkdir(parents=True)
    (exports / "1600000000").symlink_to(notes)
    (exports / "1500000000").write_text("a file of the user's")
    (exports / "1600000001" / "link").symlink_to(notes)
    exporters.delete_old(str(exports), 1)
    assert sorted(os.listdir(exports)) == ["1500000000", "1600000000", "1600000002"]


def test_a_cache_folder_that_is_a_link_is_not_trimmed(tmp_path, notes, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("TPU_ESTIMATOR_COMPAT_CACHE_GB", "0")
    cache_files.root().mkdir()
    (cache_files.root() / "jax").symlink_to(notes)
    cache_files.trim()


def test_checkpoints_of_another_folder_are_not_deleted(tmp_path):
    """A copied file `checkpoint` names them, where a saver wrote whole paths."""

    def with_saver(features, labels, mode, params):
        spec = make_model_fn()(features, labels, mode, params)
        saver = tf.train.Saver(max_to_keep=1, sharded=True)
        return spec._replace(scaffold_fn=lambda: tf.train.Scaffold(saver=saver))

    first = make_estimator(tmp_path / "first", with_saver, save_checkpoints_steps=100)
    first.train(train_input_fn, steps=2)
    (tmp_path / "second").mkdir()
    (tmp_path / "second" / "checkpoint").write_text((tmp_path / "first/checkpoint").read_text())
    before = sorted(os.listdir(tmp_path / "first"))
    make_estimator(tmp_path / "second", with_saver, save_checkpoints_steps=100).train(
        train_input_fn, max_steps=4
    )
    assert sorted(os.listdir(tmp_path / "first")) == before
    assert "model.ckpt-4.index" in os.listdir(tmp_path / "second")
    assert "model.ckpt-2.index" not in os.listdir(tmp_path / "second")
