"""SIGTERM ends training as a hook would: after the step at hand, with a checkpoint.

A machine that is taken away sends SIGTERM some seconds before the end. Whoever had the signal
before gets it when the checkpoint is written.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf
from tensorflow.compat.v1 import logging

from tpu_estimator_compat.runtime import aside

EXIT_CODE = 128 + signal.SIGTERM  # what a shell reports of a process that SIGTERM ended


class Preemption(tf.compat.v1.train.SessionRunHook):
    """Requests a stop once SIGTERM has come; a context that listens for the signal.

    It does not listen outside the main thread, nor where the signal is ignored or has a handler
    that was not set by Python. A handler that a hook sets within the context wins.

    Args:
      listen: False for a context that does nothing.

    Attributes:
      signalled: whether the signal has come.

    Example:

        with Preemption() as preemption:
            with MonitoredSession(..., hooks=[..., preemption]) as session:
                ...  # ends early on SIGTERM
        # on SIGTERM, does not come here: SystemExit(143), or the handler of before was called
    """

    def __init__(self, *, listen: bool = True) -> None:
        self._listen = listen
        self.signalled = False
        self._before: Any = None

    def __enter__(self) -> Preemption:
        if self._listen and threading.current_thread() is threading.main_thread():
            before = signal.getsignal(signal.SIGTERM)
            if before is not None and before != signal.SIG_IGN:
                self._before = before
                signal.signal(signal.SIGTERM, self._note)
        return self

    def __exit__(self, *error: Any) -> None:
        if self._before is None:
            return
        if signal.getsignal(signal.SIGTERM) == self._note:
            signal.signal(signal.SIGTERM, self._before)
        if self.signalled and error[0] is None:
            self._hand_on()

    def _note(self, signum: int, frame: Any) -> None:
        del signum, frame
        self.signalled = True

    def _hand_on(self) -> None:
        handler: Callable[..., Any] | int = self._before
        if callable(handler):
            logging.info("Training stopped on SIGTERM; calling the signal's handler.")
            handler(signal.SIGTERM, None)
            return
        logging.info("Training stopped on SIGTERM; exiting with code %d.", EXIT_CODE)
        aside.set_exit_code(EXIT_CODE)
        raise SystemExit(EXIT_CODE)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        """Ends training."""
        del run_values
        if self.signalled:
            run_context.request_stop()


class PreemptionCallback(keras.callbacks.Callback):
    """Ends `fit` once SIGTERM has come: its epoch, and an evaluation within.

    Args:
      preemption: listens for the signal.
    """

    def __init__(self, preemption: Preemption) -> None:
        super().__init__()
        self._preemption = preemption

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Ends the training."""
        del batch, logs
        if self._preemption.signalled:
            self.model.stop_training = True

    def on_test_batch_end(self, batch: int, logs: Any = None) -> None:
        """Ends the evaluation, and the training that it is a part of."""
        del batch, logs
        if self._preemption.signalled:
            self.model.stop_evaluating = self.model.stop_training = True
