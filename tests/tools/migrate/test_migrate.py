import os
import pathlib
import subprocess
import sys

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


def test_a_file_that_cannot_be_written_stays_whole(monkeypatch, capsys):
    path = pathlib.Path("a.py")
    path.write_text(OLD)

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    assert main(["migrate", "a.py", "--write"]) == 2
    assert (
        "a.py  -  unreadable  Not written: The file cannot be written: No space"
        in capsys.readouterr().out
    )
    assert path.read_text() == OLD
    assert os.listdir() == ["a.py"]


def test_the_diff_can_be_applied():
    pathlib.Path("a.py").write_bytes(OLD.replace("\n", "\r\n").encode().rstrip())
    command = [sys.executable, "-m", "tpu_estimator_compat", "migrate", "a.py"]
    diff = subprocess.run(command, capture_output=True, check=True).stdout
    subprocess.run(["git", "apply"], input=diff, check=True, capture_output=True)
    assert pathlib.Path("a.py").read_bytes() == NEW.replace("\n", "\r\n").encode().rstrip()


def test_color(capsys, monkeypatch):
    pathlib.Path("a.py").write_text(OLD)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.delenv("NO_COLOR", raising=False)
    main(["migrate", "a.py"])
    in_terminal = capsys.readouterr().out
    monkeypatch.setenv("NO_COLOR", "1")
    main(["migrate", "a.py"])
    plain = capsys.readouterr().out
    main(["migrate", "a.py", "--color"])
    asked = capsys.readouterr().out
    assert "\x1b" not in plain
    assert in_terminal == asked
    assert "\x1b[31m-import tensorflow as tf\x1b[0m\n" in asked
    assert "\x1b[32m+import tpu_estimator_compat.v1 as tf\x1b[0m\n" in asked
