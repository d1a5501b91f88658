"""TensorFlow's XLA contexts, which model_fns written for TPUs query.

On a TPU the original called a model_fn in the context of a replicated computation. Some model_fns
return another spec there, ask for static shapes, or pick the replica's own variable among several.
With `use_tpu=True` their queries answer as on a TPU, on any device. TensorFlow omits ops that XLA
lacks, so its own queries answer whether XLA really compiles the graph. For
`tf.tpu.outside_compilation`, TensorFlow marks ops, but only while it builds a replicated TPU
computation. A model_fn is captured first, and imported into that computation later. So a graph for
a TPU is captured in a context of the class that TensorFlow looks for, which marks ops; TPUStrategy
moves the marked ops to the host.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.core.framework.attr_value_pb2 import AttrValue

from tpu_estimator_compat.engine.capture.patches import patched
from tpu_estimator_compat.tf_internals import (
    context,
    control_flow_ops,
    control_flow_util,
    tpu_function,
    tpu_ops,
    tpu_replication,
)

_OF_REPLICA = "_of_replica"


def note_of_replica(op: tf.Operation) -> None:
    """Records that each replica has its own value of `op`, in every step."""
    setattr(op, _OF_REPLICA, True)


class ReplicaContext(control_flow_ops.XLAControlFlowContext):
    """The context of a replicated computation, whose ops stay ordinary ops of the graph."""

    def __init__(self, compiled: bool):
        super().__init__()
        self._compiled = compiled
        self._handles: dict[str, tf.Tensor] = {}

    def IsXLAContext(self) -> bool:
        return self._compiled

    def AddOp(self, op: tf.Operation) -> None:
        note_of_replica(op)
        op._set_control_flow_context(None)  # or it could not be a variable's initial value
        if self.outer_context is not None:  # it marks ops of a TPU's host
            self.outer_context.AddOp(op)

    def get_replicated_var_handle(
        self, name: str, handle_id: Any, vars_: Sequence[Any] | None = None, **kwargs: bool
    ) -> tf.Tensor:
        """The handle of the replica's own variable; TensorFlow's name and arguments.

        `vars_` has one per replica. `handle_id` tells apart variables of one name; in TensorFlow 1
        this argument was `vars_`.
        """
        del kwargs
        if vars_ is None:
            name, handle_id, vars_ = name, name, handle_id
        if handle_id not in self._handles:
            with tf.control_dependencies(None):
                self._handles[handle_id] = tpu_ops.tpu_replicated_input(
                    [v.handle for v in vars_], name=f"{name}/handle"
                )
        return self._handles[handle_id]


class _HostContext(control_flow_ops.XLAControlFlowContext):
    """The context of a function on the host: see `on_host`."""

    def __init__(self, name: str):
        super().__init__()
        self._name = name

    def IsXLAContext(self) -> bool:
        return False

    def AddOp(self, op: tf.Operation) -> None:
        op._set_control_flow_context(None)
        of_writer = op.type.startswith("Write")  # such as WriteScalarSummary
        if op.type.endswith(("Summary", "SummaryV2")) and not of_writer:
            self.refuse_summary()
        for used in [*(t.op for t in op.inputs), *op.control_inputs]:
            self.check(
                used,
                f"Cannot use {{0!r}} as input to {op.name!r} because {{0!r}} is in a while loop.",
            )

    def check(self, used: Any, message: str) -> None:
        """Raises ValueError where `used`, an op, tensor or other value, is of model_fn."""
        op = used if isinstance(used, tf.Operation) else getattr(used, "op", None)
        if op is None or not getattr(op, _OF_REPLICA, False):
            return
        what = ", ".join(map(str, op.outputs)) or f"the operation {op.name}"
        raise ValueError(
            f"{message.format(op.name)} The function of {self._name} takes {what} from model_fn, "
            f"which each replica computes for itself. Pass the tensor in {self._name}[1], with a "
            "batch dimension, and use the function's argument. Variables may be read in the "
            "function."
        )

    def refuse_summary(self) -> None:
        raise ValueError(
            "Please use tf.contrib.summary instead of tf.summary inside of host_calls. Make a "
            f"writer with create_file_writer in the function of {self._name}, and return "
            "all_summary_ops()."
        )


def on_host(name: str, function: Callable[[], Any]) -> Any:
    """The result of `function`, which uses nothing of a replica's computation.

    Raises ValueError where it does, in the words of the original, on whose TPU a loop has the ops
    of model_fn. `name` is the field of the spec that has the function.
    """
    key = tf.compat.v1.GraphKeys.SUMMARIES
    summaries = tf.compat.v1.get_default_graph().get_collection_ref(key)
    before, context = len(summaries), _HostContext(name)
    context.Enter()
    try:
        returned = function()
    finally:
        context.Exit()
    if len(summaries) > before:  # in a branch
        context.refuse_summary()
    for value in tf.nest.flatten(returned):
        context.check(value, "Operation {0!r} has been marked as not fetchable.")
    return returned


@contextlib.contextmanager
def of_replica(compiled: bool) -> Iterator[None]:
    """A context in which model_fns build for `use_tpu=True`, or, if `compiled`, for XLA.

    For XLA, a branch that was not taken gives zeros to gradients, as in graphs for a TPU: other
    graphs wrap values in optionals, for which XLA has no kernel. A loop's gradient computes sizes
    itself: other graphs pass them in a TensorList, where XLA sees no constants.
    """
    replica = ReplicaContext(compiled)
    replica.Enter()
    try:
        with (
            patched(context, "optionals_in_gradients_enabled", lambda _: False)
            if compiled
            else contextlib.nullcontext()
        ):
            yield
    finally:
        replica.Exit()


def GetContainingXLAContext(ctxt: Any) -> Any:
    """The innermost XLA context around a control flow context; None without one."""
    found = control_flow_util.GetContainingXLAContext(ctxt)
    if found is None and _is_for_tpu():
        return ReplicaContext(compiled=True)
    return found


def InXlaContext(graph: tf.Graph) -> bool:
    """Whether ops are being built for XLA in a graph."""
    return _is_for_tpu() or control_flow_util.InXlaContext(graph)


def GraphOrParentsInXlaContext(graph: tf.Graph) -> bool:
    return _is_for_tpu() or control_flow_util.GraphOrParentsInXlaContext(graph)


def IsInXLAContext(op: tf.Operation) -> bool:
    return _is_for_tpu() or control_flow_util.IsInXLAContext(op)


def _is_for_tpu() -> bool:
    return tpu_function.get_tpu_context().number_of_shards is not None


class _Marks(tpu_replication.TPUReplicateContext):
    """A TPU computation that leaves its ops in the graph, and marks them."""

    def AddOp(self, op: tf.Operation) -> None:
        if self._outside_compilation_cluster:
            cluster = self._outside_compilation_cluster.encode()
            op._set_attr(tpu_replication._OUTSIDE_COMPILATION_ATTR, AttrValue(s=cluster))
        if self._is_map_outside_compilation:
            op._set_attr(tpu_replication._MAP_OUTSIDE_COMPILATION_ATTR, AttrValue(b=True))

    def AddValue(self, val: tf.Tensor) -> tf.Tensor:
        return val


@contextlib.contextmanager
def marked(replicas: int) -> Iterator[None]:
    """A context in which `tf.tpu.outside_compilation`, and gradients of its ops, mark ops.

    As in the original, TensorFlow builds for XLA here: a loop's gradient needs a constant
    `maximum_iterations`, for example.
    """
    context = _Marks("model_fn", replicas, pivot=None)
    context.Enter()
    try:
        yield
    finally:
        context.Exit()
