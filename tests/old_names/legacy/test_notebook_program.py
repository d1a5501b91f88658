"""`run x.ipynb`: Jupyter is the judge of what its cells do."""

import os
import subprocess

import nbclient
import nbformat
import pytest
from support.notebooks import notebook

from .conftest import environment

OLD = """
import numpy as np
import tensorflow as tf

def model_fn(features, labels, mode, params):
    weight = tf.get_variable("weight", [], initializer=tf.zeros_initializer())
    loss = tf.reduce_mean((weight - features) ** 2)
    optimizer = tf.contrib.tpu.CrossShardOptimizer(tf.train.GradientDescentOptimizer(0.1))
    train_op = optimizer.minimize(loss, tf.train.get_global_step())
    return tf.contrib.tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)

def input_fn(params):
    return tf.data.Dataset.from_tensors(np.ones([4], np.float32)).repeat()
"""


@pytest.fixture
def run(tmp_path, forks):
    def of(*cells: str, text: str = "") -> subprocess.CompletedProcess[str]:
        (tmp_path / "notes").mkdir()
        (tmp_path / "notes" / "x.ipynb").write_text(text or notebook(*cells))
        words = ["-m", "tpu_estimator_compat", "run", "notes/x.ipynb"]
        return forks.run(*words, cwd=tmp_path, env=environment())

    return of


def test_cells_run_in_order_in_the_notebooks_folder(run, tmp_path):
    done = run(
        "%matplotlib inline\n!pip install tensorflow==1.15\nimport os",
        "folder = os.path.basename(os.getcwd())\nword = 'two  words'",
        "folder",
        "folder;",
        "lines = !echo {word}; echo $folder; echo $HOME\nlines[:2]",
        "if folder:\n    !echo 'it is' {folder.upper()}; exit 3",
        "%env NEW=a value\n!echo $NEW {no such} {{'a': 1}}",
        "%%writefile written.txt\nfirst\nsecond",
        "%%bash\nread a < written.txt; echo ${a}",
        "%time y = 1 + 1\ny",
        "% cd ..\nfrom __future__ import division\n"
        "display(os.path.basename(os.getcwd()) != folder)",
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "'notes'",
        "['two words', 'notes']",
        "it is NOTES",
        "a value {no such} {{a: 1}}",
        "first",
        "2",
        "True",
    ]
    assert (tmp_path / "notes" / "written.txt").read_text() == "first\nsecond\n"
    said = [line for line in done.stderr.splitlines() if "notes/x.ipynb" in line]
    assert said == [
        "Skipped `%matplotlib inline` (notes/x.ipynb, cell 1, line 1)",
        "Skipped `!pip install tensorflow==1.15` (notes/x.ipynb, cell 1, line 2); what it installs "
        "must be there before",
        "Skipped `%time` (notes/x.ipynb, cell 10, line 1)",
        "`!echo 'it is' {folder.upper()}; exit 3` (notes/x.ipynb, cell 6, line 2) ended with exit "
        "status 3",
    ]


def test_an_error_is_shown_in_its_cell(run):
    done = run("%time x = 1", "def fail():\n\n    raise ValueError('here')\n", "x\nfail()")
    assert done.returncode == 1
    trace = done.stderr[done.stderr.index("Traceback") :].splitlines()
    assert [line for line in trace if "^" not in line] == [
        "Traceback (most recent call last):",
        '  File "notes/x.ipynb, cell 3", line 2, in <module>',
        "    fail()",
        '  File "notes/x.ipynb, cell 2", line 3, in fail',
        "    raise ValueError('here')",
        "ValueError: here",
    ]


def test_what_cannot_be_done_is_said_before_anything_runs(run):
    done = run("print('ran')", "%run other.py\nx = %who", "%%cython\nx = 1")
    assert done.returncode == 2
    assert done.stdout == ""
    assert "`%run other.py` (notes/x.ipynb, cell 2, line 1)" in done.stderr
    assert "`%who` (notes/x.ipynb, cell 2, line 2)" in done.stderr
    assert "`%%cython` (notes/x.ipynb, cell 3, line 1). Write it in Python" in done.stderr


def test_a_cell_that_does_not_parse(run):
    done = run("print('ran')", "import os\nprint 'x'")
    assert done.returncode == 1
    assert done.stdout == ""
    assert 'File "notes/x.ipynb, cell 2", line 2' in done.stderr
    assert "This looks like Python 2" in done.stderr


def test_colabs_choice_of_tensorflow_1_counts(run):
    """The names alone are of both."""
    cell = "import tensorflow as tf\nprint(tf.executing_eagerly(), hasattr(tf, 'placeholder'))"
    assert run("%tensorflow_version 1.x", cell).stdout == "False True\n"


def test_what_is_no_notebook(run):
    done = run(text="{}")
    assert done.returncode == 2
    assert "error: notes/x.ipynb: It is no notebook" in done.stderr


@pytest.mark.slow
def test_jupyter_prints_the_same_and_shows_progress(run, tmp_path, monkeypatch):
    """The same notebook, in a kernel after `%load_ext`, and by `run`."""
    cells = [
        "%load_ext tpu_estimator_compat\n%matplotlib inline",
        OLD,
        """
        config = tf.contrib.tpu.RunConfig(model_dir="trained")
        estimator = tf.contrib.tpu.TPUEstimator(model_fn, config=config, train_batch_size=4)
        %time estimator.train(input_fn, max_steps=40)
        print(round(float(estimator.get_variable_value("weight")), 4))
        """,
        "names = !ls trained/checkpoint\nprint(names)",
    ]
    done = run(*cells)
    assert done.returncode == 0, done.stderr
    for name in ("PYTEST_CURRENT_TEST", "JUPYTER_PLATFORM_DIRS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PYTHONPATH", environment()["PYTHONPATH"])
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", "2")
    os.mkdir(tmp_path / "live")
    live = nbformat.reads(notebook(*cells), as_version=4)
    place = {"metadata": {"path": str(tmp_path / "live")}}
    nbclient.NotebookClient(live, timeout=300, resources=place).execute()
    outputs = [output for cell in live.cells for output in cell.outputs]
    text = "".join(o["text"] for o in outputs if o.get("name") == "stdout")
    printed = [line for line in done.stdout.splitlines() if line]
    assert printed == ["0.9999", "['trained/checkpoint']"]
    assert all(line in text for line in printed)
    # The log has its lines, as it had in notebooks, and progress an output of its own.
    assert "INFO:tensorflow:loss = " in text
    [shown] = [o["data"]["text/plain"] for o in outputs if "text/plain" in o.get("data", {})]
    assert shown.startswith("step 40/40 [####################] loss ")
    assert shown.endswith("steps/s")
    assert "steps/s" not in done.stdout + text
