"""Eager execution, whatever a script has switched off."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import tensorflow as tf

from tpu_estimator_compat.tf_internals import context, pywrap_tfe, record

_NOTHING: contextlib.AbstractContextManager[None] = contextlib.nullcontext()


def eager_mode() -> contextlib.AbstractContextManager[None]:
    """Eager execution, also inside a legacy graph context or after `disable_v2_behavior()`.

    Within another such context it costs next to nothing: a step goes through several.
    """
    if context.executing_eagerly() and pywrap_tfe.TFE_Py_TapeSetIsStopped():
        return _NOTHING
    return _entered()


@contextlib.contextmanager
def _entered() -> Iterator[None]:
    # Only a function under construction has to be left. In a plain graph `init_scope` would push
    # onto that graph's own stacks, which threads share: a checkpoint may be written by another one.
    building = tf.compat.v1.get_default_graph().building_function
    with tf.init_scope() if building else record.stop_recording(), context.eager_mode():
        yield
