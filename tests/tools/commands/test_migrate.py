import json
import os
import pathlib
import subprocess
import sys

import pytest

from tpu_estimator_compat.__main__ import main

OLD = "import tensorflow as tf\ny = 0\nx = tf.contrib.tpu.TPUConfig()\n"

NEW = "import tpu_estimator_compat.v1 as tf\ny = 0\nx = tf.estimator.tpu.TPUConfig()\n"

DIFF = """\
--- a/a.py
+++ b/a.py
@@ -1,3 +1,3 @@
-import tensorflow as tf
+import tpu_estimator_compat.v1 as tf
 y = 0
-x = tf.contrib.tpu.TPUConfig()
+x = tf.estimator.tpu.TPUConfig()
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_dry_run(capsys):
    path = pathlib.Path("a.py")
    path.write_text(OLD)
    assert main(["migrate", "."]) == 0
    assert capsys.readouterr().out == (
        DIFF + "\n1 file searched, 1 to change: 2 findings rewritten, 0 to change by hand.\n"
        "Nothing is written yet: add --write for that.\n"
    )
    assert path.read_text() == OLD
    assert os.listdir() == ["a.py"]


def test_write(capsys):
    pathlib.Path("sub").mkdir()
    path, other = pathlib.Path("sub/a.py"), pathlib.Path("b.py")
    path.write_text(OLD)
    path.chmod(0o750)
    other.write_text("x = 1\n")
    before = other.stat()
    assert main(["migrate", ".", "--write"]) == 0
    assert capsys.readouterr().out == (
        "Rewrote ./sub/a.py\n\n"
        "2 files searched, 1 changed: 2 findings rewritten, 0 to change by hand.\n"
    )
    assert path.read_text() == NEW
    assert path.stat().st_mode & 0o777 == 0o750
    assert os.listdir("sub") == ["a.py"]
    after = other.stat()  # of which reading changes the time of access
    assert (after.st_mtime_ns, after.st_ino) == (before.st_mtime_ns, before.st_ino)
    assert main(["scan", "."]) == 0
    assert main(["migrate", ".", "--write"]) == 0
    assert "0 changed" in capsys.readouterr().out
    assert path.read_text() == NEW


def test_uses_left_to_change_by_hand(capsys):
    pathlib.Path("a.py").write_text(
        "import tensorflow as tf\ntf.estimator.BoostedTreesClassifier()\n"
        "tf.compat.v1.keras.Input(1)\n"
    )
    pathlib.Path("b.py").write_text("import tensorflow\nexec tensorflow.contrib\n")
    assert main(["migrate", ".", "--write"]) == 2
    out = capsys.readouterr().out
    looked_at, by_hand = out.split("To be done by hand:\n")
    assert looked_at.split("To be looked at:\n")[1].split("  ")[:3] == [
        *("./a.py:4", "tf.keras.Input", "differs")
    ]
    lines = by_hand.splitlines()
    assert lines[0].startswith(
        "./a.py:3  tf.estimator.BoostedTreesClassifier  refused     Boosted trees"
    )
    assert lines[1].startswith(
        "./b.py:2  -                                    unreadable  This looks like"
    )
    assert lines[3] == (
        "2 files, 1 of which could be searched, 1 changed: 1 finding rewritten, "
        "2 to change by hand."
    )
    assert main(["scan", ".", "--json"]) == 2
    left = json.loads(capsys.readouterr().out)["findings"]
    assert [(f["file"], f["line"]) for f in left] == [("./a.py", 3), ("./b.py", 2)]


def test_without_tensorflow():
    """As `scan`, on machines that have nothing but Python."""
    pathlib.Path("a.py").write_text(OLD)
    code = """
import sys
sys.modules["tensorflow"] = None
from tpu_estimator_compat.__main__ import main
sys.exit(main(["migrate", "a.py"]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


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
