"""Live state of a captured graph: one `tf.Variable` per variable, one handle per host resource.

Variables keep their TF1 names. Replica variables are created under the strategy, one component per
replica; all others (local and metric variables, hooks' counters) live on the host, once. As in TF1,
a variable has no value, and cannot be read, until an initializer or a checkpoint assigns one.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from tpu_estimator_compat.engine.cluster.group import Group
from tpu_estimator_compat.engine.functions import eager, functions, op_errors, placement
from tpu_estimator_compat.engine.graph import graph_ops
from tpu_estimator_compat.engine.state.resources import Resource
from tpu_estimator_compat.tf_internals import context, resource_variable_ops, tensor_shape

if TYPE_CHECKING:
    from tpu_estimator_compat.engine.state.sharded_variables import ShardedVariables

_LARGE = 2**14  # elements
READY_KEYS = (tf.compat.v1.GraphKeys.GLOBAL_VARIABLES, tf.compat.v1.GraphKeys.LOCAL_VARIABLES)
"""Collections of the variables that TensorFlow's default ready op checks."""


class VariableStore:
    """Variables and resources of one captured graph, by the name of their op.

    Attributes:
      assignments: the number of calls of `assign`.
      has_own_ready_op: whether the user's scaffold has a ready op, in place of TensorFlow's.
      sharded: the variables of which this machine has some rows; None where it has all rows.
      joined: by name, variables that host code reads as the sum (SUM) or mean (MEAN) over replicas,
        as `synchronization=ON_READ` asks for, such as moving averages of batch normalization.
    """

    def __init__(self, strategy: tf.distribute.Strategy):
        self.strategy = strategy
        self.assignments = 0
        self.has_own_ready_op = False
        self.sharded: ShardedVariables | None = None
        self._variables: dict[str, tf.Variable] = {}
        self._resources: dict[str, Resource] = {}
        self.joined: dict[str, tf.VariableAggregation] = {}
        self._making = threading.RLock()

    @property
    def on_tpu(self) -> bool:
        return isinstance(self.strategy, tf.distribute.TPUStrategy)

    def __contains__(self, name: str) -> bool:
        return name in self._variables

    def __getitem__(self, name: str) -> tf.Variable:
        return self._variables[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._variables)

    def assign(self, name: str, value: Any) -> None:
        """Assigns a value to all components of variable `name`."""
        self.assignments += 1
        with eager.eager_mode():
            for component in components(self._variables[name]):
                component.assign(value)

    def prepare(
        self,
        handles: Iterable[tf.Operation],
        *,
        replicated: bool | None = None,
        trainable: Iterable[str] = (),
    ) -> None:
        """Creates the variables and resources of handle ops, unless they exist.

        Args:
          replicated: whether every replica gets its own component. None if no step uses them: then
            only TPU cores get components, since operations on a core, which hooks may fetch, can
            use only the core's own variables.
          trainable: names of the variables to mark as trainable.
        """
        trainable = set(trainable)
        if replicated is None:
            replicated = self.on_tpu
        with self._making:  # threads of queue runners may ask for the same queue
            made = self._variables, self._resources
            new = {op.name: op for op in handles if not any(op.name in each for each in made)}
            reported = self._reported(graph_ops.original(op).graph for op in new.values())
            for name, op in new.items():
                self._make(op, replicated, name in trainable, name in reported)

    def _reported(self, graphs: Iterable[tf.Graph]) -> set[str]:
        """Names of the variables that TensorFlow's default ready op reports."""
        keys = () if self.has_own_ready_op else READY_KEYS
        return {v.op.name for g in dict.fromkeys(graphs) for k in keys for v in g.get_collection(k)}

    def _make(self, op: tf.Operation, replicated: bool, trainable: bool, reported: bool) -> None:
        if graph_ops.is_variable_handle(op):
            self._variables[op.name] = made = self._create(op, replicated, trainable)
            if not reported and not hasattr(graph_ops.original(op), graph_ops.READS_AROUND):
                for component in components(made):
                    _refuse_reads_before_first_value(component, op.name)
        else:
            with eager.eager_mode(), tf.device("/cpu:0"):
                self._resources[op.name] = Resource(op)

    @functools.cached_property
    def _common_device(self) -> str:
        """The device that all replicas share; empty where each has its own."""
        return placement.common_device(self.strategy) or ""

    def _create(self, op: tf.Operation, replicated: bool, trainable: bool) -> tf.Variable:
        shape = tensor_shape.TensorShape(op.get_attr("shape"))
        dtype = tf.as_dtype(op.get_attr("dtype"))
        # The strategy sets the device of each replica's component; "" keeps it.
        common = self._common_device if replicated else ""

        def uninitialized(next_creator, **kwargs):
            del next_creator
            # One name for all handles: TensorFlow makes a kernel, in 0.3 ms, for each name.
            with tf.device(common):
                made = resource_variable_ops.UninitializedVariable(
                    trainable=trainable, name="variable", shape=shape, dtype=dtype
                )
            made._handle_name = f"{op.name if common else kwargs['name']}:0"
            return made

        def create() -> tf.Variable:
            return tf.Variable(
                initial_value=lambda: tf.zeros([], dtype),  # never called: see `uninitialized`
                trainable=trainable,
                name=op.name,
                shape=shape,
                dtype=dtype,
                aggregation=tf.VariableAggregation.NONE,
            )

        with eager.eager_mode(), tf.variable_creator_scope(uninitialized):
            if not replicated:
                with tf.device("/cpu:0"):
                    return create()
            with self.strategy.scope():
                return create()

    def handles(self) -> dict[tuple[str, int], tf.Tensor]:
        """All handles by their op's name and the component's index: see `traces.Holder`."""
        found = {
            (name, i): component.handle
            for name, variable in self._variables.items()
            for i, component in enumerate(components(variable))
        }
        return found | {(name, 0): made.handle for name, made in self._resources.items()}

    def handle(self, name: tuple[str, int]) -> tf.Tensor:
        op_name, i = name
        if op_name in self._resources:
            return self._resources[op_name].handle
        return components(self._variables[op_name])[i].handle

    def host_handle(self, op: tf.Operation) -> tf.Tensor:
        """The handle for host programs: a resource's, or that of a variable's first component."""
        return self.handle((op.name, 0))

    def replica_handle(self, op: tf.Operation) -> tf.Tensor:
        """The handle of the calling replica's own variable; called inside `strategy.run`."""
        if op.name in self._resources:
            return self._resources[op.name].handle
        variable = self._variables[op.name]
        if self.on_tpu or not isinstance(variable, tf.distribute.DistributedValues):
            return variable.handle
        return variable._get().handle

    def global_step(self, graph: tf.Graph) -> tf.Variable | None:
        """The first component of a graph's global step; None without one."""
        step = tf.compat.v1.train.get_global_step(graph)
        if step is None or step.op.name not in self._variables:
            return None
        return components(self._variables[step.op.name])[0]

    def read(self, name: str, dataset: tf.data.Dataset) -> tf.Tensor:
        """Makes the iterator `name` read a dataset; returns the iterator's handle."""
        self._resources[name].read(dataset)
        return self._resources[name].handle

    def iterators(self) -> list[Resource]:
        return [resource for resource in self._resources.values() if resource.is_iterator]

    def drop_resources(self) -> None:
        """Drops everything but variables: each session has its own tables, queues and iterators."""
        self._resources.clear()

    def close(self) -> None:
        """Frees large values at once: graphs keep variables until Python collects cycles."""
        with eager.eager_mode():
            for variable in self._variables.values():
                for component in filter(_is_large_and_local, components(variable)):
                    empty(component)
        self._variables.clear()
        self.drop_resources()

    def flush_summaries(self) -> None:
        """Writes pending events, as summary writers did when their session was closed."""
        with eager.eager_mode():
            for resource in self._resources.values():
                if resource.is_summary_writer:
                    resource.flush()

    def to_host(self, names: Iterable[str]) -> None:
        """Called before host code uses variables. They are on the host: there is nothing to do."""

    def host_wrote(self, names: Iterable[str]) -> None:
        """Called after host code has written all components of variables."""

    @contextlib.contextmanager
    def host_view(self, names: Iterable[str]) -> Iterator[None]:
        """Within the context, the first components of `joined` variables hold sums or means."""
        kept = []
        for name in self.joined.keys() & names:
            first, *others = components(self._variables[name])
            if others and first.is_initialized():
                kept.append((first, first.read_value()))
                total = tf.add_n([first, *(tf.identity(o) for o in others)])
                mean = self.joined[name] == tf.VariableAggregation.MEAN
                first.assign(total / (1 + len(others)) if mean else total)
        try:
            yield
        finally:
            for first, value in kept:
                first.assign(value)

    def share_reads(self, names: Iterable[str]) -> None:
        """Makes the next reads of variables share their buffers instead of copying them.

        After a sparse update each read copies a variable, and a checkpoint, which reads all at
        once, would hold the model twice. The next sparse update turns copying on again.
        """
        for variable in (self._variables[name] for name in names if name in self._variables):
            with contextlib.suppress(tf.errors.FailedPreconditionError):  # the read reports it
                tf.raw_ops.DisableCopyOnRead(resource=components(variable)[0].handle)

    def take_from_chief(self, group: Group, names: Sequence[str]) -> None:
        """Assigns the chief's values to variables; called on all machines with the same names."""
        every = [components(self._variables[name]) for name in names]

        def take() -> None:
            for name, (first, *_) in zip(names, every, strict=True):
                first.assign(group.from_chief(first.read_value(), f"first value of {name}"))

        with functions.call_options(optimize=False):
            functions.function(take)()
        for first, *others in every:
            for other in others:
                other.assign(first.read_value())

    def broadcast(self, handles: Iterable[tf.Operation], *, restored: bool = False) -> None:
        """Copies the first component of each variable of `handles` to the other replicas.

        A restored sum over replicas is divided among them.
        """
        with eager.eager_mode():
            for op in handles:
                every = components(self._variables[op.name])
                if len(every) == 1 or not every[0].is_initialized():
                    continue
                value = every[0].read_value()
                if restored and self.joined.get(op.name) == tf.VariableAggregation.SUM:
                    value = tf.cast(value / len(every), value.dtype)
                for component in every:
                    tf.raw_ops.AssignVariableOp(resource=component.handle, value=value)


def components(variable: tf.Variable) -> tuple[tf.Variable, ...]:
    """The plain variables behind a variable: one, or one per local replica."""
    if isinstance(variable, tf.distribute.DistributedValues):
        return variable.values
    return (variable,)


def empty(variable: tf.Variable) -> None:
    """Frees the memory of a plain variable's value: a scalar takes its place."""
    tf.raw_ops.AssignVariableOp(resource=variable.handle, value=tf.zeros([], variable.dtype))


def _is_large_and_local(component: tf.Variable) -> bool:
    """Whether emptying it saves memory, and cannot block on a process that does not answer."""
    here = context.context().host_address_space()
    size = component.shape.num_elements()
    return component.device.startswith(here) and (size is None or size >= _LARGE)


def _refuse_reads_before_first_value(variable: tf.Variable, name: str) -> None:
    """Makes reads of a plain variable fail until it has a value, as in TF1.

    Before the first assignment, an anonymous handle reads as an empty array; a named one fails.
    Each name costs a kernel: variables that a ready op checks keep anonymous handles.
    """
    anonymous = variable.handle
    with eager.eager_mode(), tf.device(anonymous.device):
        handle = tf.raw_ops.VarHandleOp(
            dtype=variable.dtype, shape=variable.shape, shared_name=op_errors.own_name(name)
        )
    handle._handle_data = anonymous._handle_data
    variable._handle = handle
    variable._handle_deleter = resource_variable_ops.EagerResourceDeleter(handle, handle.device)
