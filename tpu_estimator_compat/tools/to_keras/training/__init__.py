"""What trains: the modes' programs merged into one, the loss, the optimizer and the metrics."""

from __future__ import annotations

import dataclasses

import numpy as np

from tpu_estimator_compat.tools.to_keras.graph import Code, Program


@dataclasses.dataclass(eq=False)
class Metric:
    """A metric of an evaluation.

    Attributes:
      name: as the evaluation reports it.
      made: constructs the Keras metric.
      program: its outputs are the arguments of `update_state`, by name and in order; its sources
        are as those of `Training.loss`.
    """

    name: str
    made: Code
    program: Program


@dataclasses.dataclass(eq=False)
class Training:
    """How a model trains and evaluates.

    Attributes:
      program: one program of all modes. Its outputs are the predictions, and after them what the
        loss and the metrics need besides. In a training step, `graph.TRAINING` is True.
      loss: its output "loss" is what `compute_loss` returns. Its nodes of kind INPUT and LABEL have
        attrs["text"], the expression for their value, such as 'y_pred["logits"]', 'x["mask"]' or
        'y'. It may have nodes WEIGHT. None where no mode has a loss.
      optimizer: constructs the Keras optimizer; None where there is no exact one.
      classes: sources of the classes that `optimizer` and `metrics` use: schedules, optimizers.
      slots: by the optimizer's attribute, such as "_momentums", the variables' slots by the name
        of their weight.
      step: the global step of the weights.
      notes: what the file leaves out or does otherwise, each a sentence with what to use instead.
    """

    program: Program
    loss: Program | None = None
    optimizer: Code | None = None
    classes: list[str] = dataclasses.field(default_factory=list)
    slots: dict[str, dict[str, np.ndarray]] = dataclasses.field(default_factory=dict)
    step: int = 0
    metrics: list[Metric] = dataclasses.field(default_factory=list)
    notes: list[str] = dataclasses.field(default_factory=list)
