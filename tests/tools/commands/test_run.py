import os
import pathlib
import re
import subprocess
import sys

import pytest
from support import python_path

from tpu_estimator_compat.environment import RUNTIME_VARIABLE, RUNTIMES

ROOT = pathlib.Path(__file__).parents[3]
RUN = ("-m", "tpu_estimator_compat", "run")


@pytest.fixture
def run(tmp_path, forks):
    def of(script: str = "script.py") -> subprocess.CompletedProcess[str]:
        return forks.run(*RUN, script, cwd=tmp_path, env=environment())

    return of


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": python_path.joined(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}


def test_a_traceback_is_the_scripts_own(tmp_path):
    (tmp_path / "beside.py").write_text("def fail():\n    raise ValueError('here')\n")
    (tmp_path / "script.py").write_text(
        "# a comment\n\nimport tensorflow as tf\nimport beside\n\nbeside.fail()\n"
    )
    # A process: users run scripts this way, and nothing has imported TensorFlow before.
    done = subprocess.run(
        [sys.executable, *RUN, "script.py"],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    trace = done.stderr[done.stderr.index("Traceback") :]
    assert f'File "{tmp_path}/script.py", line 6, in <module>' in trace
    assert 'beside.py", line 2, in fail' in trace
    assert "tpu_estimator_compat" not in trace


def test_an_import_that_fails_shows_no_frames_of_ours(run, tmp_path):
    (tmp_path / "script.py").write_text("import tensorflow as tf\nimport no_such_module\n")
    done = run()
    trace = done.stderr[done.stderr.index("Traceback") :]
    assert "ModuleNotFoundError: No module named 'no_such_module'" in trace
    assert "tpu_estimator_compat" not in trace
    assert trace.count("File ") == 1


def test_failed_nested_imports_show_no_frames_of_python(run, tmp_path):
    (tmp_path / "outer.py").write_text("import inner\n")
    (tmp_path / "inner.py").write_text("import tensorflow as tf\n1 / 0\n")
    (tmp_path / "script.py").write_text("import outer\n")
    done = run()
    trace = done.stderr[done.stderr.index("Traceback") :]
    assert "frozen" not in trace
    files = [line.split('"')[1].rsplit(os.sep)[-1] for line in trace.splitlines() if "File" in line]
    assert files == ["script.py", "outer.py", "inner.py"]


COLLECTOR = """
import gc
print("collects", gc.isenabled())
print("looks past the modules", gc.get_freeze_count() > 100_000)
"""


@pytest.mark.slow
@pytest.mark.parametrize("options", [(), ("--logical-cpus", "2")])
def test_the_collector_looks_past_what_the_imports_made(tmp_path, options):
    (tmp_path / "script.py").write_text(COLLECTOR)
    done = subprocess.run(
        [sys.executable, *RUN, *options, "script.py"],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
    )
    assert done.stdout.splitlines() == ["collects True", "looks past the modules True"], done.stderr


def test_the_collector_stays_on_if_tensorflow_was_imported(forks, tmp_path):
    (tmp_path / "plain.py").write_text("import gc; print(gc.isenabled(), gc.get_freeze_count())")
    (tmp_path / "script.py").write_text(
        "import gc, tensorflow\n"
        "from tpu_estimator_compat import __main__\n"
        "gc.unfreeze()\n"
        "__main__.main(['run', 'plain.py'])\n"
    )
    done = forks.run("script.py", cwd=tmp_path, env=environment())
    assert done.stdout.split() == ["True", "0"], done.stderr


def test_ctrl_c_has_the_exit_status_that_shells_know(run, tmp_path):
    (tmp_path / "script.py").write_text("raise KeyboardInterrupt\n")
    assert run().returncode == 130


OF_AUTOGRAPH = """
import warnings
import tensorflow as tf
from tensorflow.python.autograph.pyct import parser

def converting(*unused, **options):
    warnings.warn("old", DeprecationWarning)

def positive(x):
    if tf.reduce_sum(x) > 0:
        return x
    return -x

warnings.simplefilter("error", DeprecationWarning)
parser.parse_entity = converting
tf.data.Dataset.from_tensors([1.0]).map(positive)
"""


def test_a_warning_that_stops_autograph_gets_a_word(run, tmp_path):
    """As of `ast` on Python 3.13, under `-W error`."""
    (tmp_path / "script.py").write_text(OF_AUTOGRAPH)
    done = run()
    assert done.returncode == 1
    assert "OperatorNotAllowedInGraphError" in done.stderr
    said = "Add `-W ignore::DeprecationWarning:__main__` as the last -W option."
    assert done.stderr.splitlines()[-1].endswith(said)


@pytest.mark.parametrize(
    "line",
    [
        "raise DeprecationWarning('old')",
        "warnings.warn('old', UserWarning)",
        "np.float32(1e300) * np.float32(1e300)",
        "eval('1 is 1')",
        "tf.data.Dataset.from_tensors([1.0]).map(lambda x: 1 / 0)",
        "tf.data.Dataset.from_tensors([1.0]).map(lambda x: warnings.warn('of it', UserWarning))",
        "tf.function(lambda x: tf.reshape(x, [7]))([1.0])",
        "bool(tf.compat.v1.placeholder(tf.float32))",
        "import no_such_module",
        "tf.no_such_name",
    ],
)
def test_errors_that_autograph_did_not_meet_get_no_such_word(run, tmp_path, line):
    script = "import warnings\nimport numpy as np\nimport tensorflow as tf\n"
    (tmp_path / "script.py").write_text(f"{script}warnings.simplefilter('error')\n{line}\n")
    done = run()
    assert done.returncode == 1
    assert "AutoGraph left" not in done.stderr


RUNTIME = """
import tensorflow as tf

def model_fn(features, labels, mode):
    loss = tf.reduce_sum(tf.get_variable("w", [])) + features
    train_op = tf.assign_add(tf.train.get_global_step(), 1)
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

class Sessions(tf.train.SessionRunHook):
    def after_create_session(self, session, coord):
        assert tf.trainable_variables()[0].op.type == "VariableV2"
        print("session" if type(session) is tf.Session else "tensorflow")

data = lambda: tf.data.Dataset.from_tensors(1.0)
tf.estimator.Estimator(model_fn, "model").train(data, hooks=[Sessions()])
"""


@pytest.mark.parametrize("runtime", ["tensorflow", "session"])
@pytest.mark.parametrize("by", ["option", "variable"])
def test_the_runtime_is_chosen_by_option_or_variable(forks, tmp_path, runtime, by):
    (tmp_path / "script.py").write_text(RUNTIME)
    options = ("--runtime", runtime) if by == "option" else ()
    variables = {**environment(), RUNTIME_VARIABLE: runtime if by == "variable" else ""}
    done = forks.run(*RUN, *options, "script.py", cwd=tmp_path, env=variables)
    assert done.stdout.split() == [runtime], done.stderr


def test_the_help_names_every_runtime(forks):
    shown = forks.run(*RUN, "--help").stdout
    assert f"{{{','.join(RUNTIMES)}}}" in shown
    for runtime in RUNTIMES:
        assert len(re.findall(rf"\b{runtime}\b", shown)) > 1, runtime
