"""Kills training at random moments, starts it again, and checks what is on the disk each time.

    kills.py KILLS DIRECTORY

TensorFlow is imported once; every training is a fork of this process, which never starts
TensorFlow's runtime itself. It prints one JSON line: what was found, over all kills.
"""

import json
import os
import pathlib
import random
import signal
import sys
import time
import traceback
from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf

sys.path.insert(1, str(pathlib.Path(__file__).parents[2]))

from support.legacy_models import examples, make_estimator, make_model_fn

import tpu_estimator_compat as tpu

STEPS, INTERVAL, TOGETHER = 600, 10, 3
LONGEST = 0.5  # seconds that a training lives after its first step
_NAMES = ("global_step", "hidden", "output", "table", "table/Adam")


def input_fn(params: dict[str, Any]) -> tf.data.Dataset:
    """Shuffled over a buffer that is smaller than the data, so that the position matters."""
    dataset = tf.data.Dataset.from_tensor_slices(examples())
    dataset = dataset.shuffle(20).repeat().map(lambda x, y: (x * 2.0, y), num_parallel_calls=2)
    return dataset.batch(params["batch_size"], drop_remainder=True)


def train_op(loss: tf.Tensor, params: dict[str, Any]) -> tf.Operation:
    """Adam on the model and on a table that makes the files large enough to be hit half-written."""
    table = tf.get_variable("table", [20000, 8], initializer=tf.ones_initializer())
    loss += tf.reduce_mean(table**2)
    return tf.train.AdamOptimizer(0.01).minimize(loss, tf.train.get_global_step())


class Progress(tf.train.SessionRunHook):
    """Writes the step after every step, where the parent sees it even after a kill."""

    def __init__(self, path: pathlib.Path):
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT)

    def after_run(self, run_context, run_values):
        step = run_context.session.run(tf.train.get_global_step())
        os.pwrite(self._file, b"%10d" % step, 0)


class Training:
    """A chain of trainings in one directory: each killed, the next going on from what is there."""

    def __init__(self, directory: pathlib.Path, use_tpu: bool):
        self.directory = directory
        self.use_tpu = use_tpu
        self.progress = directory.with_suffix(".progress")
        self.log = directory.with_suffix(".log")
        self.process = 0

    def start(self) -> None:
        self.progress.unlink(missing_ok=True)
        self.process = os.fork()
        if self.process:
            return
        output = os.open(self.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(output, 1)
        os.dup2(output, 2)
        code = 1
        try:
            self._train()
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)

    def _train(self) -> None:
        estimator = make_estimator(
            self.directory,
            make_model_fn(train_op),
            use_tpu=self.use_tpu,
            loop=1,
            save_checkpoints_steps=INTERVAL,
            keep_checkpoint_max=3,
            save_input_state=True,
            log_step_count_steps=None,
        )
        estimator.train(input_fn, hooks=[Progress(self.progress)], max_steps=STEPS)

    def step(self) -> int:
        try:
            return int(self.progress.read_bytes() or b"0")
        except FileNotFoundError:
            return 0

    def weights(self) -> dict[str, np.ndarray]:
        reader = tf.train.load_checkpoint(tf.train.latest_checkpoint(str(self.directory)))
        return {name: reader.get_tensor(name) for name in _NAMES}


def check_files(training: Training) -> list[int]:
    """Steps of the checkpoints that the state names; each must be readable to its last tensor."""
    state = tf.train.get_checkpoint_state(str(training.directory))
    if state is None:
        return []
    steps = []
    for path in state.all_model_checkpoint_paths:
        reader = tf.train.load_checkpoint(path)
        for name in reader.get_variable_to_shape_map():
            reader.get_tensor(name)
        assert os.path.exists(f"{path}.input-00000-of-00001.index"), path
        steps.append(int(reader.get_tensor("global_step")))
    assert state.model_checkpoint_path == state.all_model_checkpoint_paths[-1]
    return steps


def live_and_die(training: Training, kill_after: float | None, from_start: bool) -> Any:
    """A generator: one training, from start to kill or end; yields while it has to wait.

    Returns:
      (whether it was killed, the last step it made)
    """
    training.start()
    started = time.monotonic()
    while True:
        pid, status = os.waitpid(training.process, os.WNOHANG)
        if pid:
            assert status == 0, training.log.read_text()[-4000:]
            return False, STEPS
        if started is not None and not from_start and training.step():
            from_start, started = True, time.monotonic()
        if kill_after is not None and from_start and time.monotonic() > started + kill_after:
            os.kill(training.process, signal.SIGKILL)
            os.waitpid(training.process, 0)
            return True, training.step()
        yield


def chain(training: Training, found: dict[str, Any], rng: random.Random, kills: int) -> Any:
    """A generator: trainings one after the other, until one comes to the end."""
    while True:
        enough = found["kills"] >= kills
        early = rng.random() < 0.2  # some die before the first step: at restart, in the first save
        delay = None if enough else rng.uniform(0, 3 * LONGEST if early else LONGEST)
        killed, step = yield from live_and_die(training, delay, early)
        steps = check_files(training)
        if not killed:
            assert steps[-1] == STEPS
            return
        found["kills"] += 1
        if os.path.exists(training.directory):  # some die before they make it
            found["unfinished"] += any(n.startswith(".") for n in os.listdir(training.directory))
        if step:
            newest = steps[-1]
            found["lost"].append(step - newest)
            # What was handed to the writer before the last save is there.
            assert newest >= step // INTERVAL * INTERVAL - INTERVAL, (step, steps)


def run(kills: int, directory: pathlib.Path) -> dict[str, Any]:
    rng = random.Random(int(os.environ.get("KILLS_SEED", "0")))
    found: dict[str, Any] = {"kills": 0, "chains": 0, "unfinished": 0, "lost": []}
    whole = {}
    for use_tpu in (False, True):
        training = Training(directory / f"whole-{use_tpu}", use_tpu)
        for _ in live_and_die(training, None, False):
            time.sleep(0.01)
        whole[use_tpu] = training.weights()
    running: list[tuple[Training, Any]] = []
    while running or found["kills"] < kills:
        while len(running) < TOGETHER and found["kills"] < kills:
            use_tpu = bool(found["chains"] % 2)
            training = Training(directory / f"chain-{found['chains']}", use_tpu)
            running.append((training, chain(training, found, rng, kills)))
            found["chains"] += 1
        for training, steps in list(running):
            try:
                next(steps)
            except StopIteration:
                running.remove((training, steps))
                for name, value in training.weights().items():
                    np.testing.assert_array_equal(value, whole[training.use_tpu][name], name)
                assert "cannot be read" not in training.log.read_text()
        time.sleep(0.002)
    return found


if __name__ == "__main__":
    tf.logging.set_verbosity(tf.logging.WARN)
    assert tpu.TPUEstimator
    print(json.dumps(run(int(sys.argv[1]), pathlib.Path(sys.argv[2]))))
