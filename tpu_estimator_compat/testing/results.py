"""The values of a few steps of a model_fn, as NumPy arrays by name."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

Arrays = Mapping[str, np.ndarray]


@dataclasses.dataclass(frozen=True)
class Result:
    """The values of `testing.run`. Variables have TensorFlow 1's names, such as "dense/kernel".

    Attributes:
      mode: a `ModeKeys` value.
      replicas: the number of replicas that made the steps.
      losses: the loss of each training step, the mean over replicas, of shape [steps]; in EVAL the
        mean of all steps, of shape [1]; empty in PREDICT.
      metrics: the evaluated metrics by name; empty but in EVAL.
      predictions: arrays by key, examples along axis 0; empty but in PREDICT. A sole tensor has the
        key "predictions".
      before: all global variables before the first step.
      after: the same after the last step.
      trainable: names of the trainable variables.
      gradients: arrays that the optimizer applied in the first step, by variable: summed if
        the optimizer sums, clipped if model_fn clips. None where there is no gradient. Lacks
        variables whose optimizer is no `tf.train.Optimizer`, or works within a branch or loop.
      disagreement: the largest absolute difference between the replicas' values of a variable
        after the last step, for variables where there is one. Averages that each replica keeps for
        itself may differ, trainable variables must not.
      summaries: per tag, the (step, value) pairs in the event files; the value is a float for a
        scalar, else a `Summary.Value`.
      host_calls: the arguments of each call of host_call's function, by name or position.
      global_step: after the last step.
      update_ops_ran: names of the operations in the collection UPDATE_OPS that train_op runs.
      update_ops_left_out: names of those that it does not run.
      graph: the captured graph of model_fn.
      spec: the result of model_fn.
    """

    mode: str
    replicas: int
    losses: np.ndarray
    metrics: Mapping[str, Any]
    predictions: Arrays
    before: Arrays
    after: Arrays
    trainable: Sequence[str]
    gradients: Mapping[str, np.ndarray | None]
    disagreement: Mapping[str, float]
    summaries: Mapping[str, Sequence[tuple[int, Any]]]
    host_calls: Sequence[Arrays]
    global_step: int
    update_ops_ran: Sequence[str]
    update_ops_left_out: Sequence[str]
    graph: tf.Graph = dataclasses.field(repr=False)
    spec: Any = dataclasses.field(repr=False)

    @property
    def loss(self) -> float:
        """The loss of the last step.

        Raises:
          ValueError: there is none: predictions have no loss.
        """
        if not len(self.losses):
            raise ValueError(f"There is no loss in mode {self.mode!r}.")
        return float(self.losses[-1])

    @property
    def moved(self) -> list[str]:
        """Names of the variables that the steps changed."""
        return [
            name
            for name, value in self.after.items()
            if not np.array_equal(value, self.before[name])
        ]

    def as_dict(self) -> dict[str, Any]:
        """The losses, metrics and predictions, as the fixture `golden` stores them."""
        found = {"losses": self.losses, "metrics": self.metrics, "predictions": self.predictions}
        return {name: value for name, value in found.items() if len(value)}
