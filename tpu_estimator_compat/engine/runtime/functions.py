"""tf.functions as this package makes them, and how they run."""

from __future__ import annotations

import contextlib
import functools
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.core.protobuf import rewriter_config_pb2

from tpu_estimator_compat import environment
from tpu_estimator_compat.engine.runtime import profiler
from tpu_estimator_compat.engine.runtime.traces import TRACES, Contents, Traced
from tpu_estimator_compat.engine.runtime.tuning import DEFAULT, SINGLE_THREADED
from tpu_estimator_compat.tf_internals import context

_NAMELESS = (
    "\n\nTensorFlow's single-threaded executor, which runs small steps, does not name the "
    f"operation that failed. Set {environment.EXECUTOR_VARIABLE}=default in the environment and "
    "run again: then the error names the operation, and the line that made the operation."
)


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


class SharedFunction:
    """A function of tensors, traced for each of their types, and once for all that are the same.

    A tf.function looks its arguments over in every call; this one only asks for their types.

    Args:
      call: builds ops; takes tensors.
      contents: the contents of the function; None for contents that no other function shares.
    """

    def __init__(self, call: Callable[..., Any], contents: Contents | None):
        self._function: Any = function(call)
        self._contents = contents
        self._traced: dict[tuple[tf.TensorSpec, ...], Traced] = {}

    def __call__(self, *tensors: tf.Tensor) -> list[tf.Tensor]:
        """The function's results, flat.

        Call it where nothing is recorded, as within `eager_mode()`.
        """
        specs = tuple(tf.TensorSpec(t.shape, t.dtype) for t in tensors)
        if specs not in self._traced:
            trace = self._function._get_concrete_function_garbage_collected
            self._traced[specs] = TRACES.find(self._contents, specs, lambda: trace(*specs))
        return self._traced[specs](tensors)


class IteratorFunction:
    """A tf.function of an iterator, and perhaps tensors, that knows the iterator it had last.

    A tf.function looks its arguments over in every call, to find the trace that they belong to.
    For an iterator that takes longer than all the rest of the call: 0.35 of 0.5 ms.

    Args:
      call: builds ops; takes an iterator, and tensors, whose types are the same in every call.
      contents: the contents of the function; None for contents that no other function shares.
    """

    def __init__(self, call: Callable[..., Any], contents: Contents | None = None):
        self._function: Any = function(call, reduce_retracing=True)
        self._contents = contents
        self._traced: Traced | None = None
        self._iterator: Callable[[], Any] = lambda: None
        self._handles: list[weakref.ref[tf.Tensor]] = []

    def __call__(self, iterator: Any, *tensors: tf.Tensor) -> list[tf.Tensor]:
        """The function's results, flat; traced for every type of iterator.

        Call it where nothing is recorded, as within `eager_mode()`.
        """
        if self._iterator() is not iterator:
            self._find_trace(iterator, tensors)
        assert self._traced is not None
        return self._traced([*(handle() for handle in self._handles), *tensors])

    def _find_trace(self, iterator: Any, tensors: Sequence[tf.Tensor]) -> None:
        # The public method's result would keep its graph, and the variables in it, until Python
        # looks for cycles.
        trace = self._function._get_concrete_function_garbage_collected
        specs = [tf.TensorSpec(t.shape, t.dtype) for t in tensors]
        plain = isinstance(iterator, tf.data.Iterator)  # others are known to their strategy
        self._traced = TRACES.find(
            self._contents if plain else None,
            (repr(tf.type_spec_from_value(iterator)) if plain else None, *specs),
            lambda: trace(iterator, *specs),
        )
        # Known, not kept: the code that closes the input counts on holding it alone.
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
      branches: see `call_options`.
    """

    def __init__(self, make: Callable[[], Callable[..., Any]], *, branches: bool = True):
        self._make = make
        self._branches = branches
        self._made: dict[str, Callable[..., Any]] = {}

    def __call__(self, executor: str, *arguments: Any) -> Any:
        """The function's results, run by `executor`; by the default one while a profile is
        being recorded, since the others do not record operations.
        """
        if profiler.is_recording():
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
        """Makes the function for `executor`, unless it is made."""
        if executor not in self._made:
            with call_options(executor=executor):
                self._made[executor] = self._make()

    def clear(self) -> None:
        """Forgets what was traced: the function has changed."""
        self._made.clear()


@contextlib.contextmanager
def call_options(
    *, executor: str = "", optimize: bool = True, branches: bool = True
) -> Iterator[None]:
    """The context that sets how functions called within it run.

    Args:
      executor: name of TensorFlow's executor; empty for the default.
      optimize: whether Grappler rewrites a function before its first call. For a function that
        runs once it costs more than it saves, and folds large zeros into constants that stay.
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
    """The executor that functions called here run on, as `call_options` names it."""
    name: str = context.context().function_call_options.executor_type
    return name


@functools.lru_cache(maxsize=64)
def _call_options(
    serialized: bytes, executor: str, optimize: bool, branches: bool
) -> context.FunctionCallOptions:
    """The options; kept, since a hook that has control around every step pays for them."""
    config = tf.compat.v1.ConfigProto.FromString(serialized)
    if optimize:
        _without_idle_passes(config.graph_options.rewrite_options, branches)
    else:
        config.graph_options.rewrite_options.disable_meta_optimizer = True
    return context.FunctionCallOptions(executor, config)


def _without_idle_passes(options: Any, branches: bool) -> None:
    """Has Grappler go over a step once, with those passes alone that find something in it.

    Of 12 s that it took for the step of an encoder of 12 layers, 6 s went into passes that changed
    nothing, or 1% of the nodes: the second round 3.6 s, and of the first the layout of images and
    the exchange of memory, which are for GPUs, and what sinks operations into branches. What the
    user has set stays.

    Args:
      options: a RewriterConfig.
      branches: whether there are branches to sink operations into.
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
    """Makes the library functions of `graph_def` known to the runtime.

    Importing a GraphDef tells the importing graph about them, not those who run it.
    """
    for function in graph_def.library.function:
        if not context.context().has_function(function.signature.name):
            context.context().add_function_def(function)
