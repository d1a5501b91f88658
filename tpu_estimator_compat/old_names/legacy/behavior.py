"""The TensorFlow behavior that a script starts with: graphs for TensorFlow 1, eager for 2."""

from __future__ import annotations

import builtins
import contextlib
import traceback
import types
from collections.abc import Iterator

import tensorflow as tf

from tpu_estimator_compat.old_names.legacy.dialect import Dialect, Shown, is_only_in
from tpu_estimator_compat.tf_internals import tf2

_API = (
    "tensorflow._api.v2.compat.v1",
    "tensorflow._api.v2",
    "tf_keras.api._v1",
    "tf_keras.api._v2",
)

_SIGNS = {
    Dialect.V1: (
        "Tensor is unhashable",
        "The Session graph is empty",
        "When eager execution is enabled, `var_list`",
        "is not supported in eager mode",
        "is undefined when eager execution is enabled",
        "not compatible with eager execution",
        "not supported when eager execution is enabled",
        "should be a function when eager execution is enabled",
    ),
    Dialect.V2: (
        "'SymbolicTensor' object has no attribute 'numpy'",
        "Cannot convert a symbolic tf.Tensor",
        "Iterating over a symbolic `tf.Tensor` is not allowed",
        "Using a symbolic `tf.Tensor` as a Python `bool` is not allowed",
        "numpy() is only available when eager execution is enabled",
        "only supported in eager mode",
        "only supports Python-style iteration in eager mode",
    ),
}
"""Fragments of TensorFlow's error messages that mean: this script needs the behavior of the key."""

_ADVICE = {
    Dialect.V1: "Nothing in the script says that it was written for TensorFlow 1, so it ran as "
    "with TensorFlow 2. If it was, use --behavior v1: it runs the script with graphs.",
    Dialect.V2: "A module that the script imports, or its placeholders and sessions, say that it "
    "was written for TensorFlow 1, so it ran with graphs. If the script was written for "
    "TensorFlow 2, use --behavior v2: it runs the script eagerly.",
}


class Behavior:
    """The behavior that a running script was written for; eager until a module shows another.

    The user decides, else the script's own names, else the first of its modules whose names show a
    dialect. In modules whose names show none, `tensorflow` means the same dialect.
    """

    def __init__(self) -> None:
        self._told: Dialect | None = None
        self._names_api = False
        self._waiting = False
        self._is_sure = False  # the user or the script's own names chose the behavior
        self._silent: set[str] = set()  # files of modules that show no dialect
        _set(True)

    def advise(self, error: BaseException) -> None:
        """Adds advice to an error that the other behavior would not have raised."""
        if advice := self._advice(error):
            error.add_note(advice)

    def start(self, script: Shown, asked: Dialect | None) -> Dialect:
        """Takes the dialect `asked` for, else the script's; returns what `tensorflow` means."""
        self._names_api = script.names_api
        self._is_sure = asked is not None or script.dialect is not None
        self._note(script)
        self._told = asked or self._shown(script) or self._told
        self._waiting = True
        self._settle()
        return script.dialect or self._told or Dialect.V2

    def judge(self, module: Shown) -> Dialect:
        """Judges a module before it runs; returns the meaning of `tensorflow` in it."""
        self._note(module)
        self._told = self._told or self._shown(module)
        self._settle()
        return module.dialect or self._told or Dialect.V2

    def _advice(self, error: BaseException) -> str | None:
        ran = Dialect.V2 if tf2.enabled() else Dialect.V1
        other = Dialect.V1 if ran is Dialect.V2 else Dialect.V2
        if not self._is_sure and any(sign in str(error) for sign in _SIGNS[other]):
            return _ADVICE[other]
        name = _missing(error)
        if name is None or not is_only_in(other, name) or not self._is_in_silent(error):
            return None
        return (
            f"Only TensorFlow {other.value} has tf.{name}, and nothing in the module says which it "
            f"was written for. --behavior v{other.value} runs such modules with TensorFlow "
            f"{other.value}."
        )

    def _is_in_silent(self, error: BaseException) -> bool:
        """Whether the innermost frame with legacy builtins is of a module that shows no dialect."""
        frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
        plain = builtins.__import__
        legacy = [frame for frame in frames if frame.f_builtins.get("__import__") is not plain]
        return bool(legacy) and legacy[-1].f_code.co_filename in self._silent

    def _note(self, module: Shown) -> None:
        if module.dialect is None:
            self._silent.add(module.path)

    def _shown(self, module: Shown) -> Dialect | None:
        # A script that names `tensorflow` itself may be written for TensorFlow 2, and import a
        # module that manages graphs.
        graphs = module.makes_graphs and not self._names_api
        return module.dialect or (Dialect.V1 if graphs and not module.names_api else None)

    def _settle(self) -> None:
        if not self._waiting or self._told is None:
            return
        self._waiting = False
        if tf.executing_eagerly():  # else it has disabled eager execution, or builds a graph
            _set(self._told is Dialect.V2)


def _missing(error: BaseException) -> str | None:
    if not isinstance(error, AttributeError) or not isinstance(error.obj, types.ModuleType):
        return None
    namespace = vars(error.obj).get("_path", error.obj.__name__)
    for prefix in _API:
        namespace = namespace.replace(prefix, "tensorflow", 1)
    root, _, inside = f"{namespace}.{error.name}".partition(".")
    return inside if root in ("tensorflow", "tf") else None


def _set(second: bool) -> None:
    if tf2.enabled() == second:
        return
    tf.compat.v1.reset_default_graph()  # the switch below needs an empty graph
    if second:
        tf.compat.v1.enable_v2_behavior()
    else:
        with _quiet():
            tf.compat.v1.disable_v2_behavior()


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Silences TensorFlow's advice to keep resource variables: this package disables them."""
    logger = tf.get_logger()
    level = logger.level
    logger.setLevel("ERROR")
    try:
        yield
    finally:
        logger.setLevel(level)
