"""Records the calls of estimators that a script makes: line, steps, loss, files, hooks."""

from __future__ import annotations

import contextlib
import glob
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from tpu_estimator_compat.engine.graph.sources import is_users
from tpu_estimator_compat.keras_model import calls
from tpu_estimator_compat.tools.dry_run.folders import Folders
from tpu_estimator_compat.tools.dry_run.report import Call
from tpu_estimator_compat.tools.dry_run.shortening import redirect, shorten, with_hook

MOST_CALLS = 3
"""Calls of one kind at one line, for one model_dir, that are made; later ones get the last result.

A script may train in a loop until a global step that two steps at a time never reach.
"""

MOST_REPEATED = 1000
"""Number of later calls after which the loop counts as endless."""

_EXPORTS = ("export_saved_model", "export_savedmodel", "experimental_export_all_saved_models")
_OF_KERAS = ("keras_model().fit", "keras_model().evaluate", "keras_model().predict")
_RECORDED = ("train", "evaluate", "predict", *_EXPORTS, *_OF_KERAS)


class Endless(SystemExit):
    """Ends a script whose loop would not end in a dry run."""


class Recorder:
    """Keeps the calls of a dry run; `changed` is called when a call begins, goes on or ends."""

    def __init__(
        self,
        folders: Folders,
        changed: Callable[[], None] = lambda: None,
        *,
        whole_predictions: bool = False,
    ):
        self.calls: list[Call] = []
        self.stopped = ""
        self.running = 0
        """The number of calls that are being made, in all threads."""
        self._folders = folders
        self._changed = changed
        self._whole = whole_predictions
        self._started_in = os.getcwd()
        self._here = threading.local()
        self._results: dict[Any, list[tuple[Call, Any]]] = {}

    def stop_error(self, why: str) -> Endless:
        self.stopped = why
        return Endless(0)

    def observe(self, call: calls.Call) -> Any:
        """Makes a call short, and records it."""
        outer = self._current()
        if outer is not None and outer.call == "keras_model().fit" and call.name in _OF_KERAS:
            return call.make()  # Keras' own validation
        if call.name not in _RECORDED:
            shorten(call, self._folders, whole_predictions=self._whole)
            result = call.make()
            if call.name == "_prepared":
                self._describe(outer, result[1])
            return result
        made, key = self._new(call)
        if len(self._results.get(key, ())) >= MOST_CALLS:
            result = self._repeated(key)
            return iter(result) if call.name == "predict" else result
        if call.name == "predict":
            return self._predictions(call, made, key)
        self.calls.append(made)
        self._changed()
        with self._within(made, call.owner):
            self._prepare(call, made)
            result = call.make()
        self._note(made, result)
        self._results.setdefault(key, []).append((made, result))
        return result

    def _predictions(self, call: calls.Call, made: Call, key: Any) -> Iterator[Any]:
        self.calls.append(made)
        self._changed()
        seen: list[Any] = []
        self._results.setdefault(key, []).append((made, seen))
        self._prepare(call, made)
        with contextlib.closing(call.make()) as results:
            while True:
                with self._within(made, call.owner):
                    try:
                        result = next(results)
                    except StopIteration:
                        return
                seen.append(result)
                yield result

    def _new(self, call: calls.Call) -> tuple[Call, Any]:
        file, line = self._place()
        # `_export` is a method of the estimator; its Keras models keep it.
        model_fn = call.owner._export.__self__._model_fn
        made = Call(call.name, file, line, getattr(model_fn, "__name__", ""))
        of_call = call.owner._model_dir, str(call.arguments.get("name"))
        return made, (call.name, file, line, *of_call)

    def _place(self) -> tuple[str, int]:
        """The user's line that is nearest to the call."""
        frame: Any = sys._getframe(1)
        while frame is not None and not is_users(frame.f_code.co_filename):
            frame = frame.f_back
        if frame is None:
            return "?", 0
        return os.path.join(self._started_in, frame.f_code.co_filename), frame.f_lineno

    def _prepare(self, call: calls.Call, made: Call) -> None:
        """Shortens a call, notes the hooks that it is given, and adds one that counts steps."""
        shorten(call, self._folders, whole_predictions=self._whole)
        given = call.arguments
        for argument in ("hooks", "callbacks", "saving_listeners"):
            made.hooks = _with_names(made.hooks, given.get(argument))
        if call.name in _OF_KERAS:
            made.replicas = call.owner.modes.topology.num_replicas
            made.steps = given.get("steps") or given.get("steps_per_epoch") or 0
        elif call.name not in _EXPORTS:
            with_hook(call, _Counted(made))

    def _describe(self, made: Call | None, captured: Any) -> None:
        """Notes the replicas of a captured mode, and the hooks of its spec."""
        chief = captured.spec.chief_hooks if captured.mode == "train" else ()
        hooks = [*captured.spec.hooks, *chief]
        redirect(hooks, self._folders)
        if made is not None and not made.replicas:
            made.replicas = captured.topology.num_replicas
            made.hooks = _with_names(made.hooks, hooks)

    def _repeated(self, key: Any) -> Any:
        call, result = self._results[key][-1]
        call.repeated += 1
        if call.repeated > MOST_REPEATED:
            raise self.stop_error(
                f"A loop around {call.call} in line {call.line} did not end by itself."
            )
        return result

    @contextlib.contextmanager
    def _within(self, call: Call, owner: Any) -> Iterator[None]:
        started, before = time.monotonic(), _checkpoints(owner._model_dir)
        outer = self._current()
        self._here.call = call
        self.running += 1
        try:
            yield
        except BaseException as error:
            if not isinstance(error, StopIteration | Endless):
                call.error = f"{type(error).__name__}: {error}".rstrip(": ")
            raise
        finally:
            self.running -= 1
            self._here.call = outer
            call.seconds += time.monotonic() - started
            new = sorted(_checkpoints(owner._model_dir) - before)
            call.written += tuple(self._folders.shown(path) for path in new)
            self._changed()

    def _current(self) -> Call | None:
        """The innermost call of this thread."""
        return getattr(self._here, "call", None)

    def _note(self, call: Call, result: Any) -> None:
        if isinstance(result, bytes) and call.call in _EXPORTS:
            call.written += (self._folders.shown(os.fsdecode(result)),)
        elif isinstance(result, dict) and "loss" in result:
            call.loss = float(result["loss"])
        elif isinstance(result, float | list):  # of Keras, the loss first
            call.loss = float(np.ravel(result)[0])
        elif losses := getattr(result, "history", {}).get("loss"):
            call.loss = float(losses[-1])
        self._changed()


class _Counted(tf.compat.v1.train.SessionRunHook):
    """Counts the steps of finished runs as the call's: empty data gives none. Keeps the loss."""

    def __init__(self, call: Call):
        self._call = call

    def begin(self) -> None:
        losses = tf.compat.v1.get_collection(tf.compat.v1.GraphKeys.LOSSES)
        self._loss = losses[-1:] if self._call.call == "train" else []

    def steps_until_control(self, global_step: int) -> None:
        """Needs no control before another does."""

    def before_run(self, run_context: Any) -> Any:
        del run_context
        return tf.compat.v1.train.SessionRunArgs(self._loss)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        self._call.steps += max(1, getattr(run_context.session, "steps_last_run", 1))
        for loss in run_values.results:
            self._call.loss = float(np.mean(loss))


def _with_names(names: tuple[str, ...], hooks: Any) -> tuple[str, ...]:
    """The names and those of the hooks' classes, each once, without our own."""
    given = hooks if isinstance(hooks, Iterable) else [] if hooks is None else [hooks]
    found = (type(hook).__name__ for hook in given)
    return tuple(dict.fromkeys([*names, *(name for name in found if not name.startswith("_"))]))


def _checkpoints(model_dir: str | None) -> set[str]:
    found = glob.glob(os.path.join(glob.escape(model_dir or ""), "*.index"))
    return {path.removesuffix(".index") for path in found}
