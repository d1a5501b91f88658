"""Deals an input_fn's batches to replicas: the modes of InputPipelineConfig as dataset steps."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import tensorflow as tf

from tpu_estimator_compat import topology as topology_lib
from tpu_estimator_compat.config import TPUConfig
from tpu_estimator_compat.inputs import padding
from tpu_estimator_compat.inputs.calling import runs_python
from tpu_estimator_compat.program import eager
from tpu_estimator_compat.spec import ModeKeys
from tpu_estimator_compat.topology import Topology

Structure = Any


@dataclasses.dataclass(frozen=True)
class Feed:
    """Elements for the replicas.

    Attributes:
      dataset: one element per replica and step, dealt to the replicas in turn.
      strategy: the replicas.
      reads_ahead: whether elements may be read before they are needed. Not where Python makes the
        elements of a prediction: it may wait for earlier predictions before it gives the next.
    """

    dataset: tf.data.Dataset
    strategy: tf.distribute.Strategy
    reads_ahead: bool = True

    @property
    def element_spec(self) -> Structure:
        """What one replica is fed: structure of `tf.TypeSpec`s."""
        return self.dataset.element_spec

    def __iter__(self) -> Iterator:
        with eager.eager_mode(), tf.device("/cpu:0"):
            dataset = self.dataset
            if self.reads_ahead:
                dataset = dataset.prefetch(tf.data.AUTOTUNE)
            if self.strategy.num_replicas_in_sync == 1:
                return iter(dataset)
            return iter(self.strategy.distribute_datasets_from_function(lambda _: dataset))


def feed(
    datasets: Sequence[tf.data.Dataset],
    mode: str,
    topology: Topology,
    tpu_config: TPUConfig | None,
    *,
    batch_axis: Sequence[int] | None = None,
    predict_batch_size: int | None = None,
) -> Feed:
    """Elements for the replicas, out of the datasets of all input_fn calls.

    Args:
      datasets: one per input_fn call on this host.
      mode: a `ModeKeys` value.
      topology: the replicas.
      tpu_config: how input is deployed; None off TPU.
      batch_axis: per flat tensor of the element, the dimension to split; None for 0 everywhere.
      predict_batch_size: in PREDICT on TPU, the size to which every input_fn batch is padded.

    Returns:
      The feed. In PREDICT on TPU its elements are `padding.Padded`.
    """
    reads_ahead = mode != ModeKeys.PREDICT or not any(map(runs_python, datasets))
    with eager.eager_mode(), tf.device("/cpu:0"):
        if not topology.tpu_semantics or tpu_config is None:
            return Feed(datasets[0], topology.strategy, reads_ahead)
        dataset = _one_dataset(datasets)
        if mode == ModeKeys.PREDICT and predict_batch_size is not None:
            dataset = padding.pad(dataset, predict_batch_size)
            batch_axis = None
        split = _splitter(mode, topology, tpu_config, batch_axis)
        dataset = split(dataset)
        if mode == ModeKeys.PREDICT and topology_lib.is_per_host_v2(tpu_config):
            dataset = padding.fill_last_step(dataset, topology.num_replicas)
        return Feed(dataset, topology.strategy, reads_ahead)


def _one_dataset(datasets: Sequence[tf.data.Dataset]) -> tf.data.Dataset:
    if len(datasets) == 1:
        return datasets[0]
    turns = tf.data.Dataset.range(len(datasets)).repeat()
    return tf.data.Dataset.choose_from_datasets(list(datasets), turns, stop_on_empty_dataset=True)


def _splitter(
    mode: str, topology: Topology, tpu_config: TPUConfig, batch_axis: Sequence[int] | None
) -> Callable[[tf.data.Dataset], tf.data.Dataset]:
    replicas = topology.replicas_per_host
    per_replica = topology_lib.is_per_core(mode, tpu_config) or (
        topology_lib.is_per_host_v2(tpu_config) and not topology_lib.is_sliced(mode, tpu_config)
    )
    if replicas == 1 or per_replica:
        return lambda dataset: dataset
    if topology_lib.is_broadcast(mode, tpu_config) and not topology_lib.is_sliced(mode, tpu_config):
        return lambda dataset: dataset.flat_map(
            lambda *element: tf.data.Dataset.from_tensors(_single(element)).repeat(replicas)
        )
    return lambda dataset: dataset.flat_map(
        lambda *element: _slices(_single(element), replicas, batch_axis)
    )


@tf.autograph.experimental.do_not_convert
def _single(element: tuple) -> Structure:
    """A dataset function gets a tuple element as its arguments: undo that for single elements."""
    return element[0] if len(element) == 1 else element


@tf.autograph.experimental.do_not_convert
def _slices(element: Structure, replicas: int, batch_axis: Sequence[int] | None) -> tf.data.Dataset:
    flat = tf.nest.flatten(element)
    axes = [0] * len(flat) if batch_axis is None else list(tf.nest.flatten(batch_axis))
    if len(axes) != len(flat):
        raise ValueError(
            f"batch_axis {batch_axis} has {len(axes)} entries, but input_fn gives {len(flat)} "
            "tensors: one axis per tensor of (features, labels) is needed."
        )
    parts = [_cut(t, replicas, axis) for t, axis in zip(flat, axes, strict=True)]
    return tf.data.Dataset.from_tensor_slices(tf.nest.pack_sequence_as(element, parts))


def _cut(tensor: tf.Tensor, replicas: int, axis: int) -> tf.Tensor:
    """`tensor` with a new dimension 0 of one slice per replica."""
    size = tensor.shape[axis]
    if size is not None and size % replicas:
        raise ValueError(
            f"input_fn gives a batch of {size} examples (dimension {axis} of {tensor}), which "
            f"cannot be split among {replicas} replicas. Use params['batch_size'], and "
            "drop_remainder=True."
        )
    if axis:
        return tf.stack(tf.split(tensor, replicas, axis))
    rest = tensor.shape[1:]
    share = None if size is None else size // replicas
    leading = [replicas, -1 if share is None else share]
    cut = tf.reshape(tensor, tf.concat([leading, tf.shape(tensor)[1:]], axis=0))
    cut.set_shape(tf.TensorShape([replicas, share]).concatenate(rest))
    return cut
