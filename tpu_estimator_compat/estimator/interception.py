"""Looks on where a script's estimators would run, instead of letting them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

from tpu_estimator_compat.estimator.estimator import Estimator
from tpu_estimator_compat.spec import ModeKeys

Instead = Callable[[Estimator, str, Callable[..., Any]], Any]
"""Takes an estimator, a `ModeKeys` value and the input_fn; its result is the caller's."""

_METHODS = {"train": ModeKeys.TRAIN, "evaluate": ModeKeys.EVAL, "predict": ModeKeys.PREDICT}


@contextlib.contextmanager
def intercepted(instead: Instead) -> Iterator[None]:
    """Within, `train`, `evaluate` and `predict` of all estimators call `instead`."""

    def method(mode: str) -> Callable[..., Any]:
        def call(self: Estimator, input_fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
            del args, kwargs
            return instead(self, mode, input_fn)

        return call

    with contextlib.ExitStack() as stack:
        for name, mode in _METHODS.items():
            stack.enter_context(mock.patch.object(Estimator, name, method(mode)))
        yield
