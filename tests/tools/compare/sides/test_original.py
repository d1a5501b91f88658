"""TensorFlow 1.15, which still has `tf.contrib`, as judge, where Python 3.7 can be had."""

import pathlib
import re
import subprocess
import sys

import pytest

from tpu_estimator_compat.tools.compare import environment

pytestmark = pytest.mark.slow

SCRIPT = pathlib.Path(__file__).with_name("contrib_script.py")


def test_names_of_contrib_do_the_same(tmp_path):
    try:
        python = environment.find_or_make(environment.RELEASES["1.15"])
    except environment.Unavailable as error:
        pytest.skip(str(error))
    command = [sys.executable, "-m", "tpu_estimator_compat", "compare", "--steps", "10"]
    done = subprocess.run(
        [*command, "--original-python", python, str(SCRIPT)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    assert re.search("^Compare: same .*over 10 steps$", done.stdout, re.MULTILINE), done.stdout
    assert re.search("^tensorflow +1.15.5", done.stdout, re.MULTILINE), done.stdout
