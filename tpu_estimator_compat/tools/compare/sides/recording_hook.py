"""The hook that records a training, and the disturbance that measures rounding."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf

# Relative: on the original's side, this package has another name.
from . import records


class RecordingHook(tf.train.SessionRunHook):  # type: ignore[misc]
    """Records the loss of every step, and the start, input and result of the first step."""

    def __init__(self, recorder: Any, model_dir: str):
        self._recorder = recorder
        self._model_dir = model_dir
        self._first = True
        self._start_kept = False
        seed = recorder.job["disturb"]
        self._chance = None if seed is None else np.random.RandomState(seed)

    def begin(self) -> None:
        self._loss = self._recorder.loss()
        self._global_step = tf.train.get_global_step()
        self._variables = {v.op.name: v for v in tf.global_variables()}
        self._trainable = list(tf.trainable_variables())
        # Only the first training has a first step; later ones continue from its end.
        self._first = not self._recorder.trainable
        self._inputs = self._recorder.graph_inputs()
        self._activations = {}
        if self._first and self._recorder.job["first_step"]:
            self._activations = self._recorder.activations()
        self._recorder.trainable = [v.op.name for v in self._trainable]

    def before_run(self, run_context: Any) -> Any:
        if self._chance is not None:
            disturb(self._trainable, run_context.session, self._chance)
        # The fetches are the same after the first step: others would compile another function.
        fetches = {"loss": self._loss} if self._loss is not None else {}
        fetches["inputs"] = self._inputs
        if self._first and self._activations:
            fetches["activations"] = self._activations
        return tf.train.SessionRunArgs(fetches)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        loss = run_values.results.get("loss")
        # A fetch together with the loss could return the value before the step.
        step = int(run_context.session.run(self._global_step))
        # Each replica may report a loss.
        loss = None if loss is None else float(np.mean(loss))
        self._recorder.step_ended(step, loss, run_values.results["inputs"])
        if self._first:
            self._first = False
            values = run_context.session.run(self._variables)
            folder = self._recorder.folder
            records.save_arrays(os.path.join(folder, "first_update"), values)
            records.save_arrays(os.path.join(folder, "input"), run_values.results["inputs"])
            found = run_values.results.get("activations", {})
            records.save_arrays(os.path.join(folder, "activations"), found)
        if not self._start_kept:
            self._start_kept = records.keep_start(self._model_dir)

    def end(self, session: Any) -> None:
        if not self._start_kept:  # the checkpoint was still being written
            self._start_kept = records.keep_start(self._model_dir)


def disturb(variables: list[Any], session: Any, chance: np.random.RandomState) -> None:
    """Moves each float32 and float64 element to the next float, up or down at random."""
    for variable, value in zip(variables, session.run(variables)):  # noqa: B905
        if value.dtype in (np.float32, np.float64):
            ends = np.where(chance.randint(2, size=value.shape), np.inf, -np.inf)
            moved = np.nextafter(value, ends.astype(value.dtype))
            # Zeros stay: their next float is denormal, and rounding would not have changed them.
            # Not `variable.load`, which fails for ref variables that a checkpoint initializes.
            assign = getattr(variable.initializer, "op", variable.initializer)
            given = np.where(value == 0, value, moved).astype(value.dtype)
            session.run(assign, {assign.inputs[1]: given})
