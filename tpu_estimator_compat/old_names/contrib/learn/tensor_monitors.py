"""Monitors of `tf.contrib.learn` that show or keep what tensors are in a step."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf

from tpu_estimator_compat.estimator import NanLossDuringTrainingError
from tpu_estimator_compat.old_names.contrib.learn.monitor_base import EveryN


class PrintTensor(EveryN):
    """Logs tensors.

    Args:
      tensor_names: their names, or a dict of what to call them to their names.
      every_n: the number of steps between two lines.
      first_n: of how many global steps at the beginning there are lines in any case.
    """

    _line = "Step %d: %s"

    def __init__(
        self,
        tensor_names: Mapping[str, str] | Iterable[str],
        every_n: int = 100,
        first_n: int = 1,
    ):
        super().__init__(every_n, first_n)
        if not isinstance(tensor_names, Mapping):
            tensor_names = {name: name for name in tensor_names}
        self._tensor_names = dict(tensor_names)

    def every_n_step_begin(self, step: int) -> list[Any]:
        """Asks for the tensors."""
        super().every_n_step_begin(step)
        return list(self._tensor_names.values())

    def every_n_step_end(self, step: int, outputs: dict[Any, Any]) -> bool:
        """Logs them."""
        super().every_n_step_end(step, outputs)
        shown = [
            f"{tag} = {outputs[name]!s}"
            for tag, name in self._tensor_names.items()
            if name in outputs
        ]
        tf.logging.info(self._line, step, ", ".join(shown))
        return False


class LoggingTrainable(PrintTensor):
    """Logs trainable variables.

    Args:
      scope: a pattern for the beginning of their names; None for all.
      every_n: as in `PrintTensor`.
      first_n: as in `PrintTensor`.
    """

    _line = "Logging Trainable: Step %d: %s"

    def __init__(self, scope: str | None = None, every_n: int = 100, first_n: int = 1):
        super().__init__({}, every_n, first_n)
        self._scope = scope

    def every_n_step_begin(self, step: int) -> list[Any]:
        """Asks for the variables, which are there by now."""
        found = tf.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES, scope=self._scope)
        self._tensor_names = {variable.name: variable.name for variable in found}
        return super().every_n_step_begin(step)


class CaptureVariable(EveryN):
    """Keeps what a variable or a tensor was.

    Args:
      var_name: its name, with `:0`.
      every_n: the number of steps between two values.
      first_n: of how many global steps at the beginning there are values in any case.
    """

    def __init__(self, var_name: str, every_n: int = 100, first_n: int = 1):
        super().__init__(every_n, first_n)
        self._var_name = var_name
        self._var_values: dict[int, Any] = {}

    @property
    def values(self) -> dict[int, Any]:
        """Its values, by step."""
        return self._var_values

    def every_n_step_begin(self, step: int) -> list[Any]:
        """Asks for it."""
        super().every_n_step_begin(step)
        return [self._var_name]

    def every_n_step_end(self, step: int, outputs: dict[Any, Any]) -> bool:
        """Keeps it."""
        super().every_n_step_end(step, outputs)
        self._var_values[step] = outputs[self._var_name]
        return False


class SummarySaver(EveryN):
    """Writes a summary.

    Args:
      summary_op: the summary, a text tensor; None for the scaffold's.
      save_steps: the number of steps between two summaries.
      output_dir: the directory to write to; None for the estimator's directory.
      summary_writer: the writer; None for a new one.
      scaffold: has the summary, if it is not given.
    """

    def __init__(
        self,
        summary_op: Any,
        save_steps: int = 100,
        output_dir: str | None = None,
        summary_writer: Any = None,
        scaffold: Any = None,
    ):
        super().__init__(every_n_steps=save_steps)
        self._summary_op = summary_op
        self._summary_writer = summary_writer
        if summary_writer is None and output_dir:
            self._summary_writer = tf.summary.FileWriterCache.get(output_dir)
        self._scaffold = scaffold

    def set_estimator(self, estimator: Any) -> None:
        """Takes the estimator's directory, if none was given."""
        super().set_estimator(estimator)
        if self._summary_writer is None:
            self._summary_writer = tf.summary.FileWriterCache.get(estimator.model_dir)

    def every_n_step_begin(self, step: int) -> list[Any]:
        """Asks for the summary."""
        super().every_n_step_begin(step)
        if self._summary_op is None and self._scaffold is not None:
            self._summary_op = self._scaffold.summary_op
        return [] if self._summary_op is None else [self._summary_op]

    def every_n_step_end(self, step: int, outputs: dict[Any, Any]) -> bool:
        """Writes it."""
        super().every_n_step_end(step, outputs)
        if self._summary_op is not None and self._summary_writer:
            self._summary_writer.add_summary(outputs[self._summary_op], step)
        return False

    def end(self, session: Any = None) -> None:
        """Writes what waits."""
        super().end(session=session)
        if self._summary_writer:
            self._summary_writer.flush()


class NanLoss(EveryN):
    """Ends training where the loss is NaN.

    Args:
      loss_tensor: the loss.
      every_n_steps: the number of steps between two looks.
      fail_on_nan_loss: whether to raise NanLossDuringTrainingError, and not only stop.
    """

    def __init__(self, loss_tensor: Any, every_n_steps: int = 100, fail_on_nan_loss: bool = True):
        super().__init__(every_n_steps=every_n_steps)
        self._loss_tensor = loss_tensor
        self._fail_on_nan_loss = fail_on_nan_loss

    def every_n_step_begin(self, step: int) -> list[Any]:
        """Asks for the loss."""
        super().every_n_step_begin(step)
        return [self._loss_tensor]

    def every_n_step_end(self, step: int, outputs: dict[Any, Any]) -> bool:
        """Whether to stop.

        Raises:
          NanLossDuringTrainingError: the loss is NaN, and that is an error.
        """
        super().every_n_step_end(step, outputs)
        if not np.isnan(outputs[self._loss_tensor]):
            return False
        if self._fail_on_nan_loss:
            tf.logging.error("Model diverged with loss = NaN.")
            raise NanLossDuringTrainingError
        tf.logging.warning("Model diverged with loss = NaN.")
        return True
