"""Orders initializers: one that reads another variable comes after that variable's initializer.

TensorFlow 1 ran them in any order: a moving average began at random with the warm-started value of
its variable, or with the initial value that the warm start replaced.
"""

from __future__ import annotations

import tensorflow as tf

from tpu_estimator_compat.engine.graph import graph_ops
from tpu_estimator_compat.engine.refs import resource_graph
from tpu_estimator_compat.engine.state.variables import READY_KEYS


def put_in_order(graph: tf.Graph) -> None:
    """Moves an initializer to the front where another would read its variable before it runs."""
    resources = resource_graph.of(graph)
    initializers = {
        resources.operation(v.op): _Initializer(
            resources.operation(graph_ops.as_operation(v.initializer))
        )
        for collection in READY_KEYS
        for v in graph.get_collection(collection)
        if v.initializer is not None
    }
    first: dict[tf.Operation, None] = {}
    entered: set[_Initializer] = set()

    def place(initializer: _Initializer) -> None:
        if initializer in entered:  # placed, or two initializers read each other's variables
            return
        entered.add(initializer)
        for read in initializer.reads:
            if read in initializers:
                place(initializers[read])
        first.update(initializer.ops)

    for initializer in initializers.values():
        for variable, reader in initializer.reads.items():
            other = initializers.get(variable)
            if other is not None and other.follows(reader):
                place(other)
    graph_ops.place_first(list(first))


class _Initializer:
    """An initializer with all operations on which it depends.

    `reads` has, for each variable handle, the first of these operations that uses it.
    """

    def __init__(self, op: tf.Operation):
        self.op = op
        ops = graph_ops.in_creation_order(graph_ops.ancestors([op], ()))
        self.ops = dict.fromkeys(ops)
        self.reads: dict[tf.Operation, tf.Operation] = {}
        for user in self.ops:
            for tensor in user.inputs:
                if user is not op and graph_ops.is_variable_handle(tensor.op):
                    self.reads.setdefault(tensor.op, user)

    def follows(self, op: tf.Operation) -> bool:
        """Whether the initializer comes after `op` without depending on it."""
        return op not in self.ops and graph_ops.in_creation_order([op, self.op])[0] is op
