"""The input of a mode: iterators over the batches that an input mode deals to replicas."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.compat.v1 import logging

from tpu_estimator_compat.engine.capture.capture import Element, placeholders
from tpu_estimator_compat.engine.cluster import workers
from tpu_estimator_compat.engine.functions import eager
from tpu_estimator_compat.engine.inputs.async_release import end_iterators
from tpu_estimator_compat.engine.inputs.calling import CalledInput
from tpu_estimator_compat.engine.inputs.input_mode import InputMode, Plain
from tpu_estimator_compat.engine.topology.replicas import Topology
from tpu_estimator_compat.spec import ModeKeys
from tpu_estimator_compat.tf_internals import (
    dataset_ops,
    device_util,
    distribute_utils,
    gen_dataset_ops,
    replicate,
)

Structure = Any


@dataclasses.dataclass(frozen=True)
class DeployedInput:
    """The input of a mode, from which sessions make iterators.

    Attributes:
      called: the results of input_fn, one per call.
      deal: makes one dataset per host that this process feeds, with one element per replica and
        step, in the replicas' order. Call it once variables have values.
      element_spec: the input of one replica: structure of `tf.TypeSpec`s.
      hosts: number of hosts that this process feeds.
      is_whole: whether the sole replica gets the elements of input_fn unchanged.
      in_step: whether a step computes its element itself, as a part of its graph.
      computed: whether variables, or the step itself, compute the elements.
      reads_ahead: whether elements may be read before they are needed. False for computed elements,
        and for predictions on elements from Python, which may wait for earlier predictions.
      runs_python: whether Python code, which other machines do not have, makes elements.
      resumable: whether the iterator's position can be saved; if so, no elements may wait on
        devices.
      replicas_per_element: number of replicas whose elements are stacked into one; None for no
        stacking.
    """

    called: Sequence[CalledInput]
    deal: Callable[[], Sequence[tf.data.Dataset]]
    strategy: tf.distribute.Strategy
    element_spec: Structure
    hosts: int = 1
    is_whole: bool = False
    in_step: bool = False
    computed: bool = False
    reads_ahead: bool = True
    sleep_secs: float = 0
    runs_python: bool = False
    resumable: bool = False
    same_for_all: bool = False
    replicas_per_element: int | None = None

    def element(self) -> Element:
        called = self.called[0]
        if called.is_empty and not self.in_step:
            return dataclasses.replace(placeholders(self.element_spec), structure=called.element())
        if not self.in_step and not (self.is_whole and called.is_dataset):
            return placeholders(self.element_spec)
        structure = called.element()
        flat = tf.nest.flatten(structure, expand_composites=True)
        if self.in_step:
            return Element(structure, (), [], made_of=self.called[0].own(flat))
        return Element(structure, self.element_spec, flat)

    def __iter__(self) -> Iterator:
        if self.sleep_secs:
            logging.info("Infeed thread sleeping for %d seconds.", self.sleep_secs)
            time.sleep(self.sleep_secs)
        with eager.eager_mode(), tf.device("/cpu:0"):
            datasets = list(self.deal())
            if (replicas := self.replicas_per_element or 1) > 1:
                datasets = [dataset.batch(replicas, drop_remainder=True) for dataset in datasets]
            if self.reads_ahead:
                datasets = [dataset.prefetch(tf.data.AUTOTUNE) for dataset in datasets]
            group = workers.of(self.strategy)
            if self.is_whole:
                return self.called[0].iterator(datasets[0])
            if self.strategy.num_replicas_in_sync == (group.count if group else 1):
                return iter(datasets[0])
            if group:
                raise NotImplementedError(
                    f"{self.strategy.num_replicas_in_sync} replicas on {group.count} machines: "
                    "more than one replica on a machine is not supported. Start one process for "
                    "each GPU, with its own task in TF_CONFIG and CUDA_VISIBLE_DEVICES."
                )
            if self._take_turns(datasets):
                return iter(datasets[0])
            iterator = iter(
                self.strategy.distribute_datasets_from_function(
                    lambda context: self._on_its_host(datasets[context.input_pipeline_id])
                )
            )
            # As for the original's Estimator, the data has ended where one replica has none. Some
            # strategies would give it an empty batch, of which a mean is NaN.
            iterator._enable_get_next_as_optional = False
            return iterator

    def close(self, *, hurried: bool = False) -> None:
        """Frees the datasets of the graph's iterators; call it once no iterator is in use."""
        for called in self.called[:1]:
            end_iterators(called.store.iterators(), hurried=hurried)

    def _take_turns(self, datasets: Sequence[tf.data.Dataset]) -> bool:
        """Whether one iterator on the host feeds several replicas, in turn.

        A strategy makes an iterator per replica, which reads ahead into the device's memory. On
        CPUs that gains nothing, and each iterator may take a minute to end: see `AsyncRelease`.
        """
        devices = self.strategy.extended.worker_devices  # of this machine
        if len(devices) == 1 or self.resumable:
            return len(devices) > 1
        on_cpus = all(tf.DeviceSpec.from_string(d).device_type == "CPU" for d in devices)
        return len(datasets) == 1 and on_cpus

    def next(self, iterator: Iterator) -> Structure:
        """The next step's elements, as `strategy.run` takes them; called where a step is built."""
        if self.in_step:
            return ()
        if self.strategy.num_replicas_in_sync == 1:
            return next(iterator)
        first, in_turn = next(iterator), isinstance(iterator, tf.data.Iterator)
        others = self.strategy.extended.worker_devices[1:] if in_turn else ()  # of this machine
        elements = [first, *[next(iterator) for _ in others]]
        return _together(distribute_utils.regroup(elements) if others else first)

    def _on_its_host(self, dataset: tf.data.Dataset) -> tf.data.Dataset:
        """`dataset`, copied to the host of the device scope, which may be another machine."""
        host = device_util.current()
        if not host or device_util.canonicalize(host) == dataset._variant_tensor.device:
            return dataset
        if self.runs_python:
            raise ValueError(
                "input_fn's dataset runs Python (from_generator, py_function, numpy_function), "
                f"which the TPU's host {host} does not have. Read with tf.data sources such as "
                "TFRecordDataset, from files that the host can reach, or run the script there."
            )
        [replicated] = replicate(dataset, [host]).values()
        return replicated

    def made_resumable(self) -> DeployedInput:
        if self.hosts > 1:
            raise NotImplementedError(
                f"RunConfig(save_input_state=True) with the {self.hosts} hosts of a TPU "
                "pod: each reads its own input, and a position is saved for one only. Set "
                "save_input_state=False there."
            )
        if not self.called[0].is_dataset:
            raise ValueError(
                "RunConfig(save_input_state=True), but input_fn returned tensors, not a Dataset: "
                "the position of their source cannot be saved. Return the tf.data.Dataset itself, "
                "or set save_input_state=False."
            )
        return dataclasses.replace(self, resumable=True)


def _together(elements: Structure) -> Structure:
    """The replicas' elements, each of which waits for all: at the end of the data, for none."""

    def last(tensor: tf.Tensor) -> tf.Tensor:
        with tf.device(tensor.device):
            return tf.identity(tensor)

    with tf.control_dependencies(tf.nest.flatten(elements, expand_composites=True)):
        return tf.nest.map_structure(last, elements, expand_composites=True)


def flat_parts(iterator: Any) -> list[np.ndarray] | None:
    """Flat tensors of an iterator's next element, or None at the end; called eagerly.

    `next(iterator)` takes 0.2 ms longer, to pack them into a structure.
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
    """`input_context` of the input_fn that `host` calls; None on one device, as in the original."""
    if topology.num_replicas == 1:
        return None
    return tf.distribute.InputContext(topology.num_hosts, host, topology.num_replicas)


def deploy(
    called: Sequence[CalledInput], input_mode: InputMode, *, in_step: bool = False
) -> DeployedInput:
    """The input of the replicas, from the results of all input_fn calls of this process.

    `called` has the order of `input_mode.invocations`. With `in_step`, the step of a sole replica
    may compute input_fn's tensors itself.
    """
    whole = isinstance(input_mode, Plain) and input_mode.topology.num_replicas == 1
    in_step = in_step and whole and not called[0].is_dataset
    empty = called[0].is_empty
    python = any(each.runs_python for each in called)
    computed = in_step or any(each.has_state for each in called)
    return DeployedInput(
        called,
        _dummy_datasets(len(input_mode.topology.hosts))
        if in_step or empty
        else lambda: input_mode.deal([each.dataset() for each in called]),
        input_mode.topology.strategy,
        tf.TensorSpec([], tf.int32) if empty else _dealt_spec(called, input_mode),
        hosts=len(input_mode.topology.hosts),
        is_whole=whole,
        in_step=in_step,
        computed=computed,
        reads_ahead=not (computed or (python and input_mode.mode == ModeKeys.PREDICT)),
        sleep_secs=input_mode.sleep_secs,
        runs_python=python,
        same_for_all=input_mode.same_for_all,
        replicas_per_element=input_mode.topology.replicas_per_element,
    )


def _dummy_datasets(hosts: int) -> Callable[[], list[tf.data.Dataset]]:
    """A function that makes datasets for steps that need no element, or compute theirs."""
    return lambda: [tf.data.Dataset.from_tensors(0).repeat()] * hosts


def _dealt_spec(called: Sequence[CalledInput], input_mode: InputMode) -> Structure:
    with tf.Graph().as_default(), tf.device("/cpu:0"):
        datasets = [
            dataset_ops._VariantDataset(tf.compat.v1.placeholder(tf.variant), each.element_spec)
            for each in called
        ]
        return input_mode.deal(datasets)[0].element_spec
