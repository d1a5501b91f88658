"""SIGTERM and Ctrl-C end training as a hook would: after the current step, with a checkpoint.

A preempted machine gets SIGTERM some seconds before its end. The signal's previous handler is
called after the checkpoint is written.
"""

from __future__ import annotations

import signal
import threading
from typing import Any

import keras
import tensorflow as tf
from tensorflow.compat.v1 import logging

from tpu_estimator_compat.engine.runtime import process_exit

EXIT_CODE = 128 + signal.SIGTERM  # what a shell reports of a process that SIGTERM ended


class Preemption(tf.compat.v1.train.SessionRunHook):
    """Requests a stop after a signal; as a context, listens for SIGTERM and Ctrl-C.

    It listens in the main thread only. It leaves alone signals that are ignored or have a handler
    that Python did not set, Ctrl-C where a script has a handler, and handlers that a hook sets
    within the context. Ctrl-C raises KeyboardInterrupt at once before the first step, and the
    second time.

    After a signal the context's end calls the previous handler; without one for SIGTERM, it raises
    SystemExit(143). With `listen` of False the context does nothing.
    """

    def __init__(self, *, listen: bool = True) -> None:
        self._listen = listen
        self._before: dict[int, Any] = {}
        self._came: int | None = None
        self._begun = self._announced = False

    @property
    def signalled(self) -> bool:
        return self._came is not None

    def __enter__(self) -> Preemption:
        if self._listen and threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGINT):
                before = signal.getsignal(number)
                if _is_free(number, before):
                    self._before[number] = before
                    signal.signal(number, self._note)
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: Any) -> None:
        for number, before in self._before.items():
            if signal.getsignal(number) == self._note:
                signal.signal(number, before)
        if self._came is None:
            return
        if kind is None:
            self._hand_on(self._came)
        elif kind is KeyboardInterrupt:
            logging.warning(
                "Ctrl-C a second time: training ended at once. The steps since the last checkpoint "
                "are lost."
            )

    def begin_steps(self) -> None:
        """Called before the first step: from here on, a signal should not lose steps."""
        self._begun = True

    def interrupted(self) -> bool:
        """Whether a signal has come; logs once the effect of Ctrl-C.

        The handler itself must not log: it may have interrupted the logging module.
        """
        if self._came == signal.SIGINT and not self._announced:
            self._announced = True
            logging.warning(
                "Ctrl-C: training ends after the step at hand, and saves as it does at its end. "
                "Ctrl-C again ends it at once, without saving."
            )
        return self.signalled

    def _note(self, signum: int, frame: Any) -> None:
        if signum == signal.SIGINT and (self.signalled or not self._begun):
            self._before[signum](signum, frame)
        self._came = signum

    def _hand_on(self, number: int) -> None:
        handler = self._before[number]
        name = signal.Signals(number).name
        if callable(handler):
            logging.info("Training stopped on %s; calling the signal's handler.", name)
            handler(number, None)
            return
        logging.info("Training stopped on %s; exiting with code %d.", name, EXIT_CODE)
        process_exit.set_exit_code(EXIT_CODE)
        raise SystemExit(EXIT_CODE)

    def after_create_session(self, session: Any, coord: Any) -> None:
        del session, coord
        self.begin_steps()

    def after_run(self, run_context: Any, run_values: Any) -> None:
        del run_values
        if self.interrupted():
            run_context.request_stop()


def _is_free(number: int, handler: Any) -> bool:
    """Whether a signal may be listened for: a script's own handler for Ctrl-C stays."""
    if number == signal.SIGINT:
        return handler is signal.default_int_handler
    return handler is not None and handler != signal.SIG_IGN


class PreemptionCallback(keras.callbacks.Callback):
    """Ends `fit`, and an evaluation within, after a signal."""

    def __init__(self, preemption: Preemption) -> None:
        super().__init__()
        self._preemption = preemption

    def on_train_begin(self, logs: Any = None) -> None:
        del logs
        self._preemption.begin_steps()

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        del batch, logs
        if self._preemption.interrupted():
            self.model.stop_training = True

    def on_test_batch_end(self, batch: int, logs: Any = None) -> None:
        del batch, logs
        if self._preemption.interrupted():
            self.model.stop_evaluating = self.model.stop_training = True
