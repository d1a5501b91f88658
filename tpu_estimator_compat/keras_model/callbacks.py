"""The callbacks of `fit`, `evaluate` and `predict`: they count steps, and complete host calls."""

from __future__ import annotations

from typing import Any

import keras

from tpu_estimator_compat.engine.modes.model_modes import ModelModes
from tpu_estimator_compat.spec import ModeKeys


class RemainingSteps(keras.callbacks.Callback):
    """Follows Keras' loops, so that a call of several steps does not run past the end.

    Attributes:
      last: the index of the last step that ran, from 0; None before the first.
    """

    def __init__(self) -> None:
        super().__init__()
        self._left: int | None = None
        self._first = 0
        self.last: int | None = None
        self._of_validation: tuple[int | None] | None = None

    def within(self, steps: int) -> int:
        """The smaller of `steps` and the number of steps left."""
        return steps if self._left is None else min(steps, self._left)

    def made(self, steps: int) -> None:
        self.last = self._first + steps - 1

    def set_validation_steps(self, steps: int | None) -> None:
        """Sets the number of validation steps: the callbacks' `params` hold that of training."""
        self._of_validation = (steps,)

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        del logs
        self._begin(self._given(), batch)

    on_predict_batch_begin = on_train_batch_begin

    def _given(self) -> int | None:
        return self.params.get("steps") if self.params else None

    def _begin(self, steps: int | None, batch: int) -> None:
        self._left = None if steps is None else steps - batch
        self._first = batch

    def on_test_begin(self, logs: Any = None) -> None:
        del logs
        self._left = None

    def on_test_batch_begin(self, batch: int, logs: Any = None) -> None:
        del logs
        [steps] = self._of_validation or (self._given(),)
        self._begin(steps, batch)


class StepBar(keras.callbacks.ProgbarLogger):
    """Keras' progress bar, which counts steps; Keras' own counts calls of several steps."""

    def __init__(self, counter: RemainingSteps) -> None:
        super().__init__()
        self._counter = counter

    def _update_progbar(self, batch: int, logs: Any = None) -> None:
        super()._update_progbar(batch if self._counter.last is None else self._counter.last, logs)


class HostCallCallback(keras.callbacks.Callback):
    """Waits for the host calls of each loop of steps, and flushes their summaries at the end.

    Host calls run beside the next steps, so a loop may return before they have run. This callback
    comes before the user's callbacks, so that those see the effects of host calls.
    """

    def __init__(self, modes: ModelModes):
        super().__init__()
        self._modes = modes

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        del batch, logs
        self._modes[ModeKeys.TRAIN].ready_session.finish_host_calls()

    def on_test_batch_end(self, batch: int, logs: Any = None) -> None:
        del batch, logs
        self._modes[ModeKeys.EVAL].ready_session.finish_host_calls()

    def on_train_end(self, logs: Any = None) -> None:
        del logs
        self._modes.flush()

    on_test_end = on_train_end
