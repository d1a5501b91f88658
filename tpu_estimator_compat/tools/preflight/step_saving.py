"""Saves a training step in a folder, to be tried on a chip where only JAX is installed."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import inspect
import pathlib
import tempfile
from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from tpu_estimator_compat.config.arguments import check_empty_folder
from tpu_estimator_compat.environment import JAX, TENSORFLOW
from tpu_estimator_compat.estimator.rules import InputFn
from tpu_estimator_compat.estimator.tpu_estimator import TPUEstimator
from tpu_estimator_compat.tools.preflight import run_step, step_folder
from tpu_estimator_compat.tools.preflight.step_folder import Saved

STEPS = 2
"""The number of steps whose losses are compared; the variables are compared after the last."""


class _Collected(Exception):
    """Ends the session: the hook has taken the step and its values, or the data has ended."""


def save_step(
    estimator: TPUEstimator,
    input_fn: InputFn,
    folder: str,
    *,
    largest: int,
    platforms: tuple[str, ...],
    estimates: dict[str, int],
) -> pathlib.Path:
    """Writes the folder that `step_folder.py` describes, and returns the script in it.

    The step is that of `runtime="jax"` on one device with the whole batch. Unless it draws random
    numbers, TensorFlow trains two steps on this machine's CPU from the same values, as reference.
    It trains two steps again, from values with a rounding error: the change of each variable says
    how exactly the variable can be compared. Nothing is written to model_dir.

    Args:
      estimator: the model; its variables get initial values, as in a new training.
      folder: must not exist, or be empty.
      largest: bytes of variables and inputs to save; random values replace larger ones of
        floating-point numbers. Integers and values of up to 64 KiB are saved all the same.
      platforms: JAX platforms, such as ("cpu", "cuda", "tpu").
      estimates: bytes of memory that preflight expects, by topology.
    """
    check_empty_folder(folder)
    taker = _Taker(largest)
    with contextlib.suppress(_Collected):
        _train(estimator, JAX, input_fn, taker)
    saved = taker.saved()
    if not saved.draws:
        again = _again(saved, taker.element_spec)
        first = {name: value.array() for name, value in saved.variables.items()}
        reference = _Reference(first)
        _train(estimator, TENSORFLOW, again, reference)
        nudged = _Reference({name: run_step.nudged(value) for name, value in first.items()})
        _train(estimator, TENSORFLOW, again, nudged)
        saved = dataclasses.replace(
            saved,
            losses=reference.losses,
            after=reference.after,
            noise=run_step.noise(reference.after, nudged.after),
        )
    return step_folder.write(saved, folder, platforms, estimates)


def _train(estimator: TPUEstimator, runtime: str, input_fn: InputFn, hook: Any) -> None:
    """Trains for two steps in a temporary folder, on one replica."""
    with tempfile.TemporaryDirectory() as model_dir:
        own: Any = copy.copy(estimator)
        config = estimator._config
        of_tpu = config.tpu_config._replace(
            iterations_per_loop=1, num_shards=1, num_cores_per_replica=None
        )
        own._config = config.replace(
            model_dir=model_dir,
            tpu_config=of_tpu,
            runtime=runtime,
            save_summary_steps=None,
            save_checkpoints_steps=None,
            save_checkpoints_secs=None,
            log_step_count_steps=None,
            train_distribute=None,
            eval_distribute=None,
        )
        own._model_dir, own._use_tpu = model_dir, True
        # Unwrapped: the log must not say that a training ended.
        inspect.unwrap(type(own).train)(own, input_fn, hooks=[hook], max_steps=STEPS)


class _Taker(tf.compat.v1.train.SessionRunHook):  # type: ignore[misc]
    """Takes the step, its first values and its input from a session of JAX's runtime."""

    def __init__(self, largest: int):
        self._largest = largest
        self._saved: Saved | None = None
        self.element_spec: Any = None

    def after_create_session(self, session: Any, coord: Any) -> None:
        del coord
        runner = session.runner
        step = runner.step
        self.element_spec = session.input.deployed_input.element_spec
        feeds = runner.feeds(session.iterator(), STEPS)
        function = step.function(1)
        if any(len(feed) < STEPS for feed in feeds):
            raise _Collected
        variables = {name: np.asarray(runner.store.peek(name)) for name in function.names}
        numbered = {i: np.asarray(feed) for i, feed in enumerate(feeds)}
        values = step_folder.to_save({**numbered, **variables}, self._largest)
        self._saved = step_folder.Saved(
            step.module,
            step.number_of_loss,
            {name: values[name] for name in variables},
            [values[i] for i in numbered],
        )
        raise _Collected

    def saved(self) -> Saved:
        if self._saved is None:
            raise ValueError(f"The data ended before {STEPS} steps; --save-step needs them.")
        return self._saved


class _Reference(tf.compat.v1.train.SessionRunHook):  # type: ignore[misc]
    """Assigns first values to the variables, and records losses and last values."""

    def __init__(self, first: Mapping[str, np.ndarray]):
        self._first = first
        self.losses: list[float] = []
        self.after: dict[str, np.ndarray] = {}

    def begin(self) -> None:
        [*_, self._loss] = tf.compat.v1.get_collection(tf.compat.v1.GraphKeys.LOSSES)
        self._variables = {
            v.op.name: v for v in tf.compat.v1.global_variables() if v.op.name in self._first
        }

    def after_create_session(self, session: Any, coord: Any) -> None:
        del coord
        for name, value in self._first.items():
            session.store.assign(name, value)

    def before_run(self, run_context: Any) -> Any:
        return tf.compat.v1.train.SessionRunArgs(self._loss)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        self.losses.append(float(run_values.results))

    def end(self, session: Any) -> None:
        self.after = session.run(self._variables)


def _again(saved: Saved, element_spec: Any) -> InputFn:
    feeds = [feed.array() for feed in saved.feeds]

    def input_fn(params: Any) -> tf.data.Dataset:
        del params
        parts = zip(feeds, tf.nest.flatten(element_spec), strict=True)
        shaped = [feed.reshape(len(feed), *spec.shape) for feed, spec in parts]
        return tf.data.Dataset.from_tensor_slices(tf.nest.pack_sequence_as(element_spec, shaped))

    return input_fn
