"""Errors and warnings of a training that cannot go on, or does not reach its last step."""

from __future__ import annotations

import math
from typing import Any

import tensorflow as tf
from tensorflow.compat.v1 import logging

_MOST_STANDING = 500  # steps without a new global step: some models accumulate gradients


class LossNanHook(tf.compat.v1.train.NanTensorHook):
    """Raises at a NaN in the loss, with a note on the step; the inner loop ends there by itself."""

    def after_run(self, run_context: Any, run_values: Any) -> None:
        try:
            super().after_run(run_context, run_values)
        except tf.compat.v1.train.NanLossDuringTrainingError as error:
            error.add_note(
                f"The loss of step {run_context.session.global_step()} is NaN. A checkpoint of "
                "that step has NaN in its variables: go on from an earlier one. Lower the learning "
                "rate, clip gradients, or find the first NaN with tf.debugging.check_numerics in "
                "model_fn."
            )
            raise


class StepLimit:
    """The last step of a training, and its progress since the global step `first`.

    `warns`: whether to warn of a constant step; false if TensorFlow's StepCounterHook does.
    """

    def __init__(self, first: int, steps: int | None, max_steps: int | None, *, warns: bool):
        last = max_steps if steps is None else first + steps
        self._last = None if last == math.inf else last
        self._argument = f"max_steps={max_steps}" if steps is None else f"steps={steps}"
        self._first = self._step = first
        self._warns = warns
        self._standing = 0

    def after_run(self, steps: int, global_step: int) -> None:
        """Raises RuntimeError if the global step never rises, so that training would not end."""
        before, self._step = self._step, global_step
        if self._last is None:
            return
        if global_step == before and self._standing and self._warns:
            self._warns = False
            logging.warning(
                "It seems that global step (tf.train.get_global_step) has not been increased. "
                "Current value (could be stable): %s vs previous value: %s. You could increase the "
                "global step by passing tf.train.get_global_step() to Optimizer.apply_gradients or "
                "Optimizer.minimize.",
                global_step,
                before,
            )
        self._standing += steps
        if global_step == self._first and self._standing >= _MOST_STANDING:
            raise RuntimeError(
                f"train_op has made {self._standing} steps, and the global step still is "
                f"{global_step}: with {self._argument}, training would never end. Raise the global "
                "step in train_op: pass global_step=tf.train.get_global_step() to "
                "optimizer.minimize(...) or optimizer.apply_gradients(...)."
            )

    def data_ended(self, global_step: int) -> None:
        if self._last is not None and global_step < self._last:
            logging.warning(
                "The data ended at step %d of %s (%s), and so did training. Call repeat() of the "
                "dataset for more steps.",
                global_step,
                self._last,
                self._argument,
            )
