"""Long work on a terminal: what its screen shows, and what is left there; silence elsewhere."""

import os
import pty
import re
import select
import signal
import subprocess
import sys
import time

import pytest

SCRIPT = """
import logging, os, sys, time
from tpu_estimator_compat.engine.signals import activity
from tpu_estimator_compat.engine.signals.activity import Activity
activity._QUIET = 0.1
log = logging.getLogger("tensorflow")
log.addHandler(logging.StreamHandler())
print("before")
with Activity("Compiling") as tell:
    time.sleep(0.4)
    print("printed " + 90 * "x")
    print("to stderr", file=sys.stderr)
    log.warning("logged")
    time.sleep(0.2)
    os.write(2, b"written by C++ code, without Python\\n")
    with Activity("Within"):
        time.sleep(0.2)
    tell("Reading", ": 1 of 2 [b]\\x1b[31m")
    tell("Reading", ": 2 of 2 [b]\\x1b[31m")
    time.sleep(1.3 if len(sys.argv) == 1 else 60)
print("after")
log.warning("logged after")
"""
CPP = "written by C++ code, without Python"
PRINTED = f"printed {90 * 'x'}"


def on_terminal(words, interrupted_at=None, **options):
    """The status of a command on a terminal, and all that it wrote there."""
    ours, its = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, *words], stderr=its, **{"stdout": its, **options}, start_new_session=True
    )
    os.close(its)
    told = ""
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline:
        if not select.select([ours], [], [], 1)[0]:
            continue
        try:
            told += os.read(ours, 65536).decode(errors="replace")
        except OSError:  # the process has ended
            break
        if interrupted_at and interrupted_at in told:
            process.send_signal(signal.SIGINT)
            interrupted_at = None
    try:
        out, _ = process.communicate(timeout=60)
    finally:
        process.kill()
    os.close(ours)
    return process.returncode, told, out


def screen(told):
    """The lines that a terminal shows in the end."""
    lines, row, column = [""], 0, 0
    for part in re.findall(r"\x1b\[[\d;?]*[A-Za-z]|[\r\n]|[^\x1b\r\n]+", told):
        if part == "\r":
            column = 0
        elif part == "\n":
            row += 1
            lines += [""] * (row + 1 - len(lines))
        elif part.endswith("A"):
            row -= int(part[2:-1])
        elif part.endswith("K"):
            lines[row] = ""
        elif not part.startswith("\x1b"):
            line = lines[row].ljust(column)
            lines[row] = line[:column] + part + line[column + len(part) :]
            column += len(part)
    return [line for line in lines if line.strip()]


def test_a_terminal_shows_what_is_done_and_for_how_long():
    status, told, _ = on_terminal(["-c", SCRIPT])
    assert status == 0
    shown = re.sub(r"\x1b\[[\d;]*m", "", told)
    assert re.search(r"\S Compiling 0:00:0[01]", shown)
    assert re.search(r"\S Reading: 2 of 2 \[b\]\?\[31m 0:00:01", shown)
    assert "Within" not in shown
    assert "\x1b[?25l" not in told  # no cursor is hidden, which a killed process would not show
    left = ["before", PRINTED, "to stderr", "logged", CPP, "after", "logged after"]
    assert screen(told) == left


def test_an_interrupt_leaves_no_line():
    status, told, _ = on_terminal(["-c", SCRIPT, "long"], interrupted_at="Reading")
    assert status == -signal.SIGINT
    assert screen(told)[4:6] == [CPP, "Traceback (most recent call last):"]
    assert screen(told)[-1] == "KeyboardInterrupt"


def test_standard_output_elsewhere_stays_there():
    status, told, out = on_terminal(["-c", SCRIPT], stdout=subprocess.PIPE, text=True)
    assert (status, out) == (0, f"before\n{PRINTED}\nafter\n")
    assert screen(told) == ["to stderr", "logged", CPP, "logged after"]
    assert "Compiling" in told


def test_elsewhere_nothing():
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, f"to stderr\nlogged\n{CPP}\nlogged after\n")


TRAINING = """
import numpy as np
import tensorflow as tf
from tpu_estimator_compat import tpu

def model_fn(features, labels, mode, params):
    x = features
    for _ in range(30):
        x = tf.compat.v1.layers.dense(x, 64)
    loss = tf.reduce_mean(x)
    optimizer = tpu.CrossShardOptimizer(tf.compat.v1.train.AdamOptimizer())
    train_op = optimizer.minimize(loss, tf.compat.v1.train.get_global_step())
    return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)

def input_fn(params):
    data = tf.data.Dataset.from_tensors(np.ones([4], np.float32)).repeat()
    return data.batch(params["batch_size"], drop_remainder=True)

config = tpu.RunConfig(model_dir="model")
tpu.TPUEstimator(model_fn, config=config, train_batch_size=8).train(input_fn, max_steps=2)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "what"),
    [
        ("compare --against jit --steps 2 train.py", " of 2 0:0"),
        ("doctor", "training tensorflow 0:0"),
        ("migrate tree", " of 3000: "),
        ("preflight train.py", "Compiling for v5e:2x2"),
        ("run --runtime jax train.py", "Compiling the step 0:"),
        ("scan tree", " of 3000: "),
    ],
)
def test_commands(words, what, tmp_path):
    compiles_long = TRAINING.replace("range(30)", "range(100)")
    (tmp_path / "train.py").write_text(compiles_long if "jax" in words else TRAINING)
    (tmp_path / "tree").mkdir()
    for number in range(3000 if "tree" in words else 0):
        (tmp_path / "tree" / f"{number}.py").write_text(
            "import tensorflow as tf\n" + "x = 1\n" * 99
        )
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    status, told, _ = on_terminal(
        ["-m", "tpu_estimator_compat", *words.split()], cwd=tmp_path, env=environment
    )
    assert status == 0, told
    assert what in re.sub(r"\x1b\[[\d;]*m", "", told)
    assert [line for line in screen(told) if re.search(r" \d:\d\d:\d\d", line)] == []
