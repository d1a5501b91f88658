"""The result of a loop of steps, and the conditions that end it early."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import tensorflow as tf


@dataclasses.dataclass(frozen=True)
class LoopResult:
    """The result of n steps.

    Attributes:
      steps: the number of steps; fewer than asked for where the data ended or the loss was NaN.
      loss: the last step's loss, a scalar tensor.
      loss_sum: the sum of the steps' losses.
      exhausted: whether the data ended.
      counter: the loop's counter; None where it has none, and where the data ended.
      counter_before: the counter before the last step; None where the loop does not note it, too.
      stopped_by_nan: whether the last step's loss was NaN, and the loop ended for it.
    """

    steps: int
    loss: tf.Tensor
    loss_sum: float
    exhausted: bool
    counter: tf.Tensor | None = None
    counter_before: tf.Tensor | None = None
    stopped_by_nan: bool = False

    def followed_by(self, later: LoopResult) -> LoopResult:
        """The result of these steps and the later ones together."""
        return dataclasses.replace(
            later,
            steps=self.steps + later.steps,
            loss=later.loss if later.steps else self.loss,
            loss_sum=self.loss_sum + later.loss_sum,
        )


def is_nan(loss: tf.Tensor) -> Any:
    """Whether `loss` ends training: NaN does, as for TF's NanTensorHook; infinity does not.

    Args:
      loss: a scalar.

    Returns:
      A bool; a tensor of one in a function under construction.
    """
    return bool(np.isnan(loss.numpy())) if tf.executing_eagerly() else tf.math.is_nan(loss)
