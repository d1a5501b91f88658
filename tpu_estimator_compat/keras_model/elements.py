"""Elements of Keras' data: one replica's share, and batches of any size."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tpu_estimator_compat.engine.capture.capture import plain_element


def as_iterator(iterator: Any) -> Any:
    """A tf.data iterator for the iterator that Keras passes, or for a generator of one batch."""
    if isinstance(iterator, (tf.data.Iterator, tf.distribute.DistributedIterator)):
        return iterator
    element = tf.nest.map_structure(tf.convert_to_tensor, plain_element(next(iterator)))
    return iter(tf.data.Dataset.from_tensors(element))


def replica_spec(iterator: Any, replicas: int) -> Any:
    """The spec of one replica's input, if `replicas` share each element of an iterator."""
    spec = tf.nest.map_structure(
        lambda s: s._value_specs[0] if hasattr(s, "_value_specs") else s, iterator.element_spec
    )
    return shares_of(plain_element(spec), replicas)


def shares_of(spec: Any, replicas: int) -> Any:
    def share(of_all: tf.TypeSpec) -> tf.TensorSpec:
        if not isinstance(of_all, tf.TensorSpec):
            raise NotImplementedError(
                f"{replicas} replicas on JAX's devices cannot share a batch with {of_all}. Give "
                "dense tensors to fit, evaluate and predict, train with the estimator, or set "
                "TPUConfig(num_shards=1)."
            )
        rows = of_all.shape[0] if of_all.shape.rank else None
        if rows is None:
            return of_all  # refused later, if static shapes are required
        if rows % replicas:
            raise ValueError(
                f"A batch of {rows} rows cannot be shared by {replicas} replicas. Batch by a "
                f"multiple of {replicas}, with drop_remainder=True."
            )
        return tf.TensorSpec([rows // replicas, *of_all.shape[1:]], of_all.dtype)

    return spec if replicas == 1 else tf.nest.map_structure(share, spec)


def spec_of(value: Any) -> tf.TypeSpec:
    if isinstance(value, tf.distribute.DistributedValues):
        value = value.values[0]
    return tf.type_spec_from_value(value)


def filled(tensor: tf.Tensor, share: int, strategy: tf.distribute.Strategy) -> Any:
    """Repeats the tensor's last row to fill `share` rows per replica; splits it among them."""
    rows = tf.minimum(tf.range(share * strategy.num_replicas_in_sync), tf.shape(tensor)[0] - 1)
    parts = tf.split(tf.gather(tensor, rows), strategy.num_replicas_in_sync)
    if (
        len(parts) == 1
    ):  # the default strategy cannot distribute values while v2 behavior is disabled
        return parts[0]
    return strategy.experimental_distribute_values_from_function(
        lambda context: parts[context.replica_id_in_sync_group]
    )


def any_batch(spec: Any) -> Any:
    """The spec of batches with any number of rows; sparse batches may also have any width."""

    def of_any(one: tf.TypeSpec) -> tf.TypeSpec:
        if isinstance(one, tf.SparseTensorSpec):
            return tf.SparseTensorSpec([None] * one.shape.rank, one.dtype)
        if isinstance(one, tf.RaggedTensorSpec):
            shape = [None, *one.shape[1:]]
            return tf.RaggedTensorSpec(shape, one.dtype, one.ragged_rank, one.row_splits_dtype)
        return tf.TensorSpec([None, *one.shape[1:]], one.dtype) if one.shape.rank else one

    return tf.nest.map_structure(of_any, spec)
