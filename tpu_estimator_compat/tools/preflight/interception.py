"""Replaces train, evaluate and predict of all estimators while preflight inspects a script."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tpu_estimator_compat.estimator.estimator import Estimator
from tpu_estimator_compat.spec import ModeKeys

Instead = Callable[[Estimator, str, Callable[..., Any]], Any]
"""Takes an estimator, a `ModeKeys` value and the input_fn; the caller gets its result."""

_METHODS = {"train": ModeKeys.TRAIN, "evaluate": ModeKeys.EVAL, "predict": ModeKeys.PREDICT}


@contextlib.contextmanager
def intercepted(instead: Instead) -> Iterator[None]:
    """Replaces `train`, `evaluate` and `predict` of all estimators with calls of `instead`.

    While `instead` runs, the estimators have their own methods.
    """

    def method(mode: str) -> Callable[..., Any]:
        def call(self: Estimator, input_fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
            del args, kwargs
            with _set(before):
                return instead(self, mode, input_fn)

        return call

    before = {name: getattr(Estimator, name) for name in _METHODS}
    with _set({name: method(mode) for name, mode in _METHODS.items()}):
        yield


@contextlib.contextmanager
def _set(methods: Mapping[str, Callable[..., Any]]) -> Iterator[None]:
    before = {name: getattr(Estimator, name) for name in methods}
    try:
        for name, own in methods.items():
            setattr(Estimator, name, own)
        yield
    finally:
        for name, own in before.items():
            setattr(Estimator, name, own)
