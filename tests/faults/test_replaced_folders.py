"""An export in place of an older one: at any time one of the two is there, whole."""

import os

import pytest
import tensorflow as tf
from support.legacy_models import examples, make_estimator, train_input_fn

from tpu_estimator_compat.engine.export import directories

from .models import servable_model_fn


def export(path, text):
    """Stands for an export whose SavedModel is a file with a text."""
    with directories.replacing(str(path)) as base:
        os.makedirs(f"{base}/1600000000")
        with open(f"{base}/1600000000/saved_model.pb", "w") as file:
            file.write(text)
        os.makedirs(f"{base}/values")


def exported(path):
    return (path / "saved_model.pb").read_text()


def test_the_new_one_takes_the_place(tmp_path):
    for text in ("old", "new"):
        export(tmp_path / "served", text)
        assert exported(tmp_path / "served") == text
        assert os.listdir(tmp_path) == ["served"]


@pytest.mark.parametrize("end", ["", "/"])
def test_a_link_is_replaced_and_its_target_stays(tmp_path, end):
    export(tmp_path / "v1", "old")
    (tmp_path / "served").symlink_to(tmp_path / "v1")
    export(f"{tmp_path}/served{end}", "new")
    assert exported(tmp_path / "served") == "new"
    assert exported(tmp_path / "v1") == "old"
    assert sorted(os.listdir(tmp_path)) == ["served", "v1"]


def test_a_link_that_leads_nowhere_is_replaced(tmp_path):
    (tmp_path / "served").symlink_to(tmp_path / "gone")
    export(tmp_path / "served", "new")
    assert os.listdir(tmp_path) == ["served"]


@pytest.mark.parametrize("is_link", [False, True])
def test_what_the_user_keeps_in_it_stays(tmp_path, is_link):
    """As with Keras' own `export`."""
    export(tmp_path / "served", "old")
    mine = ["labels.txt", "notes/thesis.tex", "variables/mine.txt", "values"]
    for name in mine:
        path = tmp_path / "served" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("mine")
    (tmp_path / "served" / "there").symlink_to("labels.txt")
    (tmp_path / "served" / "nowhere").symlink_to("gone")
    before = {path.name: os.lstat(path) for path in (tmp_path / "served").iterdir()}
    if is_link:
        (tmp_path / "served").rename(tmp_path / "v1")
        (tmp_path / "served").symlink_to("v1")
    export(tmp_path / "served", "new")
    assert exported(tmp_path / "served") == "new"
    assert {n: (tmp_path / "served" / n).read_text() for n in mine} == dict.fromkeys(mine, "mine")
    assert os.readlink(tmp_path / "served" / "nowhere") == "gone"
    assert {path.name for path in (tmp_path / "served").iterdir()} == set(before)
    assert os.lstat(tmp_path / "served" / "labels.txt").st_mtime == before["labels.txt"].st_mtime
    assert sorted(os.listdir(tmp_path)) == ["served", "v1"][: 1 + is_link]


def test_folders_of_the_user_with_such_a_name_stay(tmp_path):
    for name in ("served.unfinished", "served.replaced"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "12").write_text("kept")
    export(tmp_path / "served", "old")
    export(tmp_path / "served", "new")
    assert sorted(os.listdir(tmp_path)) == ["served", "served.replaced", "served.unfinished"]
    assert (tmp_path / "served.unfinished" / "12").read_text() == "kept"


def failing(monkeypatch, fails):
    """Has those renames fail of whose targets `fails` is true."""
    rename = tf.io.gfile.rename

    def or_fail(source, target, overwrite=False):
        if fails(os.fspath(target)):
            raise tf.errors.PermissionDeniedError(None, None, "denied")
        rename(source, target, overwrite)

    monkeypatch.setattr(tf.io.gfile, "rename", or_fail)


def test_what_was_there_stays_where_it_cannot_be_moved(tmp_path, monkeypatch):
    export(tmp_path / "served", "old")
    failing(monkeypatch, lambda target: ".replaced-" in target)
    with pytest.raises(tf.errors.PermissionDeniedError):
        export(tmp_path / "served", "new")
    assert exported(tmp_path / "served") == "old"
    assert os.listdir(tmp_path) == ["served"]


def test_the_old_folder_returns_if_the_new_one_cannot_be_moved(tmp_path, monkeypatch):
    export(tmp_path / "served", "old")
    targets = []

    def once(target):
        targets.append(target)
        return target.endswith("/served") and sum(t.endswith("/served") for t in targets) == 1

    failing(monkeypatch, once)
    with pytest.raises(tf.errors.PermissionDeniedError):
        export(tmp_path / "served", "new")
    assert exported(tmp_path / "served") == "old"
    assert os.listdir(tmp_path) == ["served"]


def test_the_error_names_a_folder_that_cannot_be_moved_back(tmp_path, monkeypatch):
    export(tmp_path / "served", "old")
    failing(monkeypatch, lambda target: target.endswith("/served"))
    with pytest.raises(tf.errors.PermissionDeniedError) as failed:
        export(tmp_path / "served", "new")
    [left] = tmp_path.iterdir()
    assert exported(left) == "old"
    assert str(left) in failed.value.__notes__[0]


def test_a_keras_models_export_over_a_link(tmp_path):
    model = make_estimator(tmp_path / "model", servable_model_fn).keras_model(train_input_fn)
    x, y = examples(16)
    model.fit(x, y, batch_size=16, epochs=1, verbose=0)
    model.export(str(tmp_path / "v1"))
    before = sorted(path.name for path in (tmp_path / "v1").rglob("*"))
    (tmp_path / "served").symlink_to(tmp_path / "v1")
    model.export(str(tmp_path / "served"))
    for name in ("v1", "served"):
        assert sorted(path.name for path in (tmp_path / name).rglob("*")) == before
    assert not (tmp_path / "served").is_symlink()
