import os
import pathlib

import pytest

from tpu_estimator_compat.__main__ import main

OLD = "import tensorflow as tf\ny = 0\nx = tf.contrib.tpu.TPUConfig()\n"

NEW = "import tpu_estimator_compat.v1 as tf\ny = 0\nx = tf.estimator.tpu.TPUConfig()\n"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("encoding", "first"),
    [("utf-8-sig", ""), ("latin-1", "# -*- coding: latin-1 -*-\n"), ("utf-8", "")],
)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_bytes_stay(encoding, first, newline):
    path = pathlib.Path("a.py")
    path.write_bytes((first + "# é\n" + OLD).replace("\n", newline).encode(encoding))
    assert main(["migrate", "a.py", "--write"]) == 0
    assert path.read_bytes() == (first + "# é\n" + NEW).replace("\n", newline).encode(encoding)


def test_a_link_stays_a_link():
    pathlib.Path("a.py").write_text(OLD)
    os.symlink("a.py", "b.py")
    assert main(["migrate", "b.py", "--write"]) == 0
    assert os.readlink("b.py") == "a.py"
    assert pathlib.Path("a.py").read_text() == NEW


def test_a_file_that_cannot_be_written_stays_whole(monkeypatch, capsys):
    path = pathlib.Path("a.py")
    path.write_text(OLD)

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    assert main(["migrate", "a.py", "--write"]) == 2
    assert "a.py  -  unreadable  The file cannot be written: No space" in capsys.readouterr().out
    assert path.read_text() == OLD
    assert os.listdir() == ["a.py"]
