"""Records the calls of estimators that a script makes: line, steps, loss, files, hooks."""

from __future__ import annotations

import contextlib
import glob
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tpu_estimator_compat.engine.graph.sources import is_users
from tpu_estimator_compat.estimator.estimator import Estimator
from tpu_estimator_compat.estimator.exporting import Exporting
from tpu_estimator_compat.keras_model.model import ModelFnModel
from tpu_estimator_compat.tools.dry_run.folders import Folders
from tpu_estimator_compat.tools.dry_run.replacing import Function, wrapped
from tpu_estimator_compat.tools.dry_run.report import Call

MOST_CALLS = 3
"""Calls of one kind at one line, for one model_dir, that are made; later ones get the last result.

A script may train in a loop until a global step that two steps at a time never reach.
"""

MOST_REPEATED = 1000
"""Number of later calls after which the loop counts as endless."""

_EXPORTS = ("export_saved_model", "export_savedmodel", "experimental_export_all_saved_models")


class Endless(SystemExit):
    """Ends a script whose loop would not end in a dry run; the reason is its `why`."""

    def __init__(self, why: str):
        super().__init__(0)
        self.why = why


class Recorder:
    """Keeps the calls of a dry run; `changed` is called when a call begins, goes on or ends."""

    def __init__(self, folders: Folders, changed: Callable[[], None] = lambda: None):
        self.calls: list[Call] = []
        self.stopped = ""
        self._folders = folders
        self._changed = changed
        self._started_in = os.getcwd()
        self._here = threading.local()
        self._results: dict[Any, list[tuple[Call, Any]]] = {}
        self._running = 0

    @property
    def running(self) -> bool:
        """Whether a call is being made, in any thread."""
        return self._running > 0

    def current(self) -> Call | None:
        """The innermost call of this thread."""
        calls = self._stack()
        return calls[-1] if calls else None

    def stop_error(self, why: str) -> Endless:
        self.stopped = why
        return Endless(why)

    @contextlib.contextmanager
    def recorded(self) -> Iterator[None]:
        """Within, calls of estimators and of their Keras models are recorded."""
        with contextlib.ExitStack() as stack:
            for name in ("train", "evaluate"):
                stack.enter_context(wrapped(Estimator, name, self._around(name)))
            stack.enter_context(wrapped(Estimator, "predict", self._around_generator))
            for name in _EXPORTS:
                stack.enter_context(wrapped(Exporting, name, self._around(name)))
            for name in ("fit", "evaluate", "predict"):
                around = self._around(f"keras_model().{name}")
                stack.enter_context(wrapped(ModelFnModel, name, around))
            yield

    def _around(self, name: str) -> Callable[[Function], Function]:
        def around(method: Function) -> Function:
            def function(owner: Any, *args: Any, **kwargs: Any) -> Any:
                outer = self.current()
                if outer is not None and outer.call == "keras_model().fit":
                    return method(owner, *args, **kwargs)  # Keras' own validation
                call, key = self._new(name, owner, kwargs)
                if key in self._results and len(self._results[key]) >= MOST_CALLS:
                    return self._repeated(key)
                self._begin(call)
                with self._within(call, owner):
                    result = method(owner, *args, **kwargs)
                self._note(call, result)
                self._results.setdefault(key, []).append((call, result))
                return result

            return function

        return around

    def _around_generator(self, method: Function) -> Function:
        def function(owner: Any, *args: Any, **kwargs: Any) -> Iterator[Any]:
            call, key = self._new("predict", owner, kwargs)
            results = method(owner, *args, **kwargs)
            return self._predictions(call, key, owner, results)

        return function

    def _predictions(self, call: Call, key: Any, owner: Any, results: Any) -> Iterator[Any]:
        if key in self._results and len(self._results[key]) >= MOST_CALLS:
            yield from self._repeated(key)
            return
        self._begin(call)
        seen: list[Any] = []
        self._results.setdefault(key, []).append((call, seen))
        with contextlib.closing(results):
            while True:
                with self._within(call, owner):
                    try:
                        result = next(results)
                    except StopIteration:
                        return
                seen.append(result)
                yield result

    def _new(self, name: str, owner: Any, kwargs: dict[str, Any]) -> tuple[Call, Any]:
        file, line = self._place()
        # `_export` is a method of the estimator; its Keras models keep it.
        model_fn = owner._export.__self__._model_fn
        call = Call(name, file, line, getattr(model_fn, "__name__", ""))
        return call, (name, file, line, owner._model_dir, str(kwargs.get("name")))

    def _place(self) -> tuple[str, int]:
        """The user's line that is nearest to the call."""
        frame: Any = sys._getframe(1)
        while frame is not None and not is_users(frame.f_code.co_filename):
            frame = frame.f_back
        if frame is None:
            return "?", 0
        return os.path.join(self._started_in, frame.f_code.co_filename), frame.f_lineno

    def _repeated(self, key: Any) -> Any:
        call, result = self._results[key][-1]
        call.repeated += 1
        if call.repeated > MOST_REPEATED:
            raise self.stop_error(
                f"A loop around {call.call} in line {call.line} did not end by itself."
            )
        return result

    def _begin(self, call: Call) -> None:
        self.calls.append(call)
        self._changed()

    @contextlib.contextmanager
    def _within(self, call: Call, owner: Any) -> Iterator[None]:
        started, before = time.monotonic(), _checkpoints(owner._model_dir)
        self._stack().append(call)
        self._running += 1
        try:
            yield
        except BaseException as error:
            if not isinstance(error, StopIteration | Endless):
                call.error = f"{type(error).__name__}: {error}".rstrip(": ")
            raise
        finally:
            self._running -= 1
            self._stack().pop()
            call.seconds += time.monotonic() - started
            new = sorted(_checkpoints(owner._model_dir) - before)
            call.written += tuple(self._folders.shown(path) for path in new)
            self._changed()

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

    def _stack(self) -> list[Call]:
        found: list[Call] = vars(self._here).setdefault("calls", [])
        return found


def _checkpoints(model_dir: str | None) -> set[str]:
    found = glob.glob(os.path.join(glob.escape(model_dir or ""), "*.index"))
    return {path.removesuffix(".index") for path in found}
