"""Converts a Keras metric in a v1 graph to the `(value, update_op)` pair that a spec holds.

Keras 3 metrics do not list their update ops, so these are found by their effect: they write to a
variable of the metric, and are neither its initializer nor the restore of a checkpoint.
"""

import itertools
from collections.abc import Iterable, Iterator
from typing import Any

import tensorflow as tf

_WRITES = frozenset(
    {
        "AssignVariableOp",
        "AssignAddVariableOp",
        "AssignSubVariableOp",
        "ResourceStridedSliceAssign",
        *(f"ResourceScatter{kind}" for kind in ("Update", "Add", "Sub", "Mul", "Div")),
        *(f"ResourceScatter{kind}" for kind in ("Min", "Max")),
        *(f"ResourceScatterNd{kind}" for kind in ("Update", "Add", "Sub", "Min", "Max")),
    }
)
_NOT_SAVED = (tf.compat.v1.GraphKeys.LOCAL_VARIABLES, tf.compat.v1.GraphKeys.METRIC_VARIABLES)
_SAVED = (tf.compat.v1.GraphKeys.GLOBAL_VARIABLES, tf.compat.v1.GraphKeys.TRAINABLE_VARIABLES)


def is_keras_metric(value: Any) -> bool:
    """Whether `value` is a metric object of Keras 3, tf_keras or TensorFlow's own old copy."""
    # By its methods: a comparison with the classes would import tf_keras, which takes seconds.
    return all(hasattr(value, name) for name in ("update_state", "result", "variables"))


def keras_metric_pair(metric: Any) -> tuple[tf.Tensor, tf.Operation]:
    """The `(value, update_op)` of a Keras metric of the default graph, after `update_state(...)`.

    Moves the metric's variables from the collections of global and trainable variables to those of
    local and metric variables: every evaluation starts them from zero, and no checkpoint has them.
    The update op makes all calls of `update_state` in order; the original's made only the first.
    """
    # Keras 3 wraps variables, tf_keras does not.
    variables = [v if isinstance(v, tf.Variable) else v.value for v in metric.variables]
    graph = tf.compat.v1.get_default_graph()
    if any(getattr(variable.handle, "graph", None) is not graph for variable in variables):
        raise ValueError(
            f'eval_metric_ops with "{metric.name}" must be from the default graph. '
            "Create the metric inside the model_fn or metric_fn that returns it."
        )
    updates = _chained_updates(graph, variables)
    if not updates:
        raise ValueError(
            f'Please call update_state(...) on the "{metric.name}" metric'
            " before returning it, in the same graph."
        )
    _make_local(graph, variables)
    return tf.convert_to_tensor(metric.result()), tf.group(*updates)


def _chained_updates(graph: tf.Graph, variables: list[tf.Variable]) -> list[tf.Operation]:
    """The ops that write to `variables`, each with a control dependency on the write before it."""
    updates: list[tf.Operation] = []
    for variable in variables:
        writes = [op for op in variable.handle.consumers() if _is_update(op, variable)]
        if len(writes) > 1:
            position = {op: i for i, op in enumerate(graph.get_operations())}
            writes.sort(key=position.__getitem__)
            _run_in_order(writes, variable, position)
        updates.extend(op for op in writes if op not in updates)
    return updates


def _is_update(op: tf.Operation, variable: tf.Variable) -> bool:
    if op is variable.initializer or _is_restore(op):
        return False
    return op.type in _WRITES or _calls_a_write(op)


def _is_restore(op: tf.Operation) -> bool:
    """Whether `op` assigns a value read from a checkpoint, by a Saver built before the spec."""
    while len(op.inputs) and op.type in ("AssignVariableOp", "Identity"):
        op = op.inputs[-1].op
    return op.type == "RestoreV2"


def _calls_a_write(op: tf.Operation) -> bool:
    """Whether `op` calls a function (`tf.function`, `tf.cond`, ...) whose body writes."""
    called = _called_functions([op.node_def])
    if not called:
        return False
    bodies = {f.signature.name: f.node_def for f in op.graph.as_graph_def().library.function}
    seen: set[str] = set()
    while called - seen:
        name = (called - seen).pop()
        seen.add(name)
        if any(node.op in _WRITES for node in bodies[name]):
            return True
        called |= _called_functions(bodies[name])
    return False


def _called_functions(nodes: Iterable[Any]) -> set[str]:
    attrs = [attr for node in nodes for attr in node.attr.values()]
    single = {attr.func.name for attr in attrs if attr.HasField("func")}
    return single | {func.name for attr in attrs for func in attr.list.func}


def _run_in_order(
    writes: list[tf.Operation], variable: tf.Variable, position: dict[tf.Operation, int]
) -> None:
    """Makes each update see the one before: Keras 3 reads, adds and assigns in three ops."""
    for earlier, later in itertools.pairwise(writes):
        later._add_control_input(earlier)
        for read in _reads_behind(later, variable):
            if position[read] > position[earlier]:
                read._add_control_input(earlier)


def _reads_behind(op: tf.Operation, variable: tf.Variable) -> Iterator[tf.Operation]:
    seen, waiting = {op}, [op]
    while waiting:
        for tensor in waiting.pop().inputs:
            source = tensor.op
            if source in seen:
                continue
            seen.add(source)
            waiting.append(source)
            if source.type == "ReadVariableOp" and source.inputs[0] is variable.handle:
                yield source


def _make_local(graph: tf.Graph, variables: list[tf.Variable]) -> None:
    own = {id(variable) for variable in variables}
    for key in _SAVED:
        collection = graph.get_collection_ref(key)
        collection[:] = [variable for variable in collection if id(variable) not in own]
    for key in _NOT_SAVED:
        present = {id(variable) for variable in graph.get_collection(key)}
        graph.get_collection_ref(key).extend(v for v in variables if id(v) not in present)
