"""The result of a loop of steps, and the conditions that end it early."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from tpu_estimator_compat.engine.runtime import eager


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


def ends_training(loss: Any) -> Any:
    """Whether a step of this loss is the last: NaN is, as for TF's NanTensorHook, infinity is not.

    Args:
      loss: a scalar: an array, or a tensor.

    Returns:
      A bool; a tensor of one in a function under construction.
    """
    if tf.is_tensor(loss) and not tf.executing_eagerly():
        return tf.math.is_nan(loss)
    return bool(np.isnan(np.asarray(loss)))


def in_pieces(
    piece: Callable[[int], LoopResult],
    steps: int,
    *,
    stop_on_nan: bool,
    interrupted: Callable[[], bool],
) -> LoopResult:
    """Runs up to `steps` steps, piece by piece: between two of them Python looks for signals.

    Args:
      piece: runs some of so many steps, one at least where the data has not ended.
      steps: the number of steps to run.
      stop_on_nan: whether a step whose loss is NaN is the last.
      interrupted: asked between two pieces whether to end early.
    """

    def judged(steps: int) -> LoopResult:
        result = piece(steps)
        # Where the data has ended, so did the loop, and not for a loss.
        stopped = stop_on_nan and not result.exhausted and ends_training(result.loss)
        return dataclasses.replace(result, stopped_by_nan=True) if stopped else result

    with eager.eager_mode():
        made = judged(steps)
        while made.steps < steps and not (made.exhausted or made.stopped_by_nan or interrupted()):
            made = made.followed_by(judged(steps - made.steps))
        return made
