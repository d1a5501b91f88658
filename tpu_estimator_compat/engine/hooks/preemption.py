"""Ends training on a signal: after the current step, with a checkpoint.

A process gets SIGTERM some seconds before its machine is preempted, and SIGHUP when its terminal
closes. The signal's previous handler is called after the checkpoint is written.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from typing import Any

import keras
import tensorflow as tf
from tensorflow.compat.v1 import logging

from tpu_estimator_compat.engine.functions.cancelling import cancelled_by
from tpu_estimator_compat.engine.signals import held_lock
from tpu_estimator_compat.engine.signals.signal_watch import SignalWatch

_NUMBERS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
_PATIENCE = 3.0  # seconds without computation, after which a signal cancels a step
# The same where an accelerator or another machine may compute. Clouds end a process after 30.
_PATIENCE_ELSEWHERE = 25.0
_HURRY = 0.5  # seconds that a step has where the signal ends the process at once
_listening: list[Preemption] = []


class Preemption(tf.compat.v1.train.SessionRunHook):
    """Requests a stop after a signal; as a context, listens for SIGTERM, SIGHUP and Ctrl-C.

    It listens only in the main thread. It does not replace ignored signals, handlers that Python
    did not set, a script's handler for Ctrl-C, or handlers that a hook sets within the context. A
    signal ends the process at once before the first step, in an evaluation, and when it is the
    second one. A step that computes nothing for some seconds after a signal is cancelled.

    After a signal the context's end calls the previous handler; without one it raises
    SystemExit(128 + number), or KeyboardInterrupt. If the handler returns although the process
    should end at once, training ends after the current step.

    Args:
      computes_here: whether this process's CPUs compute the steps. If so, a step that uses no CPU
        time is blocked.
      listen: whether the context does anything.
    """

    def __init__(self, *, computes_here: bool, listen: bool = True) -> None:
        self._listen = listen
        self._patience = _PATIENCE if computes_here else _PATIENCE_ELSEWHERE
        self._process = os.getpid()
        self._before: dict[int, Any] = {}
        self._watch: SignalWatch | None = None
        self._came: int | None = None  # the signal after which steps end
        self._owed: int | None = None  # the signal whose handler is called at the context's end
        self._ended: tuple[int, str] | None = None  # signal that ended training at once; message
        self._begun = self._announced = self._evaluates = False
        self._context = contextlib.ExitStack()

    @property
    def signalled(self) -> bool:
        return self._came is not None

    def __enter__(self) -> Preemption:
        if not self._listen or threading.current_thread() is not threading.main_thread():
            return self
        handlers = {int(number): signal.getsignal(number) for number in _NUMBERS}
        before: dict[int, Any] = {
            n: handler for n, handler in handlers.items() if _is_free(n, handler)
        }
        if before:
            self._watch = SignalWatch(self._is_ours, self._saves_nothing, self._patience, _HURRY)
            self._context.callback(self._watch.close)
            self._context.enter_context(cancelled_by(self._watch.canceller))
            _listening.append(self)
            self._context.callback(_listening.remove, self)
        self._before = before
        for number in before:
            held_lock.set_handler(number, self._note)
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: Any) -> None:
        self._context.close()
        for number, before in self._before.items():
            if self._is_ours(number):
                held_lock.set_handler(number, before)
        if self._ended is not None:
            number, words = self._ended
            logging.warning("%s: %s", _name(number), words)
            if kind is None or not issubclass(kind, (SystemExit, KeyboardInterrupt)):
                self._call_handler(number, None)  # a callback swallowed its exception
        elif self._owed is not None:
            cancelled = self._watch is not None and self._watch.has_cancelled
            if cancelled:
                logging.warning(
                    "%s: the current step made no progress and was cancelled. %s",
                    _name(self._owed),
                    "The steps since the last checkpoint are lost.",
                )
            if cancelled or kind is None:
                self._hand_on(self._owed)

    def _is_ours(self, number: int) -> bool:
        return number in self._before and signal.getsignal(number) == self._note

    def begin_steps(self) -> None:
        """Call it before the first step: from then on, a signal should not lose steps."""
        self._begun = True

    def interrupted(self) -> bool:
        """Whether a signal has come; logs once the effect of Ctrl-C.

        The handler itself must not log: it may have interrupted the logging module.
        """
        if self._came == signal.SIGINT and not self._announced:
            self._announced = True
            logging.warning(
                "Ctrl-C: training ends after the current step, and saves as at any other end. "
                "Ctrl-C again ends it at once, without saving."
            )
        return self.signalled

    def _saves_nothing(self) -> bool:
        return self._evaluates or not self._begun

    def _note(self, number: int, frame: Any) -> None:
        if os.getpid() != self._process:  # a fork that an input made
            signal.signal(number, self._before[number])
            os.kill(os.getpid(), number)
            return
        assert self._watch is not None
        self._watch.answered()
        if not (self.signalled or self._saves_nothing()):
            self._came = self._owed = number
            return
        self._ended = number, self._loss()
        self._came = number
        self._call_handler(number, frame)
        self._ended = None  # the handler has returned

    def _call_handler(self, number: int, frame: Any) -> None:
        handler = self._before[number]
        if callable(handler):
            handler(number, frame)
            return
        raise SystemExit(128 + number)

    def _hand_on(self, number: int) -> None:
        if callable(self._before[number]):
            logging.info("Training stopped on %s; calling the signal's handler.", _name(number))
        else:
            logging.info(
                "Training stopped on %s; exiting with code %d.", _name(number), 128 + number
            )
        self._call_handler(number, None)

    def _loss(self) -> str:
        """The message about the work that a signal lost by ending training at once."""
        if self._evaluates:
            return "the evaluation, and training, ended at once. The checkpoint is written."
        if not self._begun:
            return "training ended at once, before its first step."
        return (
            "training ended at once, because a second signal came. The steps since the last "
            "checkpoint are lost."
        )

    @contextlib.contextmanager
    def evaluating(self) -> Iterator[None]:
        before, self._evaluates = self._evaluates, True
        try:
            yield
        finally:
            self._evaluates = before

    def after_create_session(self, session: Any, coord: Any) -> None:
        del session, coord
        self.begin_steps()

    def after_run(self, run_context: Any, run_values: Any) -> None:
        del run_values
        if self.interrupted():
            run_context.request_stop()


def evaluating() -> contextlib.AbstractContextManager[None]:
    """A context for evaluations: within, a signal ends the training around it at once."""
    return _listening[-1].evaluating() if _listening else contextlib.nullcontext()


def ends_soon() -> bool:
    """Whether a signal has come that ends the training around this call."""
    return any(each.signalled for each in _listening)


def _name(number: int) -> str:
    return "Ctrl-C" if number == signal.SIGINT else signal.Signals(number).name


def _is_free(number: int, handler: Any) -> bool:
    """Whether `Preemption` may replace a handler; a script's own for Ctrl-C stays."""
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
