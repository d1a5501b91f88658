"""Eager execution, also where a script has disabled it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import tensorflow as tf

from tpu_estimator_compat.tf_internals import context, pywrap_tfe, record

_NOTHING: contextlib.AbstractContextManager[None] = contextlib.nullcontext()


def eager_mode() -> contextlib.AbstractContextManager[None]:
    """Eager execution, also inside a legacy graph context or after `disable_v2_behavior()`."""
    if context.executing_eagerly() and pywrap_tfe.TFE_Py_TapeSetIsStopped():
        return _NOTHING
    return _entered()


@contextlib.contextmanager
def _entered() -> Iterator[None]:
    # Only a function under construction needs `init_scope`. In a plain graph it would push onto the
    # graph's stacks, which threads share: another thread may write a checkpoint.
    building = tf.compat.v1.get_default_graph().building_function
    with tf.init_scope() if building else record.stop_recording(), context.eager_mode():
        yield


def forget_end_of_data() -> None:
    """Clears the end of data in remote hosts' executors; it would fail the next operation."""
    context.context().clear_executor_errors()
