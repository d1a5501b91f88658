"""The result of a loop, and the reasons to end it early: NaN, end of data, interruption."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import tensorflow as tf


@dataclasses.dataclass(frozen=True)
class LoopResult:
    """The result of n steps.

    Attributes:
      steps: fewer than asked for where the data ended, the loss was NaN, or a signal came.
      loss: the last step's loss, a scalar tensor.
      loss_sum: the sum of the steps' losses.
      exhausted: whether no more steps can be made: the data ended, here or on another machine.
      counter: the counter's value after the steps; None without a counter, or where the data ended.
      counter_before: the counter before the last step; None also where the loop does not note it.
      stopped_by_nan: whether the loop ended because the last step's loss was NaN.
    """

    steps: int
    loss: tf.Tensor
    loss_sum: float
    exhausted: bool
    counter: tf.Tensor | None = None
    counter_before: tf.Tensor | None = None
    stopped_by_nan: bool = False

    @property
    def is_last(self) -> bool:
        """Whether no step follows: the data ended, or the loss was NaN."""
        return self.exhausted or self.stopped_by_nan

    def followed_by(self, later: LoopResult) -> LoopResult:
        return dataclasses.replace(
            later,
            steps=self.steps + later.steps,
            loss=later.loss if later.steps else self.loss,
            loss_sum=self.loss_sum + later.loss_sum,
        )


def ends_training(loss: Any) -> Any:
    """Whether a scalar loss ends training: NaN does, as for TF's NanTensorHook, infinity does not.

    Returns a bool; in a function under construction, a bool tensor.
    """
    if tf.is_tensor(loss) and not tf.executing_eagerly():
        return tf.math.is_nan(loss) if loss.dtype.is_floating else tf.constant(False)
    return math.isnan(float(loss))
