import contextlib
import os
import pty
import re
import subprocess
import sys

import pytest
import tensorflow.compat.v1 as tf
from support import TESTS
from support.legacy_models import make_estimator, train_input_fn

SCRIPT = """
import sys
sys.path.insert(0, {tests!r})
import tensorflow.compat.v1 as tf
from support.legacy_models import make_estimator, train_input_fn
make_estimator({model_dir!r}).train(train_input_fn, max_steps=30)
"""


def written_to(end):
    """What was written to the other end of a terminal or a pipe, which is closed now."""
    written = b""
    with contextlib.suppress(OSError):  # a terminal that the other side has closed
        while block := os.read(end, 1 << 16):
            written += block
    os.close(end)
    return written.decode()


def thirty_batches(params):
    return train_input_fn(params).take(30)


@pytest.fixture
def standard_output(tmp_path, monkeypatch):
    """`standard_output(...)` is what a training writes there."""
    before = tf.logging.get_verbosity()

    def of(level=tf.logging.WARN, terminal=True, in_test=False, use_tpu=False, limit=30):
        ours, theirs = pty.openpty() if terminal else os.pipe()
        tf.logging.set_verbosity(level)
        if not in_test:
            monkeypatch.delenv("PYTEST_CURRENT_TEST")
        with os.fdopen(theirs, "w") as stream, monkeypatch.context() as patch:
            patch.setattr(sys, "stdout", stream)
            make_estimator(tmp_path, use_tpu=use_tpu).train(thirty_batches, max_steps=limit)
        return written_to(ours)

    yield of
    tf.logging.set_verbosity(before)


def check(written, steps="30/30"):
    """The last line, without its colors: `30/30 ━━━━ 1s 5ms/step - loss: 0.1234`."""
    last = re.sub(r"\x1b\[\d*m", "", written).replace("\b", "").splitlines()[-1].strip()
    assert re.fullmatch(rf"{steps} (━+ )?\d+s \d+(s|ms|us)/step - loss: 0\.\d+", last), last


@pytest.mark.parametrize("use_tpu", [False, True])
def test_a_terminal_shows_progress_to_the_end(standard_output, use_tpu):
    check(standard_output(use_tpu=use_tpu))


def test_limits_with_a_fraction_and_without_an_end(standard_output):
    check(standard_output(limit=29.5))


def test_no_limit(standard_output):
    check(standard_output(limit=float("inf")), "30/Unknown")


@pytest.mark.parametrize(
    "case",
    [
        {"terminal": False},
        {"level": tf.logging.INFO},
        {"level": tf.logging.ERROR},
        {"in_test": True},
    ],
    ids=["pipe", "log", "asked to be silent", "pytest"],
)
def test_nowhere_else(standard_output, case):
    assert "/step" not in standard_output(**case)


@pytest.mark.slow
def test_a_script_in_a_terminal(tmp_path):
    """In a process of its own: nothing of a test's set-up has a part in it."""
    script = SCRIPT.format(tests=str(TESTS), model_dir=str(tmp_path))
    ours, theirs = pty.openpty()
    clean = {k: v for k, v in os.environ.items() if k != "PYTEST_CURRENT_TEST"}
    command = [sys.executable, "-c", script]
    process = subprocess.Popen(command, stdout=theirs, stderr=subprocess.DEVNULL, env=clean)
    os.close(theirs)
    check(written_to(ours))
    assert process.wait(timeout=120) == 0
