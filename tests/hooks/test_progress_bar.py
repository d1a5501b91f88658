"""The line of progress: in a terminal that is quiet otherwise, and nowhere else."""

from __future__ import annotations

import os
import pty
import subprocess
import sys

import pytest
from support import TESTS

SCRIPT = """
import sys
sys.path.insert(0, {tests!r})
import tensorflow.compat.v1 as tf
from support.legacy_models import make_estimator, train_input_fn
tf.logging.set_verbosity({level!r})
make_estimator({model_dir!r}, use_tpu={use_tpu}).train(train_input_fn, max_steps=30)
"""


def standard_error(tmp_path, level="WARN", terminal=True, use_tpu=False, **environment):
    """What a training in a process of its own writes there."""
    script = SCRIPT.format(tests=str(TESTS), level=level, model_dir=str(tmp_path), use_tpu=use_tpu)
    ours, theirs = pty.openpty() if terminal else os.pipe()
    clean = {k: v for k, v in os.environ.items() if k != "PYTEST_CURRENT_TEST"}
    process = subprocess.Popen(
        [sys.executable, "-c", script],
        stderr=theirs,
        stdout=subprocess.DEVNULL,
        env={**clean, **environment},
    )
    os.close(theirs)
    written = b""
    try:
        while block := os.read(ours, 1 << 16):
            written += block
    except OSError:  # a terminal that the other side has closed
        pass
    os.close(ours)
    assert process.wait(timeout=120) == 0, written.decode()
    return written.decode()


@pytest.mark.parametrize("use_tpu", [False, True])
def test_a_terminal_shows_progress_to_the_end(tmp_path, use_tpu):
    written = standard_error(tmp_path, use_tpu=use_tpu)
    assert "\rstep 30/30 [####################] loss 0." in written
    assert written.rstrip().endswith("steps/s")


@pytest.mark.slow
@pytest.mark.parametrize(
    "case",
    [
        {"terminal": False},
        {"level": "INFO"},
        {"level": "ERROR"},
        {"PYTEST_CURRENT_TEST": "a test"},
    ],
    ids=["pipe", "log", "asked to be silent", "pytest"],
)
def test_nowhere_else(tmp_path, case):
    assert "steps/s" not in standard_error(tmp_path, **case)
