"""tf.functions as this package makes them, and how they run."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf
from tensorflow.python.eager import context


def function(call: Callable[..., Any], **kwargs: Any) -> Callable[..., Any]:
    """A tf.function of `call`, which builds ops itself and is traced once per program.

    TensorFlow warns of a Python function that is traced often; many programs made by one line of
    this package look like that to it.
    """
    if not getattr(call, "__name__", "step").isidentifier():
        # TPUStrategy names ops after the function that it is called in, and `<lambda>` is no name.
        call.__name__ = "step"
    made = tf.function(call, autograph=False, **kwargs)
    made._omit_frequent_tracing_warning = True
    return made


class IteratorFunction:
    """A tf.function of an iterator, and perhaps a number, that knows the iterator it had last.

    A tf.function looks its arguments over in every call, to find the trace that they belong to.
    For an iterator that takes longer than all the rest of the call: 0.35 of 0.5 ms.

    Args:
      call: builds ops; takes an iterator, and a scalar tensor if there is a `dtype`.
      dtype: of the number; None for a function of an iterator alone.
    """

    def __init__(self, call: Callable[..., Any], dtype: tf.DType | None = None):
        self._function: Any = function(call, reduce_retracing=True)
        self._dtype = dtype
        self._traced: Any = None
        self._variables: list[tf.Tensor] = []
        self._iterator: Callable[[], Any] = lambda: None
        self._handles: list[weakref.ref[tf.Tensor]] = []

    def __call__(self, iterator: Any, *number: int) -> Any:
        """What the function returns; traced for every type of iterator."""
        numbers = [tf.constant(n, self._dtype) for n in number]
        if self._iterator() is not iterator:
            self._find_trace(iterator, numbers)
        inputs = [*(handle() for handle in self._handles), *numbers, *self._variables]
        return self._traced.inference_fn.call_preflattened(inputs)

    def _find_trace(self, iterator: Any, numbers: list[tf.Tensor]) -> None:
        # The public method's result would keep its graph, and the variables in it, until Python
        # looks for cycles.
        trace = self._function._get_concrete_function_garbage_collected
        self._traced = trace(iterator, *(tf.TensorSpec([], n.dtype) for n in numbers))
        self._variables = self._traced.captured_inputs
        # Known, not kept: whoever closes the input counts on it that nobody else has it.
        self._iterator = weakref.ref(iterator)
        self._handles = [weakref.ref(handle) for handle in handles_of(iterator)]


def handles_of(iterator: Any) -> list[tf.Tensor]:
    """The tensors that an iterator is made of.

    None where it is an object of Python to TensorFlow, as those of TF1's strategies: a function has
    that one's handles among what it has captured.
    """
    parts = tf.nest.flatten(iterator, expand_composites=True)
    return [part for part in parts if isinstance(part, tf.Tensor)]


class PerExecutor:
    """A function that is made and traced for each executor: only the default takes loops apart.

    Args:
      make: makes the function.
    """

    def __init__(self, make: Callable[[], Callable[..., Any]]):
        self._make = make
        self._made: dict[str, Callable[..., Any]] = {}

    def __call__(self, executor: str, *arguments: Any) -> Any:
        """What the function returns, run by `executor`."""
        self.trace(executor)
        with call_options(executor=executor):
            return self._made[executor](*arguments)

    def trace(self, executor: str) -> None:
        """Makes the function for `executor`, unless it is made."""
        if executor not in self._made:
            with call_options(executor=executor):
                self._made[executor] = self._make()

    def clear(self) -> None:
        """Forgets what was traced: the function has changed."""
        self._made.clear()


@contextlib.contextmanager
def call_options(*, executor: str = "", optimize: bool = True) -> Iterator[None]:
    """How functions called within run.

    Args:
      executor: name of TensorFlow's executor; empty for the default.
      optimize: whether Grappler rewrites a function before its first call. For a function that
        runs once it costs more than it saves, and folds large zeros into constants that stay.
    """
    current = context.context()
    before = current.function_call_options
    if optimize and executor == (before.executor_type or ""):
        yield
        return
    config = tf.compat.v1.ConfigProto.FromString(before.config_proto_serialized)
    if not optimize:
        config.graph_options.rewrite_options.disable_meta_optimizer = True
    current.function_call_options = context.FunctionCallOptions(executor, config)
    try:
        yield
    finally:
        current.function_call_options = before


def register_functions(graph_def: Any) -> None:
    """Makes the library functions of `graph_def` known to the runtime.

    Importing a GraphDef tells the importing graph about them, not those who run it.
    """
    for function in graph_def.library.function:
        if not context.context().has_function(function.signature.name):
            context.context().add_function_def(function)
