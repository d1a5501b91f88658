"""Training needs no terminal, and none of what a service may lack or a script may replace."""

import os
import subprocess
import sys

import pytest
from support import TESTS, python_path

from tpu_estimator_compat import environment

SCRIPT = """
import os, sys

class Tee:
    def write(self, text): pass
    def flush(self): pass

{}
import tpu_estimator_compat.v1 as tf
tf.logging.set_verbosity(tf.logging.WARN)  # the level of the progress bar

def model_fn(features, labels, mode):
    loss = tf.square(tf.get_variable("w", []) - features)
    train_op = tf.assign_add(tf.train.get_global_step(), 1)
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

data = lambda: tf.data.Dataset.from_tensors(1.0)
estimator = tf.estimator.Estimator(model_fn, {!r})
estimator.train(lambda: data().repeat(), steps=2)
estimator.evaluate(data)
"""

STREAMS = ("stdin", "stdout", "stderr")
LACKS = {
    "none": f"for name in {STREAMS}: setattr(sys, name, None)",
    "written to only": f"for name in {STREAMS}: setattr(sys, name, Tee())",
    "closed": f"for name in {STREAMS}: getattr(sys, name).close()",
    "no arguments": "sys.argv = []",
    "no home": "os.environ.update(HOME='/proc/none', TMPDIR='/proc/none')",
    "no home at all": "del os.environ['HOME']",
    "no working directory": "os.mkdir('gone'); os.chdir('gone'); os.rmdir('../gone')",
    "no file": "del sys.modules['__main__'].__file__",
}
if sys.version_info[:2] == (3, 13):
    # CPython 3.13.0, started with -c as the server of forks is, finds no names of TensorFlow's lazy
    # modules there (SystemError); a script does.
    del LACKS["no working directory"]


def given():
    return {**os.environ, "PYTHONPATH": python_path.joined(TESTS.parent)}


@pytest.mark.parametrize("lacks", LACKS)
def test_it_trains_without(forks, tmp_path, lacks):
    model_dir = tmp_path / "model"
    (tmp_path / "script.py").write_text(SCRIPT.format(LACKS[lacks], str(model_dir)))
    done = forks.run("script.py", cwd=tmp_path, env=given())
    assert (model_dir / "model.ckpt-2.index").exists(), done.stderr
    assert list((model_dir / "eval").iterdir()), done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("command", ["", "-m tpu_estimator_compat run"])
@pytest.mark.parametrize("closed", ["2>&-", "<&- >&- 2>&-"])
def test_it_trains_with_closed_descriptors(tmp_path, command, closed):
    """No file of the training is what TensorFlow, in C++, takes for standard error."""
    note = "\nfound = [os.readlink(f'/proc/self/fd/{n}') for n in range(3)]"
    note += "\nopen('note', 'w').write(str(found))"
    script = SCRIPT.format("", str(tmp_path / "model")) + note
    (tmp_path / "script.py").write_text(script)
    line = f'exec "{sys.executable}" {command} script.py {closed}'
    done = subprocess.run(["bash", "-c", line], cwd=tmp_path, env=given(), capture_output=True)
    assert (tmp_path / "model" / "model.ckpt-2.index").exists(), done
    found = (tmp_path / "note").read_text()
    assert "model" not in found
    assert found.count("/dev/null") >= (1 if closed == "2>&-" else 3)
    assert done.returncode == 0


@pytest.mark.slow
def test_an_error_goes_nowhere_else(tmp_path):
    """`print` takes a missing standard error for standard output."""
    (tmp_path / "script.py").write_text("import numpy as np\nnp.float\n")
    line = f'exec "{sys.executable}" -m tpu_estimator_compat run script.py 2>&-'
    done = subprocess.run(["bash", "-c", line], cwd=tmp_path, env=given(), stdout=subprocess.PIPE)
    assert (done.stdout, done.returncode) == (b"", 1)


class Broken:
    def isatty(self):
        raise ValueError("I/O operation on closed file")


@pytest.mark.parametrize("stream", [None, object(), Broken()])
def test_what_is_no_terminal(stream):
    assert not environment.is_terminal(stream)
