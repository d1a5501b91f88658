"""Deals an input_fn's batches to replicas: the modes of InputPipelineConfig as dataset steps."""

from __future__ import annotations

import dataclasses
import functools
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.compat.v1 import logging
from tensorflow.python.data.experimental.ops.distribute import replicate
from tensorflow.python.distribute import device_util, distribute_utils

from tpu_estimator_compat import topology as topology_lib
from tpu_estimator_compat.config import TPUConfig
from tpu_estimator_compat.inputs import padding
from tpu_estimator_compat.inputs.calling import Featureless, reruns_graph, runs_python
from tpu_estimator_compat.runtime import eager, workers
from tpu_estimator_compat.spec import ModeKeys
from tpu_estimator_compat.topology import Topology

Structure = Any


@dataclasses.dataclass(frozen=True)
class DeployedInput:
    """Elements for the replicas.

    Attributes:
      datasets: one per host that this process feeds; one element per replica of that host and step,
        dealt to the replicas in turn.
      strategy: the replicas.
      reads_ahead: whether elements may be read before they are needed. Not where Python makes the
        elements of a prediction: it may wait for earlier predictions before it gives the next.
      sleep_secs: how long to wait before the first element.
      runs_python: whether Python makes them, which other machines do not have.
      reruns_graph: whether tensors make the elements, whose state tf.data does not know.
      resumable: whether one iterator on the host feeds all replicas, so that its position can be
        saved. Otherwise elements wait on the devices, in buffers that cannot.
      same_for_all: whether all replicas are fed the same.
    """

    datasets: Sequence[tf.data.Dataset]
    strategy: tf.distribute.Strategy
    reads_ahead: bool = True
    sleep_secs: float = 0
    runs_python: bool = False
    reruns_graph: bool = False
    resumable: bool = False
    same_for_all: bool = False

    @property
    def element_spec(self) -> Structure:
        """What one replica is fed: structure of `tf.TypeSpec`s."""
        return self.datasets[0].element_spec

    def __iter__(self) -> Iterator:
        if self.sleep_secs:
            logging.info("Infeed thread sleeping for %d seconds.", self.sleep_secs)
            time.sleep(self.sleep_secs)
        with eager.eager_mode(), tf.device("/cpu:0"):
            datasets = list(self.datasets)
            if self.reads_ahead:
                datasets = [dataset.prefetch(tf.data.AUTOTUNE) for dataset in datasets]
            group = workers.of(self.strategy)
            if self.strategy.num_replicas_in_sync == (group.count if group else 1):
                return iter(datasets[0])
            if group:
                raise NotImplementedError(
                    f"{self.strategy.num_replicas_in_sync} replicas on {group.count} machines: "
                    "more than one replica on a machine is not supported. Start one process for "
                    "each GPU, with its own task in TF_CONFIG and CUDA_VISIBLE_DEVICES."
                )
            if self.resumable:
                return iter(datasets[0])
            return iter(
                self.strategy.distribute_datasets_from_function(
                    lambda context: self._on_its_host(datasets[context.input_pipeline_id])
                )
            )

    def next(self, iterator: Iterator) -> Structure:
        """The next step's elements, as `strategy.run` takes them; call it where a step is built."""
        if not self.resumable or self.strategy.num_replicas_in_sync == 1:
            return next(iterator)
        replicas = len(self.strategy.extended.worker_devices)
        return distribute_utils.regroup(tuple(next(iterator) for _ in range(replicas)))

    def _on_its_host(self, dataset: tf.data.Dataset) -> tf.data.Dataset:
        """`dataset` on the host in whose scope the strategy asks for it, perhaps another machine.

        Raises:
          ValueError: Python makes its elements, and Python is here.
        """
        host = device_util.current()
        if not host or device_util.canonicalize(host) == dataset._variant_tensor.device:
            return dataset
        if self.runs_python:
            raise ValueError(
                "input_fn's dataset runs Python (from_generator, py_function, numpy_function), "
                f"which the TPU's host {host} does not have. Read with tf.data's own sources, such "
                "as TFRecordDataset on files that the host can reach, or run the script there."
            )
        [replicated] = replicate(dataset, [host]).values()
        return replicated

    def made_resumable(self) -> DeployedInput:
        """The same elements from an iterator whose position can be saved.

        Raises:
          ValueError: the elements have a source with a position of its own.
          NotImplementedError: several hosts read.
        """
        if len(self.datasets) > 1:
            raise NotImplementedError(
                f"RunConfig(save_input_state=True) with the {len(self.datasets)} hosts of a TPU "
                "pod: each reads its own input, and a position is saved for one only. Set "
                "save_input_state=False there."
            )
        if self.reruns_graph:
            raise ValueError(
                "RunConfig(save_input_state=True), but input_fn returned tensors, not a Dataset: "
                "the position of their source cannot be saved. Return the tf.data.Dataset itself, "
                "or set save_input_state=False."
            )
        return dataclasses.replace(self, resumable=True)


def context(topology: Topology, host: int) -> tf.distribute.InputContext | None:
    """`input_context` of the input_fn that `host` calls; None on one device, as before."""
    if topology.num_replicas == 1:
        return None
    return tf.distribute.InputContext(topology.num_hosts, host, topology.num_replicas)


def feed(
    datasets: Sequence[tf.data.Dataset],
    mode: str,
    topology: Topology,
    tpu_config: TPUConfig | None,
    *,
    batch_axis: Sequence[int] | None = None,
    predict_batch_size: int | None = None,
) -> DeployedInput:
    """Elements for the replicas, out of the datasets of all input_fn calls.

    Args:
      datasets: one per input_fn call of this process, in the order of `topology.invocations`.
      mode: a `ModeKeys` value.
      topology: the replicas.
      tpu_config: how input is deployed; None off TPU.
      batch_axis: per flat tensor of the element, the dimension to split; None for 0 everywhere.
      predict_batch_size: in PREDICT on TPU, the size to which every input_fn batch is padded.

    Returns:
      The feed. In PREDICT on TPU its elements are `padding.Padded`.
    """
    python = any(map(runs_python, datasets))
    source = {
        "reads_ahead": mode != ModeKeys.PREDICT or not python,
        "runs_python": python,
        "reruns_graph": any(map(reruns_graph, datasets)),
    }
    with eager.eager_mode(), tf.device("/cpu:0"):
        if not topology.tpu_semantics or tpu_config is None:
            return DeployedInput(datasets, topology.strategy, **source)
        sleep_secs = tpu_config.initial_infeed_sleep_secs or 0
        made = [
            _of_host(host, datasets, mode, topology, tpu_config, batch_axis, predict_batch_size)
            for host in topology.hosts
        ]
        sliced = topology_lib.is_sliced(mode, tpu_config)
        same = topology_lib.is_broadcast(mode, tpu_config) and not sliced
        return DeployedInput(
            made, topology.strategy, sleep_secs=sleep_secs, same_for_all=same, **source
        )


def warn_of_other_size(
    dataset: tf.data.Dataset, batch_size: int | None, batch_axis: Sequence[int] | None
) -> None:
    """Warns where no tensor of a dataset has `params['batch_size']` along its batch dimension.

    Args:
      dataset: what an input_fn gave.
      batch_size: what it was told; None if nothing.
      batch_axis: per flat tensor, the batch dimension; None for 0 everywhere.
    """
    flat = tf.nest.flatten(dataset.element_spec)
    axes = [0] * len(flat) if batch_axis is None else list(tf.nest.flatten(batch_axis))
    sizes = {
        spec.shape.as_list()[axis]  # not shape[axis], which TF1 behavior makes a Dimension
        for spec, axis in zip(flat, axes, strict=False)
        if getattr(spec, "shape", None) is not None and spec.shape.rank
    }
    if batch_size is None or not sizes or sizes & {batch_size, None}:
        return
    logging.warning(
        "input_fn was told params['batch_size'] = %d, but gives batches of %s. Batch by "
        "params['batch_size']: train_batch_size and the others count examples of all replicas.",
        batch_size,
        sorted(sizes),
    )


def _of_host(
    host: int,
    datasets: Sequence[tf.data.Dataset],
    mode: str,
    topology: Topology,
    tpu_config: TPUConfig,
    batch_axis: Sequence[int] | None,
    predict_batch_size: int | None,
) -> tf.data.Dataset:
    """What the replicas of one host are fed in turn."""
    calls = topology_lib.invocations(mode, topology, tpu_config)
    mine = [d for d, call in zip(datasets, calls, strict=True) if call.host == host]
    dataset = _one_dataset(mine or datasets[:1])  # the dataset of a broadcast is everyone's
    if isinstance(dataset.element_spec, Featureless):
        return dataset
    if mode == ModeKeys.PREDICT and predict_batch_size is not None:
        dataset = padding.pad(dataset, predict_batch_size)
        batch_axis = None
    if tpu_config.experimental_allow_per_host_v2_parallel_get_next:
        options = tf.data.Options()
        options.deterministic = False
        dataset = dataset.with_options(options)
    dataset = _splitter(host, mode, topology, tpu_config, batch_axis)(dataset)
    if mode == ModeKeys.PREDICT and topology_lib.is_per_host_v2(tpu_config):
        dataset = padding.fill_last_step(dataset, topology.num_replicas)
    return dataset


def _one_dataset(datasets: Sequence[tf.data.Dataset]) -> tf.data.Dataset:
    if len(datasets) == 1:
        return datasets[0]
    turns = tf.data.Dataset.range(len(datasets)).repeat()
    return tf.data.Dataset.choose_from_datasets(list(datasets), turns, stop_on_empty_dataset=True)


def _splitter(
    host: int,
    mode: str,
    topology: Topology,
    tpu_config: TPUConfig,
    batch_axis: Sequence[int] | None,
) -> Callable[[tf.data.Dataset], tf.data.Dataset]:
    """What makes one element per replica of `host` out of the elements of its input_fn."""
    replicas = topology.replicas_per_host
    sliced = topology_lib.is_sliced(mode, tpu_config)
    per_replica = topology_lib.is_per_core(mode, tpu_config) or (
        topology_lib.is_per_host_v2(tpu_config) and not sliced
    )
    if per_replica:
        return lambda dataset: dataset
    if topology_lib.is_broadcast(mode, tpu_config) and not sliced:
        if replicas == 1:
            return lambda dataset: dataset
        return lambda dataset: dataset.flat_map(functools.partial(_copies, replicas))
    parts = topology.num_replicas if sliced else replicas  # slices go to all hosts
    first = host * replicas if sliced else 0
    if parts == 1:
        return lambda dataset: dataset

    @tf.autograph.experimental.do_not_convert
    def slices(*element: Any) -> tf.data.Dataset:
        return _slices(_single(element), parts, batch_axis).skip(first).take(replicas)

    return lambda dataset: dataset.flat_map(slices)


@tf.autograph.experimental.do_not_convert
def _copies(count: int, *element: Any) -> tf.data.Dataset:
    return tf.data.Dataset.from_tensors(_single(element)).repeat(count)


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
    size = tensor.shape.as_list()[axis]
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
