"""`x.shape[-1].value` in a model_fn, as in TensorFlow 1, even with TensorFlow 2's shapes.

TensorFlow 2's shapes give ints, or None. After `ask_for_values`, the ints have a `value` while a
graph is built. With `disable_v2_tensorshape()` shapes give TensorFlow's `Dimension`, which has a
`value`. A dimension may be a whole float, such as `units / 2`, which TensorFlow 1 accepted.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import tensorflow as tf

from tpu_estimator_compat.engine.capture.patches import Function, patched
from tpu_estimator_compat.tf_internals import Dimension

_asked: list[bool] = []


class _Dimension(int):
    @property
    def value(self) -> int:
        return int(self)


def ask_for_values() -> None:
    """Enables `with_values` from now on: the script uses names of TensorFlow 1."""
    _asked.append(True)


@contextlib.contextmanager
def with_values() -> Iterator[None]:
    """A context, for this thread, in which dimensions have a `value` and may be floats."""
    if not _asked:
        yield
        return
    with (
        patched(tf.TensorShape, "__getitem__", _valued),
        patched(tf.TensorShape, "__iter__", lambda dims: lambda self: map(_with_value, dims(self))),
        patched(Dimension, "__init__", _of_whole_floats),
    ):
        yield


def _valued(getitem: Function) -> Function:
    return lambda self, key: _with_value(getitem(self, key))


def _with_value(found: Any) -> Any:
    return _Dimension(found) if type(found) is int else found


def _of_whole_floats(init: Function) -> Function:
    def with_floats(self: Dimension, value: Any) -> None:
        init(self, int(value) if isinstance(value, float) and value.is_integer() else value)

    return with_floats
