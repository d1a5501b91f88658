"""`variable._ref()` in a model_fn, as in TensorFlow 1.

Legacy code that moves a variable between devices reads its reference. Graphs are captured with
resource variables, which have none: the value stands in for it.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

import tensorflow as tf

from tpu_estimator_compat.tf_internals import BaseResourceVariable

_lock = threading.Lock()
_users = 0


@contextlib.contextmanager
def with_refs() -> Iterator[None]:
    """Within, resource variables have the method `_ref`."""
    _count(1)
    try:
        yield
    finally:
        _count(-1)


def _count(change: int) -> None:
    global _users
    with _lock:
        before, _users = _users, _users + change
        if not before:
            BaseResourceVariable._ref = _ref
        elif not _users:
            del BaseResourceVariable._ref


def _ref(self: BaseResourceVariable) -> tf.Tensor:
    return self.value()
