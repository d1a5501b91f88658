"""Input that blocks or fails in Python: signals are answered, and the process ends."""

import pathlib
import signal
import subprocess
import sys

import pytest
import tensorflow as tf

SCRIPT = pathlib.Path(__file__).with_name("blocked_input.py")
CASES = [
    ("dataset", "blocks", signal.SIGTERM, 143),
    ("dataset", "blocks", signal.SIGINT, -signal.SIGINT),
    ("ahead", "blocks", signal.SIGTERM, 143),
    ("dataset", "fails", None, 1),
    ("tensor", "blocks", signal.SIGTERM, 143),
    ("tensor", "fails", None, 1),
    ("queue", "blocks", signal.SIGTERM, 143),
]


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "what", "number", "status"), CASES)
def test_the_process_ends(tmp_path, kind, what, number, status):
    """A process of its own: what is tested is how it ends."""
    command = [sys.executable, str(SCRIPT), kind, what, str(tmp_path)]
    root = SCRIPT.parents[2]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "cwd": root}
    with subprocess.Popen(command, **pipes) as process:
        try:
            if number is not None:
                assert process.stdout.readline() == "blocked\n"
                process.send_signal(number)
            _, errors = process.communicate(timeout=100)
        finally:
            process.kill()
    assert process.returncode in (status, 128 - status if status < 0 else status), errors[-3000:]
    if number == signal.SIGTERM:
        step = int(tf.train.latest_checkpoint(str(tmp_path)).rpartition("-")[2])
        assert 0 < step < 30 if kind == "ahead" else 0 <= step <= 4
    else:
        assert ("KeyboardInterrupt" if number else "RuntimeError: no more of this") in errors
