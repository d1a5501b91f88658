"""Golden files: names, content, damage, writing."""

import os
import pathlib

import numpy as np
import pytest

from tpu_estimator_compat.testing.golden import files, values
from tpu_estimator_compat.testing.golden.files import DamagedFileError, file_of


def sections():
    value = {"loss": 0.5, "text": "a = b [c] #", "p": np.ones([2, 2], np.float32), "n": None}
    large = {"large": np.arange(300), "words": np.array(["a b"] * 300)}
    return {name: values.leaves(each) for name, each in (("", value), ("after", large))}


def test_what_is_written_is_read(tmp_path):
    path = tmp_path / "golden" / "test_a" / "test.txt"
    files.write(path, "test", sections())
    assert files.read(path) == sections()
    assert os.listdir(path.parent) == ["test.txt"]
    lines = path.read_text().splitlines()
    assert "loss = float 0.5" in lines
    assert "[after]" in lines


def test_file_that_is_not_there_has_no_sections(tmp_path):
    assert files.read(tmp_path / "a.txt") == {}


def test_failed_write_leaves_the_file(tmp_path, monkeypatch):
    path = tmp_path / "a.txt"
    files.write(path, "test", sections())
    before = path.read_bytes()

    def full(*unused):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="No space"):
        files.write(path, "test", {"": values.leaves(1)})
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["a.txt"]


def test_file_behind_a_link_is_written(tmp_path):
    (tmp_path / "real.txt").write_text("")
    (tmp_path / "link.txt").symlink_to("real.txt")
    files.write(tmp_path / "link.txt", "test", sections())
    assert (tmp_path / "link.txt").is_symlink()
    assert files.read(tmp_path / "real.txt") == sections()


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("<<<<<<< HEAD", "merge conflict"),
        ("=======", "merge conflict"),
        ("loss 0.5", "not `path = dtype elements`"),
        ("loss = ", "not `path = dtype elements`"),
        ("loss = float32 0.5x", "not a number: 0.5x"),
        ("p = float32[2,2] 1 2 3", "3 elements, where its shape has 4"),
        ("n = int 1\nn = int 2", "a path twice"),
        ("[a]\nn = int 1\n[a]", "a name twice"),
    ],
)
def test_damage_is_named_with_its_line(tmp_path, line, fault):
    path = tmp_path / "a.txt"
    path.write_text(f"# a comment\n\n{line}\n")
    number = 3 + line.count("\n")
    with pytest.raises(DamagedFileError) as error:
        files.read(path)
    assert fault in str(error.value)
    assert f"a.txt:{number}" in str(error.value)
    assert "--update-golden" in str(error.value)


def test_binary_file_is_damaged(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"\xff\xfe")
    with pytest.raises(DamagedFileError, match="UTF-8"):
        files.read(tmp_path / "a.txt")


def test_file_is_beside_the_module():
    path = file_of(pathlib.Path("/root/tests/test_x.py"), "test_x.py::TestA::test_b[1-a b]")
    assert str(path) == "/root/tests/golden/test_x/TestA.test_b[1-a b].txt"


def test_odd_names_have_files_of_their_own(tmp_path):
    odd = ["a/b", "a%2fb", "..", "a::b", "a:b", "é", "\\xe9", "a" * 400, "a" * 401, "*?", "\n"]
    paths = {file_of(tmp_path / "test_x.py", f"test_x.py::test[{name}]") for name in odd}
    assert len(paths) == len(odd)
    for path in paths:
        files.write(path, "test", sections())
        assert path.parent == tmp_path / "golden" / "test_x"
        assert files.read(path) == sections()
