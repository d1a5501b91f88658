"""The behavior of TensorFlow that a script starts with: graphs for TensorFlow 1, eager for 2."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import tensorflow as tf

from tpu_estimator_compat.old_names.legacy.bytecode import Compiled
from tpu_estimator_compat.old_names.legacy.dialect import Dialect
from tpu_estimator_compat.tf_internals import tf2


class Behavior:
    """The behavior that a running script was written for; eager until some module tells.

    The script tells by its names, else the first of its modules that does. `tensorflow` means the
    same in modules that tell nothing.
    """

    def __init__(self) -> None:
        self._told: Dialect | None = None
        self._names_api = False
        self._waiting = False

    def __enter__(self) -> Behavior:
        self._before = tf2.enabled()
        _set(True)
        return self

    def __exit__(self, *unused_error: object) -> None:
        self._waiting = False
        _set(self._before)

    def start(self, script: Compiled, asked: Dialect | None) -> Dialect:
        """Takes note of the script before it runs; returns the meaning of `tensorflow` in it.

        `asked` is the behavior that the user asked for.
        """
        self._names_api = script.names_api
        self._told = asked or self._shown(script) or self._told
        self._waiting = True
        self._settle()
        return script.dialect or self._told or Dialect.V2

    def judge(self, module: Compiled) -> Dialect:
        """Takes note of a module before it runs; returns the meaning of `tensorflow` in it."""
        self._told = self._told or self._shown(module)
        self._settle()
        return module.dialect or self._told or Dialect.V2

    def _shown(self, module: Compiled) -> Dialect | None:
        # A script that names `tensorflow` itself may well be of TensorFlow 2, and a module of it
        # keep graphs that others have made.
        graphs = module.makes_graphs and not self._names_api
        return module.dialect or (Dialect.V1 if graphs and not module.names_api else None)

    def _settle(self) -> None:
        if not self._waiting or self._told is None:
            return
        self._waiting = False
        if tf.executing_eagerly():  # else the script has switched by itself, or builds a graph
            _set(self._told is Dialect.V2)


def _set(second: bool) -> None:
    if tf2.enabled() == second:
        return
    tf.compat.v1.reset_default_graph()  # behavior changes only while there is none
    if second:
        tf.compat.v1.enable_v2_behavior()
    else:
        with _quiet():
            tf.compat.v1.disable_v2_behavior()


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Silences TensorFlow's warning that resource variables should stay on: nobody asked here."""
    logger = tf.get_logger()
    level = logger.level
    logger.setLevel("ERROR")
    try:
        yield
    finally:
        logger.setLevel(level)
