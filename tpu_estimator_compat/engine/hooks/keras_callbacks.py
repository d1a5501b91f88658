"""Keras callbacks among the hooks of an estimator: one hook that calls them all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from keras.src.utils.python_utils import is_default

Hook = Any  # a tf.compat.v1.train.SessionRunHook

HOOK_TYPES = (tf.compat.v1.train.SessionRunHook, keras.callbacks.Callback)
"""What `train`, `evaluate` and `predict` take as hooks."""

_KERAS_MODES = {"train": "train", "eval": "test", "infer": "predict"}
_STOP_FLAGS = {"train": "stop_training", "test": "stop_evaluating", "predict": "stop_predicting"}


def split_hooks(
    hooks: Sequence[Any],
    mode: str,
    fetches: dict[str, Any],
    results: Callable[[], dict[str, Any]] | None = None,
) -> tuple[list[Hook], list[Hook]]:
    """Separates session hooks from Keras callbacks.

    Args:
      hooks: both, mixed.
      mode: a `ModeKeys` value.
      fetches: the callbacks' logs of a batch, by name: tensors of the captured graph.
      results: gives the logs of the end; None for those of the last batch.

    Returns:
      The session hooks, and a hook that calls the callbacks, if there are any.
    """
    callbacks = [h for h in hooks if isinstance(h, keras.callbacks.Callback)]
    others = [h for h in hooks if not isinstance(h, keras.callbacks.Callback)]
    if not callbacks:
        return others, []
    return others, [_CallbacksHook(callbacks, _KERAS_MODES[mode], fetches, results)]


class LiveModel:
    """The object that a Keras callback among the hooks finds as `self.model`.

    Attributes:
      stop_training: True ends `train` after the step.
      stop_evaluating: True ends `evaluate`.
      stop_predicting: True ends `predict`.
    """

    def __init__(self, session: Any):
        self.stop_training = False
        self.stop_evaluating = False
        self.stop_predicting = False
        self._session = session
        self._variables = session.graph.get_collection(tf.compat.v1.GraphKeys.GLOBAL_VARIABLES)

    def get_weights(self) -> list[np.ndarray]:
        """The live values of all global variables, slots and `global_step` among them."""
        return self._session.run(list(self._variables))

    def set_weights(self, weights: Sequence[np.ndarray]) -> None:
        """Gives all global variables the values that `get_weights` gave."""
        for variable, value in zip(self._variables, weights, strict=True):
            self._session.store.assign(variable.op.name, value)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(
            f"A Keras callback among the hooks of an estimator has no model.{name}: it sees "
            "stop_training, stop_evaluating, stop_predicting, get_weights() and set_weights(). "
            "Callbacks that need a whole keras.Model work with fit() of Estimator.keras_model()."
        )


class _CallbacksHook(tf.compat.v1.train.SessionRunHook):
    """Calls Keras callbacks as Keras does, all of a `train` being one epoch."""

    def __init__(
        self,
        callbacks: Sequence[keras.callbacks.Callback],
        mode: str,
        fetches: dict[str, Any],
        results: Callable[[], dict[str, Any]] | None,
    ):
        self._list = keras.callbacks.CallbackList(list(callbacks))
        self._mode = mode
        self._fetches = fetches
        self._results = results
        self._model: LiveModel | None = None
        self._batch = 0
        self._logs: dict[str, Any] = {}

    def steps_until_control(self, global_step: int) -> int | None:
        """Steps until a callback needs control: the next, unless it says or has no need of one."""
        due = [_due(callback, self._mode, global_step) for callback in self._list.callbacks]
        return min((steps for steps in due if steps is not None), default=None)

    def _call(self, event: str, *arguments: Any) -> None:
        getattr(self._list, event)(*arguments)

    def after_create_session(self, session: Any, coord: Any) -> None:
        del coord
        if self._model is not None:  # a session that was lost and made anew
            return
        self._model = LiveModel(session)
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
