import json

import pytest

from tpu_estimator_compat.__main__ import main

DEAD = "import tensorflow as tf\nx = tf.contrib.tpu.TPUConfig()\n"


def test_which_files(tree, capsys):
    tree(**{"a": DEAD, "third_party__b": DEAD, ".git__c": DEAD, "env__d": DEAD, "a_test": DEAD})
    open("env/pyvenv.cfg", "w").close()
    arguments = ["scan", ".", "a.py", "--exclude", "third_party", "--exclude", "*_test.py"]
    assert main([*arguments, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert {f["file"] for f in report["findings"]} == {"./a.py"}
    assert report["files"] == 1


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"x = '\xe9'\n", "Invalid or missing encoding declaration. Save it as UTF-8"),
        (b"\n\nx = '\xe9'\n", "Line 3 is not utf-8"),
        (b"# coding: no-such-thing\n", "Unknown encoding: no-such-thing"),
        (b"\0\0", "null bytes"),
        (b"this is a letter", "not Python 3"),
    ],
)
def test_what_cannot_be_read(tree, capsys, data, words):
    tree(a=data, b=DEAD)
    assert main(["scan", "."]) == 2
    out = capsys.readouterr().out
    assert words in out
    assert "b.py:2" in out


def test_declared_encodings_are_read(tree, capsys):
    tree(
        a=b"# -*- coding: latin-1 -*-\n# \xe9\n" + DEAD.encode(), b=b"\xef\xbb\xbf" + DEAD.encode()
    )
    assert main(["scan", ".", "--json"]) == 0
    findings = json.loads(capsys.readouterr().out)["findings"]
    assert [f["line"] for f in findings] == [3, 4, 1, 2]
