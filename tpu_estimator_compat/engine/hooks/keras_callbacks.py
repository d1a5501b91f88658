"""Keras callbacks among the hooks of an estimator, called by one session hook."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import keras
import tensorflow as tf
from keras.src.utils.python_utils import is_default

from tpu_estimator_compat.engine.functions import eager

Hook = Any  # a tf.compat.v1.train.SessionRunHook

HOOK_TYPES = (tf.compat.v1.train.SessionRunHook, keras.callbacks.Callback)
"""Types of hooks that `train`, `evaluate` and `predict` accept."""

_KERAS_MODES = {"train": "train", "eval": "test", "infer": "predict"}
_STOP_FLAGS = {"train": "stop_training", "test": "stop_evaluating", "predict": "stop_predicting"}


class Model(Protocol):
    """The methods of a callback's `self.model` that hooks use."""

    def adopt(self, mode: str) -> None:
        """Adopts a mode's live variables as Keras variables; `mode` is a `ModeKeys` value."""


def split_hooks(
    hooks: Sequence[Any],
    model: Model,
    mode: str,
    fetches: dict[str, Any],
    results: Callable[[], dict[str, Any]] | None = None,
) -> tuple[list[Hook], list[Hook]]:
    """The session hooks, and a list of the one hook that calls the Keras callbacks, if any.

    `fetches` are the callbacks' logs of a batch, by name: tensors of the captured graph. `results`
    returns the final logs; None for the last batch's logs.
    """
    callbacks = [h for h in hooks if isinstance(h, keras.callbacks.Callback)]
    others = [h for h in hooks if not isinstance(h, keras.callbacks.Callback)]
    if not callbacks:
        return others, []
    return others, [_CallbacksHook(callbacks, model, mode, fetches, results)]


class _CallbacksHook(tf.compat.v1.train.SessionRunHook):
    """Calls Keras callbacks as Keras does; a call of `train` is one epoch."""

    def __init__(
        self,
        callbacks: Sequence[keras.callbacks.Callback],
        model: Model,
        mode: str,
        fetches: dict[str, Any],
        results: Callable[[], dict[str, Any]] | None,
    ):
        self._list = keras.callbacks.CallbackList(list(callbacks))
        self._model = model
        self._mode_key = mode
        self._mode = _KERAS_MODES[mode]
        self._fetches = fetches
        self._results = results
        self._began = False
        self._batch = 0
        self._logs: dict[str, Any] = {}

    def steps_until_control(self, global_step: int) -> int | None:
        due = [_due(callback, self._mode, global_step) for callback in self._list.callbacks]
        return min((steps for steps in due if steps is not None), default=None)

    def _call(self, event: str, *arguments: Any) -> None:
        with eager.eager_mode():  # as Keras' own loops call them
            getattr(self._list, event)(*arguments)

    def after_create_session(self, session: Any, coord: Any) -> None:
        del session, coord
        if self._began:  # this session replaces a lost one
            return
        self._began = True
        for flag in _STOP_FLAGS.values():
            setattr(self._model, flag, False)
        with eager.eager_mode():
            self._model.adopt(self._mode_key)
            self._list.set_model(self._model)
        self._list.set_params({"verbose": 0, "epochs": 1, "steps": None})
        self._call(f"on_{self._mode}_begin")
        if self._mode == "train":
            self._call("on_epoch_begin", 0)

    def before_run(self, run_context: Any) -> Any:
        del run_context
        self._call(f"on_{self._mode}_batch_begin", self._batch)
        return tf.compat.v1.train.SessionRunArgs(self._fetches)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        self._logs = dict(run_values.results)
        self._batch += max(1, run_context.session.steps_last_run)
        self._call(f"on_{self._mode}_batch_end", self._batch - 1, self._logs)
        if getattr(self._model, _STOP_FLAGS[self._mode]):
            run_context.request_stop()

    def end(self, session: Any) -> None:
        del session
        logs = self._results() if self._results else self._logs
        if self._mode == "train":
            self._call("on_epoch_end", 0, logs)
        self._call(f"on_{self._mode}_end", logs)


def _due(callback: keras.callbacks.Callback, mode: str, global_step: int) -> int | None:
    """Steps until a callback needs control; None where it has no methods for batches."""
    if hasattr(callback, "steps_until_control"):
        return callback.steps_until_control(global_step)
    names = [f"on_{mode}_batch_begin", f"on_{mode}_batch_end"]
    if mode == "train":
        names += ["on_batch_begin", "on_batch_end"]
    return None if all(is_default(getattr(callback, name)) for name in names) else 1
