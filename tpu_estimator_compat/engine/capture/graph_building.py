"""Contexts in which legacy functions build graphs, even where a script disabled v2 behavior."""

from __future__ import annotations

import collections
import contextlib
import os
import random
import traceback
from collections.abc import Iterator
from typing import Any

import keras
import tensorflow as tf
from keras.src.backend.common import global_state

from tpu_estimator_compat.engine.capture import branches
from tpu_estimator_compat.engine.capture.keras_layers import one_scope_per_call
from tpu_estimator_compat.engine.capture.patches import Function, patched
from tpu_estimator_compat.tf_internals import Dimension, control_flow_util, pywrap_tfe

_FOREIGN = "Attempting to capture an EagerTensor without building a function"
_KERAS = os.path.join(os.path.dirname(keras.__file__), "")
_NAMES = "object_name_uids"
_asked_for_values: list[bool] = []


@contextlib.contextmanager
def capture_semantics(*, for_session: bool = False) -> Iterator[None]:
    """A context in which graphs have v2 control flow, and gradient tapes record.

    After `disable_v2_behavior()`, control flow would have frames (Enter, Exit), which cannot be
    imported into a function. TensorFlow's sessions run frames: with `for_session`, they are made.
    """
    with _dimensions_with_values(), _recording():
        if for_session:
            yield
            return
        of_one_graph = not control_flow_util.ENABLE_CONTROL_FLOW_V2
        functional = patched(control_flow_util, "EnableControlFlowV2", lambda _, graph: True)
        with functional, branches.as_captured(of_one_graph=of_one_graph):
            yield


@contextlib.contextmanager
def _recording() -> Iterator[None]:
    """A context in which a `tf.GradientTape` records, even inside `eager_mode`, which stops it."""
    stopped = pywrap_tfe.TFE_Py_TapeSetIsStopped()
    if stopped:
        pywrap_tfe.TFE_Py_TapeSetRestartOnThread()
    try:
        yield
    finally:
        if stopped:
            pywrap_tfe.TFE_Py_TapeSetStopOnThread()


@contextlib.contextmanager
def foreign_tensors_explained(function: str) -> Iterator[None]:
    """Advises on TensorFlow's error about a tensor or variable from outside `function`'s graph."""
    try:
        yield
    except RuntimeError as error:
        if _FOREIGN not in str(error):
            raise
        raise RuntimeError(
            f"{error}\n{function} uses a variable, tensor or layer that was made outside of it. "
            "Its graph is built anew for every call, so make them within: variables with "
            "tf.compat.v1.get_variable(...), layers and constants in the function itself. NumPy "
            "arrays may come from outside."
        ) from error


@contextlib.contextmanager
def keras_backend_explained() -> Iterator[None]:
    """Adds advice to errors of Keras, where it runs on another backend than TensorFlow."""
    try:
        yield
    except Exception as error:
        backend = keras.backend.backend()
        if backend != "tensorflow" and _passed_through(error, _KERAS):
            error.add_note(
                f"Keras runs on {backend!r}, as KERAS_BACKEND or keras.json says: its layers take "
                "no tensors of TensorFlow. Set KERAS_BACKEND=tensorflow before Python starts."
            )
        raise


def _passed_through(error: BaseException, folder: str) -> bool:
    frames = traceback.walk_tb(error.__traceback__)
    return any(frame.f_code.co_filename.startswith(folder) for frame, _ in frames)


@contextlib.contextmanager
def seeded_initializers(seed: int | None) -> Iterator[None]:
    """A context in which a graph-level seed determines the seeds of Keras initializers.

    Keras draws these seeds with `random.randint`; the state of Python's generator stays as it is.
    """
    if seed is None:
        yield
        return
    own = random.Random(seed)
    with patched(random, "randint", lambda _, a, b: own.randint(a, b)):
        yield


@contextlib.contextmanager
def fresh_keras_names() -> Iterator[None]:
    """A context in which Keras 3 numbers layer names anew, as Keras 2 did in each graph.

    Keras 3 has one count per process, so the second graph of an estimator would look for `dense_1`
    in the checkpoint of the first graph, which has `dense`.
    """
    names = global_state.get_global_attribute(_NAMES)
    global_state.set_global_attribute(_NAMES, collections.defaultdict(int))
    try:
        with one_scope_per_call():
            yield
    finally:
        global_state.set_global_attribute(_NAMES, names)


class _Dimension(int):
    @property
    def value(self) -> int:
        return int(self)


def ask_for_dimension_values() -> None:
    """Has graphs give dimensions a `value` from now on: the script uses names of TensorFlow 1."""
    _asked_for_values.append(True)


@contextlib.contextmanager
def _dimensions_with_values() -> Iterator[None]:
    """A context, for this thread, in which dimensions have a `value` and may be floats.

    TensorFlow 2's shapes give ints, or None; with `disable_v2_tensorshape()`, `Dimension`s, which
    have a `value`. TensorFlow 1 also took whole floats, such as `units / 2`, for dimensions.
    """
    if not _asked_for_values:
        yield
        return
    with (
        patched(tf.TensorShape, "__getitem__", _valued),
        patched(tf.TensorShape, "__iter__", lambda dims, self: map(_with_value, dims(self))),
        patched(Dimension, "__init__", _of_whole_floats),
    ):
        yield


def _valued(getitem: Function, shape: tf.TensorShape, key: Any) -> Any:
    return _with_value(getitem(shape, key))


def _with_value(found: Any) -> Any:
    return _Dimension(found) if type(found) is int else found


def _of_whole_floats(init: Function, self: Dimension, value: Any) -> None:
    init(self, int(value) if isinstance(value, float) and value.is_integer() else value)
