"""Hooks that end training early, and a reader of evaluation events for their predicates."""

from __future__ import annotations

import collections
import os
import time
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf
from tensorflow.compat.v1 import logging

from tpu_estimator_compat.engine.files import user_files


class StopOnPredicateHook(tf.compat.v1.train.SessionRunHook):
    """Stops training when a function returns True, and sets the variable `STOP`."""

    def __init__(
        self,
        should_stop_fn: Callable[[], bool],
        run_every_secs: float | None = 60,
        run_every_steps: int | None = None,
    ):
        if not callable(should_stop_fn):
            raise TypeError(f"`should_stop_fn` must be callable, given: {should_stop_fn}")
        self._should_stop_fn = should_stop_fn
        self._timer = tf.compat.v1.train.SecondOrStepTimer(
            every_secs=run_every_secs, every_steps=run_every_steps
        )

    def begin(self) -> None:
        self._global_step = tf.compat.v1.train.get_global_step()
        self._stop = tf.compat.v1.assign(_stop_variable(), True)

    def before_run(self, run_context: Any) -> Any:
        del run_context
        return tf.compat.v1.train.SessionRunArgs(self._global_step)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        global_step = run_values.results
        if not self._timer.should_trigger_for_step(global_step):
            return
        self._timer.update_last_triggered_step(global_step)
        if self._should_stop_fn():
            logging.info("Requesting early stopping at global step %d", global_step)
            run_context.session.run(self._stop)
            run_context.request_stop()


class StopWithChiefHook(tf.compat.v1.train.SessionRunHook):
    """Creates the variable `STOP` on a worker, which stops when the chief stops."""

    def begin(self) -> None:
        _stop_variable()


def _stop_variable() -> tf.Variable:
    """The variable `STOP`, with its name in the original's checkpoints."""
    scope = tf.compat.v1.variable_scope("signal_early_stopping", reuse=tf.compat.v1.AUTO_REUSE)
    with scope:
        return tf.compat.v1.get_variable(
            "STOP",
            shape=[],
            dtype=tf.bool,
            initializer=tf.compat.v1.constant_initializer(False),
            trainable=False,
        )


class StopAtCheckpointStepHook(tf.compat.v1.train.SessionRunHook):
    """Stops a worker when the chief has written the checkpoint of the last step."""

    def __init__(
        self,
        checkpoint_step: Callable[[], int],
        last_step: int | None,
        wait_after_file_check_secs: float = 30,
    ):
        if last_step is None:
            raise ValueError("last_step must be specified.")
        self._checkpoint_step = checkpoint_step
        self._last_step = last_step
        self._wait = wait_after_file_check_secs

    def begin(self) -> None:
        self._global_step = tf.compat.v1.train.get_global_step()
        if self._global_step is None:
            raise RuntimeError("Global step should be created to use StopAtCheckpointStepHook.")

    def before_run(self, run_context: Any) -> Any:
        del run_context
        return tf.compat.v1.train.SessionRunArgs(self._global_step)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        if run_values.results + 1 < self._last_step:  # read before the step
            return
        if self._checkpoint_step() >= self._last_step:
            run_context.request_stop()
        else:
            time.sleep(self._wait)


def read_eval_metrics(eval_dir: str) -> dict[int, dict[str, float]]:
    """The results of evaluations from their event files.

    Args:
      eval_dir: a directory such as `Estimator.eval_dir()`.

    Returns:
      Global step to metrics by name, in the order of the steps. Empty where there are none.
    """
    found: dict[int, dict[str, float]] = collections.defaultdict(dict)
    pattern = os.path.join(user_files.literal(eval_dir), "events.out.tfevents.*")
    for event in events(pattern):
        for value in event.summary.value:
            if value.HasField("simple_value"):
                found[event.step][value.tag] = value.simple_value
    return dict(sorted(found.items()))


def events(pattern: str) -> Iterator[Any]:
    """The events of the files that match a pattern; warns where a file is damaged."""
    for path in tf.io.gfile.glob(pattern):
        try:
            yield from tf.compat.v1.train.summary_iterator(path)
        except tf.errors.DataLossError as error:
            logging.warning(
                "Skipping rest of the file due to encountering data corruption error; file path: "
                "%s; original error raised by `tf.train.summary_iterator`: %s",
                path,
                error,
            )
