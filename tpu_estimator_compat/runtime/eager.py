"""The contexts in which programs are built and run, whatever a script has switched off."""

from __future__ import annotations

import collections
import contextlib
import random
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf
from keras.src.backend.common import global_state
from tensorflow.python import pywrap_tfe
from tensorflow.python.eager import context, record
from tensorflow.python.ops import control_flow_util, resource_variables_toggle

from tpu_estimator_compat.program import dimensions
from tpu_estimator_compat.program.keras_layers import one_scope_per_call


@contextlib.contextmanager
def eager_mode() -> Iterator[None]:
    """Eager execution, also inside a legacy graph context or after `disable_v2_behavior()`."""
    # Only a function under construction has to be left. In a plain graph `init_scope` would push
    # onto that graph's own stacks, which threads share: a checkpoint may be written by another one.
    building = tf.compat.v1.get_default_graph().building_function
    with tf.init_scope() if building else record.stop_recording(), context.eager_mode():
        yield


@contextlib.contextmanager
def capture_semantics() -> Iterator[None]:
    """What legacy functions are called in: graphs as programs need them, and working tapes.

    `disable_v2_behavior()` in a script would otherwise give frames (Enter, Exit) and ref variables,
    which cannot be imported into a function. Names and checkpoints are the same either way.
    """
    control_flow = control_flow_util.ENABLE_CONTROL_FLOW_V2
    resource = resource_variables_toggle._DEFAULT_USE_RESOURCE
    control_flow_util.ENABLE_CONTROL_FLOW_V2 = True
    resource_variables_toggle._DEFAULT_USE_RESOURCE = True
    try:
        with dimensions.with_values(), _recording():
            yield
    finally:
        control_flow_util.ENABLE_CONTROL_FLOW_V2 = control_flow
        resource_variables_toggle._DEFAULT_USE_RESOURCE = resource


@contextlib.contextmanager
def _recording() -> Iterator[None]:
    """Within, a `tf.GradientTape` records, also where `eager_mode` keeps tapes from recording."""
    stopped = pywrap_tfe.TFE_Py_TapeSetIsStopped()
    if stopped:
        pywrap_tfe.TFE_Py_TapeSetRestartOnThread()
    try:
        yield
    finally:
        if stopped:
            pywrap_tfe.TFE_Py_TapeSetStopOnThread()


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


@contextlib.contextmanager
def foreign_tensors_explained(function: str) -> Iterator[None]:
    """Says where a tensor or variable comes from that a graph cannot take in.

    Args:
      function: what builds the graph, `model_fn` or `input_fn`.

    Raises:
      RuntimeError: TensorFlow's, with what to do.
    """
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


_FOREIGN = "Attempting to capture an EagerTensor without building a function"


@contextlib.contextmanager
def seeded_initializers(seed: int | None) -> Iterator[None]:
    """Lets a graph-level seed reach Keras initializers, which draw theirs from Python's random.

    The state of Python's generator is put back afterwards.
    """
    if seed is None:
        yield
        return
    state = random.getstate()
    random.seed(seed)
    try:
        yield
    finally:
        random.setstate(state)


@contextlib.contextmanager
def fresh_keras_names() -> Iterator[None]:
    """Keras 3 names layers from one count per process; a model_fn's start anew in each graph.

    Otherwise the second graph of an estimator would look for `dense_1` where the first one's
    checkpoint has `dense`. Keras 2 counted per graph.
    """
    names = global_state.get_global_attribute(_NAMES)
    global_state.set_global_attribute(_NAMES, collections.defaultdict(int))
    try:
        with one_scope_per_call():
            yield
    finally:
        global_state.set_global_attribute(_NAMES, names)


_NAMES = "object_name_uids"
