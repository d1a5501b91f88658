"""`x.shape[-1].value` in a model_fn, as in TensorFlow 1, even with TensorFlow 2's shapes.

TensorFlow 2's shapes give ints, or None. Where legacy code asked for it, the ints have a `value`
while a graph is built. With `disable_v2_tensorshape()` shapes give TensorFlow's `Dimension`, which
is left alone. A dimension may be a whole float, such as `units / 2`, which TensorFlow 1 accepted.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

import tensorflow as tf

from tpu_estimator_compat.tf_internals import Dimension

_asked: list[bool] = []
_lock = threading.Lock()
_here = threading.local()
_users = 0


class _Dimension(int):
    @property
    def value(self) -> int:
        return int(self)


def ask_for_values() -> None:
    """Enables `with_values` from now on: names of TensorFlow 1 are in use."""
    _asked.append(True)


@contextlib.contextmanager
def with_values() -> Iterator[None]:
    """Within, in this thread, dimensions have a `value` and may be floats."""
    if not _asked or getattr(_here, "active", False):
        yield
        return
    _count(1)
    _here.active = True
    try:
        yield
    finally:
        _here.active = False
        _count(-1)


def _count(change: int) -> None:
    global _users
    with _lock:
        before, _users = _users, _users + change
        if not before:
            tf.TensorShape.__getitem__ = _getitem
            tf.TensorShape.__iter__ = _iter
            Dimension.__init__ = _init
        elif not _users:
            tf.TensorShape.__getitem__ = _plain_getitem
            tf.TensorShape.__iter__ = _plain_iter
            Dimension.__init__ = _plain_init


_plain_getitem = tf.TensorShape.__getitem__
_plain_iter = tf.TensorShape.__iter__
_plain_init = Dimension.__init__


def _getitem(self: tf.TensorShape, key: Any) -> Any:
    return _with_value(_plain_getitem(self, key))


def _iter(self: tf.TensorShape) -> Iterator[Any]:
    return map(_with_value, _plain_iter(self))


def _with_value(found: Any) -> Any:
    active = getattr(_here, "active", False)
    return _Dimension(found) if active and type(found) is int else found


def _init(self: Dimension, value: Any) -> None:
    whole = isinstance(value, float) and value.is_integer() and getattr(_here, "active", False)
    _plain_init(self, int(value) if whole else value)
