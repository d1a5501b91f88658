"""Golden files: names, content, damage, writing."""

import os
import pathlib
import re

import numpy as np
import pytest

from tpu_estimator_compat.testing.golden import files, values
from tpu_estimator_compat.testing.golden.files import file_of


def sections():
    value = {
        "loss": 0.5,
        "text": "a = b [c] #",
        "p": np.ones([2, 2], np.float32),
        "n": None,
        "nan": np.float32("inf"),
    }
    large = {"large": np.arange(300), "words": np.array(["a b"] * 300)}
    return {name: values.leaves(each) for name, each in (("", value), ("after", large))}


def test_what_is_written_is_read(tmp_path):
    path = tmp_path / "golden" / "test_a" / "test.json"
    files.write(path, sections())
    assert files.read(path) == sections()
    assert os.listdir(path.parent) == ["test.json"]
    lines = path.read_text().splitlines()
    assert '  "loss": ["float", 0.5],' in lines
    assert ' "after": {' in lines


def test_file_that_is_not_there_has_no_sections(tmp_path):
    assert files.read(tmp_path / "a.json") == {}


def test_failed_write_leaves_the_file(tmp_path, monkeypatch):
    path = tmp_path / "a.json"
    files.write(path, sections())
    before = path.read_bytes()

    def full(*unused):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="No space"):
        files.write(path, {"": values.leaves(1)})
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["a.json"]


def test_file_behind_a_link_is_written(tmp_path):
    (tmp_path / "real.json").write_text("")
    (tmp_path / "link.json").symlink_to("real.json")
    files.write(tmp_path / "link.json", sections())
    assert (tmp_path / "link.json").is_symlink()
    assert files.read(tmp_path / "real.json") == sections()


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b'{\n<<<<<<< HEAD\n"": {}}', "line 2"),
        (b'{"": {"n": ["int", 1],\n"n": ["int", 2]}}', "twice: ['n', 'n']"),
        (b"\xff\xfe", "'utf-8' codec"),
    ],
)
def test_damage_is_named(tmp_path, content, fault):
    path = tmp_path / "a.json"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=re.escape(fault)) as error:
        files.read(path)
    assert str(error.value).startswith(f"{path} is damaged: ")
    assert "--update-golden" in str(error.value)


def test_file_is_beside_the_module():
    path = file_of(pathlib.Path("/root/tests/test_x.py"), "test_x.py::TestA::test_b[1-a b]")
    assert str(path) == "/root/tests/golden/test_x/TestA.test_b[1-a b].json"


def test_odd_names_have_files_of_their_own(tmp_path):
    odd = ["a/b", "a%2fb", "..", "a::b", "a:b", "é", "\\xe9", "a" * 400, "a" * 401, "*?", "\n"]
    paths = {file_of(tmp_path / "test_x.py", f"test_x.py::test[{name}]") for name in odd}
    assert len(paths) == len(odd)
    for path in paths:
        files.write(path, sections())
        assert path.parent == tmp_path / "golden" / "test_x"
        assert files.read(path) == sections()
