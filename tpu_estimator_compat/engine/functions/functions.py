"""Makes tf.functions, reuses their traces, and sets the options of their calls."""

from __future__ import annotations

import contextlib
import functools
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.core.protobuf import rewriter_config_pb2

from tpu_estimator_compat import environment
from tpu_estimator_compat.engine.functions import profiles
from tpu_estimator_compat.engine.functions.traces import TRACES, Contents, Traced
from tpu_estimator_compat.engine.functions.tuning import DEFAULT, SINGLE_THREADED
from tpu_estimator_compat.tf_internals import PolymorphicFunction, context

_NAMELESS = (
    "\n\nTensorFlow's single-threaded executor, which runs small steps, does not name the "
    f"operation that failed. Set {environment.EXECUTOR_VARIABLE}=default in the environment and "
    "run again: then the error names the operation, and the line that made the operation."
)


class _TracedFunction(PolymorphicFunction):
    """A tf.function that ignores `tf.config.run_functions_eagerly`, as TF1's sessions did."""

    _run_functions_eagerly = False


def function(call: Callable[..., Any], **kwargs: Any) -> Callable[..., Any]:
    """A tf.function of `call`, without AutoGraph and without the warning of frequent retracing.

    One line of this package makes all functions: TensorFlow would count them as retraces of one.
    """
    if not getattr(call, "__name__", "step").isidentifier():
        # TPUStrategy names ops after the function, and `<lambda>` is not a valid name.
        call.__name__ = "step"
    made = tf.function(call, autograph=False, **kwargs)
    made.__class__ = _TracedFunction
    made._omit_frequent_tracing_warning = True
    return made


class SharedFunction:
    """A function of tensors that finds its trace by their shapes and dtypes alone.

    Functions with equal `contents` share their traces.
    """

    def __init__(self, call: Callable[..., Any], contents: Contents | None):
        self._function: Any = function(call)
        self._contents = contents
        self._traced: dict[tuple[tf.TensorSpec, ...], Traced] = {}

    def __call__(self, *tensors: tf.Tensor) -> list[tf.Tensor]:
        """The results, flat; to be called within `eager_mode()`, which hides gradient tapes."""
        specs = tuple(tf.TensorSpec(t.shape, t.dtype) for t in tensors)
        if specs not in self._traced:
            trace = self._function._get_concrete_function_garbage_collected
            self._traced[specs] = TRACES.find(self._contents, specs, lambda: trace(*specs))
        return self._traced[specs](tensors)


class IteratorFunction:
    """A function of an iterator, and tensors of fixed types, that remembers the last trace.

    A tf.function looks for the trace in every call: for an iterator, 0.35 ms of the call's 0.5 ms.
    Functions with equal `contents` share their traces.
    """

    def __init__(self, call: Callable[..., Any], contents: Contents | None = None):
        self._function: Any = function(call, reduce_retracing=True)
        self._contents = contents
        self._traced: Traced | None = None
        self._iterator: Callable[[], Any] = lambda: None
        self._handles: list[weakref.ref[tf.Tensor]] = []

    def __call__(self, iterator: Any, *tensors: tf.Tensor) -> list[tf.Tensor]:
        """The results, flat; to be called within `eager_mode()`, which hides gradient tapes."""
        if self._iterator() is not iterator:
            self._find_trace(iterator, tensors)
        assert self._traced is not None
        return self._traced([*(handle() for handle in self._handles), *tensors])

    def _find_trace(self, iterator: Any, tensors: Sequence[tf.Tensor]) -> None:
        # The result of the public method keeps its graph, with variables, until Python collects
        # cycles.
        trace = self._function._get_concrete_function_garbage_collected
        specs = [tf.TensorSpec(t.shape, t.dtype) for t in tensors]
        plain = isinstance(iterator, tf.data.Iterator)  # a strategy's iterators share no traces
        self._traced = TRACES.find(
            self._contents if plain else None,
            (repr(tf.type_spec_from_value(iterator)) if plain else None, *specs),
            lambda: trace(iterator, *specs),
        )
        # Weak: the code that closes the input relies on holding the only reference.
        self._iterator = weakref.ref(iterator)
        self._handles = [weakref.ref(handle) for handle in handles_of(iterator)]


def handles_of(iterator: Any) -> list[tf.Tensor]:
    """The tensors of an iterator; none for a TF1 strategy's, whose handles are captured."""
    parts = tf.nest.flatten(iterator, expand_composites=True)
    return [part for part in parts if isinstance(part, tf.Tensor)]


class PerExecutor:
    """A function with one trace per executor: only the default executor lowers loops."""

    def __init__(self, make: Callable[[], Callable[..., Any]], *, branches: bool = True):
        self._make = make
        self._branches = branches
        self._made: dict[str, Callable[..., Any]] = {}

    def __call__(self, executor: str, *arguments: Any) -> Any:
        """The results. While a profile is recorded, the default executor runs the function."""
        if profiles.is_recording():  # other executors do not record operations
            executor = DEFAULT
        self.trace(executor)
        with call_options(executor=executor, branches=self._branches):
            try:
                return self._made[executor](*arguments)
            except tf.errors.OpError as error:
                if executor == SINGLE_THREADED and "{{node" not in error.message:
                    error._message += _NAMELESS
                raise

    def trace(self, executor: str) -> None:
        if executor not in self._made:
            with call_options(executor=executor):
                self._made[executor] = self._make()

    def clear(self) -> None:
        """Drops the traces, after a change of the function."""
        self._made.clear()


@contextlib.contextmanager
def call_options(
    *, executor: str = "", optimize: bool = True, branches: bool = True
) -> Iterator[None]:
    """Sets the options of functions that are called, or traced, within.

    Args:
      executor: TensorFlow's name of the executor; empty for the default.
      optimize: whether Grappler rewrites a function before its first call. For a function that
        runs once this costs more than it saves, and large zeros become constants in memory.
      branches: whether the functions may have branches (`tf.cond`), or loops besides that of steps.
    """
    current = context.context()
    before = current.function_call_options
    config = before.config_proto_serialized
    current.function_call_options = _call_options(config, executor, optimize, branches)
    try:
        yield
    finally:
        current.function_call_options = before


def executor() -> str:
    """This thread's executor of functions; see `call_options`."""
    name: str = context.context().function_call_options.executor_type
    return name


@functools.lru_cache(maxsize=64)
def _call_options(
    serialized: bytes, executor: str, optimize: bool, branches: bool
) -> context.FunctionCallOptions:
    """The options; cached, since calls of single steps are short."""
    config = tf.compat.v1.ConfigProto.FromString(serialized)
    if optimize:
        _without_idle_passes(config.graph_options.rewrite_options, branches)
    else:
        config.graph_options.rewrite_options.disable_meta_optimizer = True
    return context.FunctionCallOptions(executor, config)


def _without_idle_passes(options: Any, branches: bool) -> None:
    """Limits Grappler to one round, without idle passes; keeps the user's settings.

    For an encoder of 12 layers, 6 of 12 s went into passes that changed at most 1 % of the nodes:
    the second round (3.6 s), and in the first round, the layout and memory optimizers, which are
    for GPUs, and the pass that sinks operations into branches.
    """
    config = rewriter_config_pb2.RewriterConfig
    if options.meta_optimizer_iterations == config.DEFAULT_NUM_ITERS:
        options.meta_optimizer_iterations = config.ONE
    if not branches:
        options.disable_tfg_optimizer = True
    if tf.config.list_logical_devices("GPU"):
        return
    if options.memory_optimization == config.DEFAULT_MEM_OPT:
        options.memory_optimization = config.NO_MEM_OPT
    if options.layout_optimizer == config.DEFAULT and not options.cpu_layout_conversion:
        options.layout_optimizer = config.OFF


def register_functions(graph_def: Any) -> None:
    """Adds the library functions of `graph_def` to the eager context; an import does not."""
    for function in graph_def.library.function:
        if not context.context().has_function(function.signature.name):
            context.context().add_function_def(function)
