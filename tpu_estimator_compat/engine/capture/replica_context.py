"""What user functions ask of `tf.distribute`, in a graph that all replicas of a strategy run.

The original called model_fn once per replica, and `merge_call` made these calls meet. Here one call
serves all replicas, and each computes its own value of a tensor. So user functions see the user's
strategy, but collectives join the values. All code that asks for a strategy, such as TensorFlow's
and Keras' optimizers and layers, runs unchanged on it.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from typing import Any

import tensorflow as tf
from tensorflow.compiler.tf2xla.ops import gen_xla_ops

from tpu_estimator_compat.tf_internals import (
    cross_device_ops,
    distribute_lib,
    distribute_values,
    resource_variable_ops,
    tpu_ops,
    values_util,
)

REPORTED_LOSS = "loss_over_replicas"
_Default = distribute_lib._DefaultDistributionExtended
_Variable: Any = resource_variable_ops.ResourceVariable


@contextlib.contextmanager
def in_replica(strategy: tf.distribute.Strategy | None) -> Iterator[None]:
    """A context in which the default graph is built for each replica of `strategy`, if any."""
    with across_replicas(strategy) as shown:
        with _ReplicaContext(shown, 0) if shown else contextlib.nullcontext():
            yield


def across_replicas(strategy: tf.distribute.Strategy | None) -> Any:
    """A context for code of the default graph that runs once for all replicas, if any."""
    return contextlib.nullcontext() if strategy is None else _shown(strategy).scope()


def reported_loss(
    loss: tf.Tensor, replicas: int, strategy: tf.distribute.Strategy | None = None
) -> tf.Tensor:
    """The mean of the replicas' losses; with a training's strategy, the sum of a TF1 sum."""
    with across_replicas(strategy), tf.name_scope(REPORTED_LOSS):
        of_strategy = tf.compat.v1.distribute.get_loss_reduction()
        reduction = of_strategy if strategy else tf.distribute.ReduceOp.MEAN
        return tf.cast(_joined(reduction, loss, replicas), loss.dtype)


def _shown(strategy: Any) -> Any:
    """A strategy like `strategy` that joins values by collectives of the default graph."""
    users = strategy.extended
    shown = _copied(strategy, type(strategy))
    extended = _copied(users, type(type(users).__name__, (_Extended, type(users)), {}))
    extended.graph, extended.same = tf.compat.v1.get_default_graph(), {}
    extended._container_strategy_weakref, extended._default_device = lambda: shown, None
    shown._extended, shown._scale_loss_for_estimator = extended, True
    return shown


def _copied(original: Any, kind: Any) -> Any:
    copy = kind.__new__(kind)  # `copy.copy` refuses strategies
    vars(copy).update(vars(original))
    return copy


class PerReplica(distribute_values.PerReplica):
    """A value that differs by replica, in code that runs once for all: `own` is each replica's."""

    def __init__(self, own: Any, extended: Any):
        self.own, self._extended = own, extended

    @functools.cached_property
    def _values(self) -> tuple[Any, ...]:
        if len(self._extended.worker_devices) == 1:  # of this machine
            return (self.own,)
        every = _gathered(self.own[tf.newaxis], 0, self._extended._num_replicas_in_sync)
        return tuple(tf.unstack(every))


class _Extended:
    """Overrides methods of a strategy's `extended`.

    Attributes:
      graph: that which the replicas run.
      same: tensors that are the same object on all replicas, by id: results of merge functions.
    """

    _update = _Default._update
    _batch_reduce_to = _Default._batch_reduce_to
    colocate_vars_with = _Default.colocate_vars_with
    read_var = _Default.read_var

    def __del__(self) -> None:
        """Leaves to the user's strategy what that stops at its end."""

    def _use_merge_call(self) -> bool:
        return True

    def _create_variable(self: Any, next_creator: Any, **kwargs: Any) -> tf.Variable:
        variable = next_creator(**kwargs)
        if self._num_replicas_in_sync > 1 and type(variable) is _Variable:
            variable.__class__ = MirroredVariable
        return variable

    def per_replica(self: Any, structure: Any) -> Any:
        def of(value: Any) -> Any:
            differs = tf.is_tensor(value) and not isinstance(value, tf.Variable)
            return PerReplica(value, self) if differs and id(value) not in self.same else value

        alone = self._num_replicas_in_sync == 1
        return structure if alone else tf.nest.map_structure(of, structure)

    def _call_for_each_replica(self: Any, fn: Any, args: Any, kwargs: Any) -> Any:
        with _ReplicaContext(self._container_strategy(), 0):
            return self.per_replica(fn(*_own(args), **_own(kwargs)))

    def _update_non_slot(self, of: Any, fn: Any, args: Any, kwargs: Any, group: bool) -> Any:
        return _Default._update_non_slot(self, of, fn, _own(args), _own(kwargs), group)

    def _broadcast_to(self: Any, tensor: Any, destinations: Any) -> Any:
        alone = self._num_replicas_in_sync == 1
        return tensor if alone else distribute_values.Mirrored([tensor] * len(self.worker_devices))

    def _reduce_to(self: Any, reduce_op: Any, value: Any, destinations: Any, options: Any) -> Any:
        replicas, mean = self._num_replicas_in_sync, reduce_op == tf.distribute.ReduceOp.MEAN
        if replicas == 1 or (mean and isinstance(value, distribute_values.Mirrored)):
            return value
        if not isinstance(value, distribute_values.DistributedValues):
            join = cross_device_ops.reduce_non_distributed_value
            return join(reduce_op, value, destinations, replicas)
        return self._broadcast_to(_joined(reduce_op, _own(value), replicas), destinations)

    def _gather_to_implementation(self: Any, value: Any, to: Any, axis: int, options: Any) -> Any:
        if not isinstance(value, distribute_values.DistributedValues):
            return value
        return self._broadcast_to(_gathered(_own(value), axis, self._num_replicas_in_sync), to)


class _ReplicaContext(distribute_lib.ReplicaContext):
    @property
    def replica_id_in_sync_group(self) -> tf.Tensor:
        if self.num_replicas_in_sync == 1:
            return super().replica_id_in_sync_group
        return gen_xla_ops.xla_replica_id("replica_id_in_sync_group")

    def _merge_call(self, merge_fn: Any, args: Any, kwargs: Any) -> Any:
        extended = self.strategy.extended
        if self.num_replicas_in_sync > 1 and extended.graph is not tf.compat.v1.get_default_graph():
            raise RuntimeError(
                "`merge_call` called while defining a new graph or a tf.function. Call all_reduce, "
                "all_gather, merge_call and apply_gradients, and assign to variables with an "
                "aggregation, outside of tf.cond, tf.while_loop and tf.function."
            )
        args, kwargs = extended.per_replica(args), extended.per_replica(kwargs)
        merged = super()._merge_call(merge_fn, args, kwargs)
        flat = tf.nest.flatten(merged)
        extended.same.update((id(value), value) for value in flat if tf.is_tensor(value))
        return _own(merged)


class MirroredVariable(_Variable):
    """A variable whose writes take what its aggregation makes of the replicas' values."""

    def _read_variable_op(self, no_copy: bool = False) -> Any:
        """Reads it; a merge function reads the sum or mean of one that is ON_READ."""
        own = super()._read_variable_op(no_copy)
        local = tf.compat.v1.get_collection(tf.compat.v1.GraphKeys.LOCAL_VARIABLES)
        if not tf.distribute.in_cross_replica_context() or not _is_on_read(self):
            return own
        return own if any(v is self for v in local) else self._joined(own)  # the host joins those

    def _joined(self, value: Any) -> Any:
        strategy = tf.distribute.get_strategy()
        [each] = strategy.extended.per_replica([value])
        return _own(values_util.apply_aggregation(strategy, each, self.aggregation, self))


def _is_on_read(variable: tf.Variable) -> bool:
    return variable.synchronization == tf.VariableSynchronization.ON_READ


def _aggregating(write: Any) -> Any:
    @functools.wraps(write)
    def aggregated(self: Any, value: Any, *args: Any, **kwargs: Any) -> Any:
        context = tf.distribute.get_replica_context() if tf.distribute.has_strategy() else None
        if not context or _is_on_read(self) or self.aggregation == tf.VariableAggregation.NONE:
            return write(self, value, *args, **kwargs)
        return context.merge_call(lambda _: write(self, self._joined(value), *args, **kwargs))

    return aggregated


for _name in dir(_Variable):
    if _name.startswith(("assign", "scatter")) and hasattr(
        distribute_values.MirroredVariable, _name
    ):
        setattr(MirroredVariable, _name, _aggregating(getattr(_Variable, _name)))


def _own(structure: Any) -> Any:
    """`structure` with the calling replica's values."""

    def of(value: Any) -> Any:
        if isinstance(value, PerReplica):
            return value.own
        return value.values[0] if isinstance(value, distribute_values.Mirrored) else value

    return tf.nest.map_structure(of, structure)


def _joined(reduce_op: tf.distribute.ReduceOp, value: Any, replicas: int) -> Any:
    total = _sum(value, replicas)
    divided = cross_device_ops.cross_device_utils.divide_by_n_tensors_or_indexed_slices
    return divided(total, replicas) if reduce_op == tf.distribute.ReduceOp.MEAN else total


def _sum(value: Any, replicas: int) -> Any:
    """The sum over replicas, as IndexedSlices if `value` is."""
    if isinstance(value, tf.IndexedSlices):
        parts = (_gathered(part, 0, replicas) for part in (value.values, value.indices))
        return tf.IndexedSlices(*parts, value.dense_shape)
    if value.dtype.is_floating:
        return tpu_ops.cross_replica_sum(value, [list(range(replicas))])
    return tf.reduce_sum(_gathered(value[tf.newaxis], 0, replicas), 0)


def _gathered(value: tf.Tensor, axis: int, replicas: int) -> tf.Tensor:
    """The values of all replicas, concatenated."""
    shape = value.shape.as_list()
    copies = tf.tile(value[tf.newaxis], [replicas] + len(shape) * [1])
    group = [list(range(replicas))]
    every = tpu_ops.all_to_all(copies, axis % len(shape) + 1, 0, replicas, group)[0]
    shape[axis] = shape[axis] and shape[axis] * replicas
    return tf.ensure_shape(every, shape)
