import os

import pytest
import tensorflow as tf

from tpu_estimator_compat.engine.checkpoint import state
from tpu_estimator_compat.tools.dry_run.folders import Folders


@pytest.fixture
def folders(tmp_path, monkeypatch) -> Folders:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    (tmp_path / "root").mkdir()
    return Folders(tmp_path / "root")


def test_a_folder_has_one_stand_in_by_all_its_names(folders, tmp_path):
    own = folders.own("model")
    os.symlink("model", "link")
    same = ("./model/", str(tmp_path / "here" / "model"), "link", "../here/model")
    assert {folders.own(name).rstrip("/") for name in same} == {own}
    assert folders.own(own) == own
    assert os.path.isdir(own)
    assert not os.path.exists("model")


@pytest.mark.parametrize("sharded", [False, True])
def test_a_checkpoint_of_the_first_format_is_copied(folders, sharded):
    os.mkdir("model")
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        tf.compat.v1.get_variable("w", initializer=3.0)
        session.run(tf.compat.v1.global_variables_initializer())
        form = tf.compat.v1.train.SaverDef.V1
        saver = tf.compat.v1.train.Saver(write_version=form, sharded=sharded)
        path = saver.save(session, "model/model.ckpt", global_step=2)
    own = folders.own("model")
    assert tf.train.load_variable(state.latest(own), "w") == 3.0
    assert folders.of_checkpoint(path) == state.latest(own)


def test_neighbours_keep_their_places(folders):
    own = folders.own("model")
    assert folders.own("model_export") == f"{own}_export"
    assert folders.own("model/eval") == os.path.join(own, "eval")
    assert folders.own(f"{own}_more") == f"{own}_more"
    assert folders.shown(os.path.join(own, "model.ckpt-2")) == "model/model.ckpt-2"


def test_a_path_in_a_known_folder_is_the_dry_runs(folders):
    own = folders.own("model")
    open(os.path.join(own, "new.index"), "w").close()
    assert folders.within("model/old") == os.path.join(own, "old")
    assert folders.within("models/old") == "models/old"
    assert folders.of_checkpoint("model/new") == os.path.join(own, "new")
    assert folders.of_checkpoint("model/old") == "model/old"


def test_the_working_directory_may_be_a_model_dir(folders):
    own = folders.own(".")
    assert folders.within("model.ckpt-1") == os.path.join(own, "model.ckpt-1")
    assert folders.within(own) == own
