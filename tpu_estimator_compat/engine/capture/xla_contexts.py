"""The computation of a replica, as model_fns of its time ask TensorFlow's inside for it.

On a TPU the original called a model_fn in the context of a replicated computation. Some model_fns
return another spec there, ask for static shapes, or pick the replica's own of several variables.
With TPU rules they get a TPU's answers here on any devices, while TensorFlow, which would leave out
what only XLA cannot do, goes by what really compiles the graph.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import tensorflow as tf

from tpu_estimator_compat.tf_internals import (
    context,
    control_flow_ops,
    control_flow_util,
    tpu_function,
    tpu_ops,
)


class ReplicaContext(control_flow_ops.XLAControlFlowContext):
    """The context of a replicated computation; its operations are ordinary ones of the graph.

    Args:
      compiled: whether XLA compiles the computation.
    """

    def __init__(self, compiled: bool):
        super().__init__()
        self._compiled = compiled
        self._handles: dict[str, tf.Tensor] = {}

    def IsXLAContext(self) -> bool:
        return self._compiled

    def AddOp(self, op: tf.Operation) -> None:
        op._set_control_flow_context(None)  # or it could not be a variable's first value
        if self.outer_context is not None:  # marks what runs on a TPU's host
            self.outer_context.AddOp(op)

    def get_replicated_var_handle(
        self, name: str, handle_id: Any, vars_: Sequence[Any] | None = None, **kwargs: bool
    ) -> tf.Tensor:
        """The handle of the replica's own variable, by TensorFlow's name of this method.

        Args:
          name: of all variables together.
          handle_id: tells variables of one name apart. TensorFlow 1 took the variables here.
          vars_: a variable per replica.
          **kwargs: whether all have the same value, or are one; neither makes a difference.
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


@contextlib.contextmanager
def of_replica(compiled: bool) -> Iterator[None]:
    """The context in which model_fns are called with TPU rules, or for XLA.

    For XLA, gradients of branches and loops are built in a form that it knows. A branch that was
    not taken hands on zeros, as in a graph that is made for a TPU, where other graphs wrap values
    in optionals, for which XLA has no kernel. A loop's gradient asks for sizes itself, where others
    have the loop hand them on in a list, which are no constants to XLA.

    Args:
      compiled: whether XLA compiles what is built.
    """
    replica = ReplicaContext(compiled)
    replica.Enter()
    try:
        with (
            context.temporarily_disable_optionals_in_gradients()
            if compiled
            else contextlib.nullcontext()
        ):
            yield
    finally:
        replica.Exit()


def GetContainingXLAContext(ctxt: Any) -> Any:
    """The innermost context of XLA around a control flow context; None if there is none."""
    found = control_flow_util.GetContainingXLAContext(ctxt)
    if found is None and _is_for_tpu():
        return ReplicaContext(compiled=True)
    return found


def InXlaContext(graph: tf.Graph) -> bool:
    """Whether what is built in a graph now is for XLA."""
    return _is_for_tpu() or control_flow_util.InXlaContext(graph)


def GraphOrParentsInXlaContext(graph: tf.Graph) -> bool:
    """The same, of a graph or one of those around it."""
    return _is_for_tpu() or control_flow_util.GraphOrParentsInXlaContext(graph)


def IsInXLAContext(op: tf.Operation) -> bool:
    """Whether an operation was built for XLA."""
    return _is_for_tpu() or control_flow_util.IsInXLAContext(op)


def _is_for_tpu() -> bool:
    return tpu_function.get_tpu_context().number_of_shards is not None
