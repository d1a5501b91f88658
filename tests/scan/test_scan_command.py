"""`scan` from the command line: files, exit status, table, JSON, speed."""

import ast
import json
import os
import resource
import subprocess
import sys

import pytest

from tpu_estimator_compat.__main__ import main

DEAD = "import tensorflow as tf\nx = tf.contrib.tpu.TPUConfig()\n"
REFUSED = "import tensorflow as tf\ntf.estimator.BoostedTreesClassifier()\n"


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """Makes files, and goes to their folder."""
    monkeypatch.chdir(tmp_path)

    def make(**files):
        for name, text in files.items():
            path = tmp_path / (name.replace("__", "/") + ".py")
            path.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(text, bytes):
                path.write_bytes(text)
            else:
                path.write_text(text)

    return make


def test_table(tree, capsys):
    tree(a=DEAD, b__c=REFUSED, d="import tensorflow as tf\n")
    assert main(["scan", "."]) == 1
    out = capsys.readouterr().out.splitlines()
    assert out[0].split("  ")[0] == "./a.py:1"
    assert out[1].split() == [
        *("./a.py:2", "tf.contrib.tpu.TPUConfig", "works"),
        *("Write", "tpu_estimator_compat.v1.estimator.tpu.TPUConfig."),
    ]
    name = "tf.estimator.BoostedTreesClassifier"
    assert out[2].startswith(f"./b/c.py:2  {name}  refused  Boosted trees")
    assert out[4:] == [
        "3 files searched, 3 findings in 2:",
        "     2 works      `migrate` rewrites these; `run` runs the script as it is",
        "     1 refused    not provided; the advice says what to write instead",
    ]


def test_json(tree, capsys):
    tree(a=DEAD)
    assert main(["scan", "a.py", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["files"], report["counts"]) == (1, {"works": 2})
    assert report["findings"][1] == {
        "file": "a.py",
        "line": 2,
        "column": 5,
        "name": "tf.contrib.tpu.TPUConfig",
        "status": "works",
        "advice": "Write tpu_estimator_compat.v1.estimator.tpu.TPUConfig.",
    }


def test_nothing_dead(tree, capsys):
    tree(a="import tensorflow as tf\n")
    assert main(["scan", "."]) == 0
    assert capsys.readouterr().out == "1 file searched; no dead names.\n"


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


def test_a_link_that_leads_nowhere(tree, capsys):
    tree(a=DEAD)
    os.symlink("no_such_file", "b.py")
    assert main(["scan", "."]) == 2
    assert "The file cannot be read: No such file or directory." in capsys.readouterr().out


def test_declared_encodings_are_read(tree, capsys):
    tree(
        a=b"# -*- coding: latin-1 -*-\n# \xe9\n" + DEAD.encode(), b=b"\xef\xbb\xbf" + DEAD.encode()
    )
    assert main(["scan", ".", "--json"]) == 0
    findings = json.loads(capsys.readouterr().out)["findings"]
    assert [f["line"] for f in findings] == [3, 4, 1, 2]


def test_python_2_needs_a_person(tree, capsys):
    tree(a="import tensorflow as tf\nprint tf.contrib\n")
    assert main(["scan", "."]) == 1
    assert "2to3" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["no_such_folder"], "There is no file or folder 'no_such_folder'"),
        (["empty"], "no Python files in empty."),
        ([".", "--exclude", "*.py"], "no Python files that --exclude leaves in ."),
    ],
)
def test_nothing_to_search(tree, capsys, arguments, words):
    tree(a=DEAD)
    os.mkdir("empty")
    assert main(["scan", *arguments]) == 2
    captured = capsys.readouterr()
    assert words in captured.err
    assert captured.out == ""


def processor_time(code):
    """Seconds that a Python process takes, start-up included, and what it prints."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done.stdout


@pytest.mark.slow
def test_a_hundred_files_without_tensorflow(tree):
    """It takes a second on an idle machine, a few times as long as parsing them does on any."""
    body = "".join(f"def f{i}(x, n):\n  return tf.reduce_sum(x[{i}], axis=n)\n" for i in range(150))
    tree(**{f"m{i}": DEAD + body for i in range(100)})
    parsing = """
import ast, glob
for file in glob.glob("*.py"):
    list(ast.walk(ast.parse(open(file).read())))
"""
    scanning = """
import sys
from tpu_estimator_compat.__main__ import main
status = main(["scan", "."])
print(sorted(sys.modules))
"""
    floor = min(processor_time(parsing)[0] for _ in range(3))
    times, printed = zip(*(processor_time(scanning) for _ in range(3)), strict=True)
    assert "100 files searched, 200 findings in 100" in printed[0]
    modules = set(ast.literal_eval(printed[0].splitlines()[-1]))
    assert modules.isdisjoint({"tensorflow", "keras", "numpy", "libcst"})
    assert min(times) < 5 * floor, (times, floor)


def test_a_reader_that_stops_early(tree):
    tree(**{f"m{i}": DEAD for i in range(2000)})
    command = f"{sys.executable} -m tpu_estimator_compat scan . | head -1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    assert done.stdout.startswith("./m0.py:1")
    assert done.stderr == ""
