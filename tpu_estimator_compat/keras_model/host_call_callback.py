"""The callback that makes the host calls of `fit` and `evaluate`."""

from __future__ import annotations

from typing import Any

import keras

from tpu_estimator_compat.engine.modes.model_modes import ModelModes
from tpu_estimator_compat.spec import ModeKeys


class HostCallCallback(keras.callbacks.Callback):
    """Makes the host calls of each loop of steps, and writes their summaries at the end.

    A loop may return before the host calls of its steps are made: they run beside the next steps.
    This callback stands before a user's in the list of callbacks, so that those see what host calls
    did.

    Args:
      modes: the model's.
    """

    def __init__(self, modes: ModelModes):
        super().__init__()
        self._modes = modes

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Finishes the host calls of training steps."""
        del batch, logs
        self._modes[ModeKeys.TRAIN].ready_session.finish_host_calls()

    def on_test_batch_end(self, batch: int, logs: Any = None) -> None:
        """Finishes the host calls of evaluation steps."""
        del batch, logs
        self._modes[ModeKeys.EVAL].ready_session.finish_host_calls()

    def on_train_end(self, logs: Any = None) -> None:
        """Writes out the summaries."""
        del logs
        self._modes.flush()

    def on_test_end(self, logs: Any = None) -> None:
        """Writes out the summaries."""
        del logs
        self._modes.flush()
