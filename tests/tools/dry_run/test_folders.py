import os

import pytest

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


def test_neighbours_keep_their_places(folders):
    own = folders.own("model")
    assert folders.own("model_export") == f"{own}_export"
    assert folders.own("model/eval") == os.path.join(own, "eval")
    assert folders.own(f"{own}_more") == f"{own}_more"
    assert folders.shown(os.path.join(own, "model.ckpt-2")) == "model/model.ckpt-2"


def test_files_are_read_where_they_are_and_written_to_the_stand_in(folders):
    own = folders.own("model")
    os.mkdir("model")
    open("model/old", "w").close()
    open(os.path.join(own, "new"), "w").close()
    assert folders.to_read("model/old") == "model/old"
    assert folders.to_read("model/new") == os.path.join(own, "new")
    assert folders.to_read("model/n*") == os.path.join(own, "n*")
    assert folders.to_write("model/old") == os.path.join(own, "old")
    assert folders.to_write("models/old") == "models/old"


def test_a_folder_is_removed_by_name_alone(folders):
    os.mkdir("model")
    open("model/old", "w").close()
    assert folders.remove_tree("model")
    assert os.path.exists("model/old")
    assert folders.to_read("model/old") != "model/old"
    own = folders.own("model")
    assert not folders.remove_tree(own)


def test_a_file_is_removed_by_name_where_only_the_user_has_it(folders):
    own = folders.own("model")
    os.mkdir("model")
    open("model/old", "w").close()
    open(os.path.join(own, "new"), "w").close()
    assert folders.remove_file("model/old")
    assert os.path.exists("model/old")
    assert folders.to_read("model/old") != "model/old"
    assert not folders.remove_file("model/new")
    assert not folders.remove_file("elsewhere")


def test_the_working_directory_may_be_a_model_dir(folders):
    own = folders.own(".")
    assert folders.to_write("model.ckpt-1") == os.path.join(own, "model.ckpt-1")
    assert folders.to_write(own) == own
