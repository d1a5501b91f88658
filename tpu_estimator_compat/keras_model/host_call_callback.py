"""The callback that completes the host calls of `fit` and `evaluate`."""

from __future__ import annotations

from typing import Any

import keras

from tpu_estimator_compat.engine.modes.model_modes import ModelModes
from tpu_estimator_compat.spec import ModeKeys


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
