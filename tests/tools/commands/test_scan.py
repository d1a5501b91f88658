import ast
import resource
import shlex
import subprocess
import sys

import pytest

from tpu_estimator_compat.__main__ import main

DEAD = "import tensorflow as tf\nx = tf.contrib.tpu.TPUConfig()\n"


def test_nothing_dead(tree, capsys):
    tree(a="import tensorflow as tf\n")
    assert main(["scan", "."]) == 0
    assert capsys.readouterr().out == "1 file searched; no dead names.\n"


def test_python_2(tree, capsys):
    tree(a="import tensorflow as tf\nprint tf.contrib\n")
    assert main(["scan", "."]) == 0
    assert "     1 python 2   Python 2: `migrate` rewrites these" in capsys.readouterr().out
    tree(a="import tensorflow as tf\nexec 'tf.contrib'\n")
    assert main(["scan", "."]) == 2
    out = capsys.readouterr().out
    assert "2to3" in out
    assert "1 file, none of which could be searched, 1 finding in 1:" in out


def test_uses_to_change_by_hand_come_first(tree, capsys):
    tree(a=f"{DEAD}y = tf.estimator.BoostedTreesRegressor\n")
    assert main(["scan", "."]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert "BoostedTreesRegressor" in lines[0]
    assert [line.split()[1] for line in lines if line.startswith("     ")] == ["refused", "works"]


@pytest.mark.parametrize(
    ("name", "text"), [("tool", DEAD), ("tool.txt", f"#!/bin/env python\n{DEAD}")]
)
def test_scripts_with_other_names_are_read(tree, capsys, name, text):
    tree()
    with open(name, "w") as file:
        file.write(text)
    assert main(["scan", name]) == 0
    assert "2 findings in 1" in capsys.readouterr().out


def processor_time(code):
    """Seconds that a Python process takes, start-up included, and what it prints."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done.stdout


SCANNING = """
import sys
from tpu_estimator_compat.__main__ import main
status = main(["scan", "."])
print(sorted(sys.modules))
"""


def test_no_tensorflow(tree):
    """Machines that have nothing but Python, such as a CI's, search their scripts with it."""
    tree(m=DEAD)
    _, printed = processor_time(SCANNING)
    assert "2 findings in 1" in printed
    modules = set(ast.literal_eval(printed.splitlines()[-1]))
    assert modules.isdisjoint({"tensorflow", "keras", "numpy"})


@pytest.mark.slow
def test_a_hundred_files(tree):
    """It takes a second on an idle machine, a few times as long as parsing them does on any."""
    body = "".join(f"def f{i}(x, n):\n  return tf.reduce_sum(x[{i}], axis=n)\n" for i in range(150))
    tree(**{f"m{i}": DEAD + body for i in range(100)})
    parsing = """
import ast, glob
for file in glob.glob("*.py"):
    list(ast.walk(ast.parse(open(file).read())))
"""
    floor = min(processor_time(parsing)[0] for _ in range(3))
    times, printed = zip(*(processor_time(SCANNING) for _ in range(3)), strict=True)
    assert "100 files searched, 200 findings in 100" in printed[0]
    assert min(times) < 5 * floor, (times, floor)


def test_a_reader_that_stops_early(tree):
    tree(**{f"m{i}": DEAD for i in range(2000)})
    command = f"{shlex.quote(sys.executable)} -m tpu_estimator_compat scan . | head -1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    assert done.stdout.startswith("./m0.py:1")
    assert done.stderr == ""
