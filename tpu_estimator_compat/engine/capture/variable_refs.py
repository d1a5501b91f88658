"""`variable._ref()` in a model_fn, as the variables of TensorFlow 1 had it.

Legacy code that hands a variable from device to device takes its reference, and reads that. Graphs
are captured with resource variables, which have none: within, the reference is the value.
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
    """Variables are patched while a thread needs it."""
    global _users
    with _lock:
        before, _users = _users, _users + change
        if not before:
            BaseResourceVariable._ref = _ref
        elif not _users:
            del BaseResourceVariable._ref


def _ref(self: BaseResourceVariable) -> tf.Tensor:
    return self.value()
