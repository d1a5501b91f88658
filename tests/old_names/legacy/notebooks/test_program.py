"""`run x.ipynb`: IPython runs the cells; their order, errors and safety are the command's."""

import json
import os
import subprocess
import sys

import nbclient
import nbformat
import pytest
from support.notebooks import notebook

from ..conftest import environment

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
        (tmp_path / "notes").mkdir(exist_ok=True)
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
        "lines = !echo {word}; echo $folder\nlines",
        "if folder:\n    !echo 'it is' {folder.upper()}; exit 3",
        "%env NEW=a value\n!echo $NEW {no such} {{'a': 1}}",
        "%%writefile written.txt\nfirst\nsecond",
        "%%shell\nread a < written.txt; echo ${a}",
        "%less written.txt",
        "%cd ..\nfrom __future__ import division\ndisplay(os.path.basename(os.getcwd()) != folder)",
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "'notes'",
        "['two words', 'notes']",
        "it is NOTES",
        "env: NEW=a value",
        "a value {no such} {{a: 1}}",
        "Writing written.txt",
        "first",
        "first",
        "second",
        str(tmp_path),
        "True",
    ]
    assert (tmp_path / "notes" / "written.txt").read_text() == "first\nsecond\n"
    said = [line for line in done.stderr.splitlines() if "notes/x.ipynb" in line]
    assert said == [
        "Skipped `%matplotlib inline` (notes/x.ipynb, cell 1, line 1)",
        "Skipped `!pip install tensorflow==1.15` (notes/x.ipynb, cell 1, line 2): change the "
        "environment before the run",
        "`!echo 'it is' {folder.upper()}; exit 3` (notes/x.ipynb, cell 6, line 2) ended with exit "
        "status 3",
    ]


def test_an_error_is_shown_in_its_cell(run):
    done = run(
        "%time x = 1",
        "%%time\ndef fail():\n\n    raise ValueError('here')\n",
        "x\nif x:\n    %time fail()",
    )
    assert done.returncode == 1
    trace = done.stderr[done.stderr.index("Traceback") :].splitlines()
    assert [line for line in trace if "^" not in line] == [
        "Traceback (most recent call last):",
        '  File "notes/x.ipynb, cell 3", line 3, in <module>',
        "    %time fail()",
        '  File "notes/x.ipynb, cell 3", line 3, in <module>',
        "    %time fail()",
        '  File "notes/x.ipynb, cell 2", line 4, in fail',
        "    raise ValueError('here')",
        "ValueError: here",
    ]


def test_an_error_in_a_captured_cell_ends_the_run(run):
    done = run("%%capture found\nprint(1)", "print(repr(found.stdout))", "%%capture\n\n1 / 0", "2")
    assert (done.returncode, done.stdout) == (1, "'1\\n'\n")
    assert 'cell 3", line 3' in done.stderr


def test_an_unknown_magic_is_named_by_cell_and_the_rest_runs(run):
    done = run("x = %nope\nprint('ran', x)", "%%cython\nx", "3")
    assert (done.returncode, done.stdout) == (0, "ran None\n3\n")
    said = [line for line in done.stderr.splitlines() if "was not done" in line]
    assert [line.partition(" was")[0] for line in said] == [
        "`%nope` (notes/x.ipynb, cell 1, line 1)",
        "`%%cython` (notes/x.ipynb, cell 2, line 1)",
    ]
    assert all("Write it in Python" in line for line in said)


def test_a_cell_that_does_not_parse_ends_the_run_there(run):
    done = run("print('ran')", "import os\nprint 'x'", "print('not this')")
    assert done.returncode == 1
    assert done.stdout == "ran\n"
    assert "The run will end in notes/x.ipynb, cell 2, line 2: Missing parentheses" in done.stderr
    assert 'File "notes/x.ipynb, cell 2", line 2' in done.stderr
    assert "This looks like Python 2" in done.stderr


def test_jupyters_tag_for_cells_that_may_fail(run):
    content = json.loads(notebook("1 / 0", "return 3", "print('ran')"))
    for cell in content["cells"]:
        cell["metadata"] = {"tags": ["raises-exception"]}
    done = run(text=json.dumps(content))
    assert (done.returncode, done.stdout) == (0, "ran\n")
    assert "The run will end" not in done.stderr
    assert 'File "notes/x.ipynb, cell 1", line 1' in done.stderr
    assert "ZeroDivisionError" in done.stderr
    assert "SyntaxError: 'return' outside function" in done.stderr
    assert "IPython" not in done.stderr
    assert "shell.py" not in done.stderr


@pytest.fixture
def trainer(tmp_path):
    """A package that shows which Python runs it, and whether names that TensorFlow dropped work."""
    folder = tmp_path / "notes" / "trainer"
    folder.mkdir(parents=True)
    text = "import sys\nimport tensorflow as tf\nprint(sys.executable, tf.contrib.__name__)\n"
    (folder / "task.py").write_text(f"{text}print(sys.argv[1:])\n")
    return f"{sys.executable} tpu_estimator_compat.v1.contrib"


@pytest.mark.slow
def test_commands_run_this_python_with_the_dropped_names(run, trainer):
    done = run(
        "%%bash\npython -m trainer.task --x 1",
        "!python3 -u trainer/task.py y",
        "!cd trainer; PYTHONPATH=.. python -W ignore -m trainer.task",
    )
    assert done.returncode == 0, done.stderr
    shown = [trainer, "['--x', '1']", trainer, "['y']", trainer, "[]"]
    assert done.stdout.splitlines() == shown


def test_commands_are_pythons_outside_of_the_notebook_program(run):
    done = run(
        "%%bash\npython -c 'import sys; print(sys.executable)'",
        "!echo 'print(2)' | python -",
        "%%python3\nimport sys; print(sys.executable)",
        "!python -m json.tool --help | head -c 5",
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [sys.executable, "2", sys.executable, "usage"]


def test_commands_install_nothing(run):
    done = run("%%bash\npip install -q 'a b'\npython -m pip uninstall a\npip --version")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("pip ")
    said = [line for line in done.stderr.splitlines() if line.startswith("Skipped")]
    assert said == [
        "Skipped pip install -q a b: change the environment before the run",
        "Skipped pip uninstall a: change the environment before the run",
    ]


def test_run_gives_scripts_and_notebooks_the_dropped_names(run, trainer, tmp_path):
    other = "import tensorflow as tf\nname = tf.contrib.__name__\n!echo other\ndisplay(3)"
    (tmp_path / "notes" / "other.ipynb").write_text(notebook(other))
    (tmp_path / "notes" / "fails.py").write_text("before = 1\ndef f():\n    1 / 0\nf()\n")
    done = run("%run -m trainer.task", "%run other.ipynb", "name", "%run fails.py\nprint(before)")
    assert done.returncode == 0, done.stderr
    shown = [trainer, "[]", "other", "3", "'tpu_estimator_compat.v1.contrib'", "1"]
    assert done.stdout.splitlines() == shown
    trace = done.stderr[done.stderr.index("Traceback") :].splitlines()
    assert [line for line in trace if "^" not in line] == [
        "Traceback (most recent call last):",
        f'  File "{tmp_path}/notes/fails.py", line 4, in <module>',
        "    f()",
        f'  File "{tmp_path}/notes/fails.py", line 3, in f',
        "    1 / 0",
        "ZeroDivisionError: division by zero",
    ]


@pytest.mark.parametrize(
    ("cell", "error"),
    [
        ("import sys\nsys.exit('the end')", "the end"),
        ("exit('the end')", "the end"),
        ("%%bash\nexit 3", "CalledProcessError"),
        ("%env NO_SUCH_NAME", "UsageError: Environment does not have key: NO_SUCH_NAME"),
        ("%popd", "UsageError: %popd on empty stack"),
        ("%cd -", "UsageError: %cd -: No previous directory to change to."),
        ("%run nowhere.py", "File `'nowhere.py'` not found."),
    ],
)
def test_errors_of_magics_end_the_run(run, cell, error):
    done = run("print('ran')", cell, "print('not this')")
    assert (done.returncode, done.stdout) == (1, "ran\n")
    assert error in done.stderr
    assert "interactiveshell.py" not in done.stderr
    assert "shell.py" not in done.stderr


def test_colabs_choice_of_tensorflow_1_counts(run):
    """The names alone are of both."""
    cell = "import tensorflow as tf\nprint(tf.executing_eagerly(), hasattr(tf, 'placeholder'))"
    assert run("%tensorflow_version 1.x", cell).stdout == "False True\n"


def test_what_is_no_notebook(run):
    done = run(text="{}")
    assert done.returncode == 2
    assert "error: notes/x.ipynb: It is no notebook" in done.stderr


def test_without_ipython_the_error_says_what_to_install(python, tmp_path):
    (tmp_path / "x.ipynb").write_text(notebook("1"))
    done = python(
        "-c",
        "import sys\nsys.modules['IPython'] = None\n"
        "from tpu_estimator_compat.__main__ import main\nsys.exit(main(['run', 'x.ipynb']))",
    )
    assert done.returncode == 2
    assert "x.ipynb is a notebook, which IPython runs. Install it: `pip install 'ipy" in done.stderr


@pytest.mark.slow
def test_jupyter_prints_the_same_and_shows_progress(run, tmp_path, monkeypatch):
    """The same notebook, in a kernel after `%load_ext`, and by `run`."""
    cells = [
        "%load_ext tpu_estimator_compat\n%matplotlib inline",
        OLD,
        """
        config = tf.contrib.tpu.RunConfig(model_dir="trained")
        estimator = tf.contrib.tpu.TPUEstimator(model_fn, config=config, train_batch_size=4)
        estimator.train(input_fn, max_steps=40)
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
    # The log has its lines, as it had in notebooks, and there is a bar.
    assert "INFO:tensorflow:loss = " in text
    assert "40/40" in text
    assert "40/40" not in done.stdout
