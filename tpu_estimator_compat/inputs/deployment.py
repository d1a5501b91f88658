"""What the replicas are fed: iterators over the batches that an input mode deals to them."""

from __future__ import annotations

import dataclasses
import functools
import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.compat.v1 import logging
from tensorflow.python.data.experimental.ops.distribute import replicate
from tensorflow.python.distribute import device_util, distribute_utils
from tensorflow.python.distribute.input_lib import _enable_get_next_as_optional
from tensorflow.python.ops import gen_dataset_ops

from tpu_estimator_compat.inputs.calling import (
    fed_input_of,
    reruns_graph,
    runs_python,
    session_of,
    tensor_names,
)
from tpu_estimator_compat.inputs.disposal import end_iterators
from tpu_estimator_compat.inputs.fed import FedInput
from tpu_estimator_compat.inputs.modes import InputMode
from tpu_estimator_compat.program.session import GraphSession
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
        elements of a prediction: it may wait for earlier predictions before it gives the next. Nor
        where hooks feed them.
      sleep_secs: how long to wait before the first element.
      runs_python: whether Python makes them, which other machines do not have.
      reruns_graph: whether tensors make the elements, whose state tf.data does not know.
      resumable: whether the iterator's position can be saved: not where elements wait on devices.
      same_for_all: whether all replicas are fed the same.
      replicas_per_element: how many replicas' elements are stacked to one of the iterator; None
        where they come one by one, or as the strategy distributes them.
      sessions: of the graphs in which input_fn ran: hooks initialise its iterators there.
      names: of an element's tensors in a graph that input_fn and model_fn share; none where they
        are not known.
      fed: of the elements, those that hooks feed.
    """

    datasets: Sequence[tf.data.Dataset]
    strategy: tf.distribute.Strategy
    reads_ahead: bool = True
    sleep_secs: float = 0
    runs_python: bool = False
    reruns_graph: bool = False
    resumable: bool = False
    same_for_all: bool = False
    replicas_per_element: int | None = None
    sessions: Sequence[GraphSession] = ()
    names: Sequence[str] = ()
    fed: Sequence[FedInput] = ()

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
            if (replicas := self.replicas_per_element or 1) > 1:
                datasets = [dataset.batch(replicas, drop_remainder=True) for dataset in datasets]
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
            if self._takes_turns:
                return iter(datasets[0])
            return iter(
                self.strategy.distribute_datasets_from_function(
                    lambda context: self._on_its_host(datasets[context.input_pipeline_id])
                )
            )

    def close(self) -> None:
        """Frees what iterators of input_fn's graphs read, once nothing iterates over this."""
        for session in self.sessions:
            end_iterators(session.store.iterators())

    @functools.cached_property
    def _takes_turns(self) -> bool:
        """Whether one iterator on the host feeds several replicas, in turn.

        An iterator for each, as a strategy has them, reads ahead onto devices with memory of their
        own. On CPUs it gains nothing, and each of them may take a minute to end: see `Disposal`. It
        is left to the strategy where that gives empty batches when data ends in mid-step.
        """
        if self.strategy.num_replicas_in_sync == 1:
            return False
        devices = self.strategy.extended.worker_devices  # of this machine
        if len(devices) == 1 or self.resumable:
            return len(devices) > 1
        on_cpus = all(tf.DeviceSpec.from_string(d).device_type == "CPU" for d in devices)
        if len(self.datasets) > 1 or not on_cpus:
            return False
        [dataset] = self.datasets
        with eager.eager_mode():
            cardinality = dataset.cardinality()
        return not _enable_get_next_as_optional(self.strategy, dataset, cardinality)

    def next(self, iterator: Iterator) -> Structure:
        """The next step's elements, as `strategy.run` takes them; call it where a step is built."""
        if not self._takes_turns:
            return next(iterator)
        replicas = len(self.strategy.extended.worker_devices)
        return distribute_utils.regroup([next(iterator) for _ in range(replicas)])

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


def flat_parts(iterator: Any) -> list[np.ndarray] | None:
    """The tensors of an iterator's next element; None where there is none. Call it eagerly.

    `next(iterator)` takes 0.2 ms to make a structure of them.
    """
    try:
        parts = gen_dataset_ops.iterator_get_next(
            iterator._iterator_resource,
            output_types=iterator._flat_output_types,
            output_shapes=iterator._flat_output_shapes,
        )
    except tf.errors.OutOfRangeError:
        return None
    return [part.numpy() for part in parts]


def context(topology: Topology, host: int) -> tf.distribute.InputContext | None:
    """`input_context` of the input_fn that `host` calls; None on one device, as before."""
    if topology.num_replicas == 1:
        return None
    return tf.distribute.InputContext(topology.num_hosts, host, topology.num_replicas)


def feed(datasets: Sequence[tf.data.Dataset], input_mode: InputMode) -> DeployedInput:
    """Elements for the replicas, out of the datasets of all input_fn calls.

    Args:
      datasets: one per input_fn call of this process, in the order of `input_mode.invocations`.
      input_mode: says who is fed what.

    Returns:
      The feed. In PREDICT on TPU its elements are `padding.Padded`.
    """
    python = any(map(runs_python, datasets))
    fed = [source for source in map(fed_input_of, datasets) if source is not None]
    with eager.eager_mode(), tf.device("/cpu:0"):
        return DeployedInput(
            input_mode.deal(datasets),
            input_mode.topology.strategy,
            reads_ahead=not fed and (input_mode.mode != ModeKeys.PREDICT or not python),
            sleep_secs=input_mode.sleep_secs,
            runs_python=python,
            reruns_graph=any(map(reruns_graph, datasets)),
            same_for_all=input_mode.same_for_all,
            replicas_per_element=input_mode.topology.replicas_per_element,
            sessions=[s for s in map(session_of, datasets) if s is not None],
            names=tensor_names(datasets[0]),
            fed=fed,
        )
