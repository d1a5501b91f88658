"""What an input mode is: who calls input_fn, for which batch size, and which replica gets what."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Sequence
from typing import ClassVar, TypeAlias

import tensorflow as tf
from tensorflow.compat.v1 import logging

from tpu_estimator_compat.config import TPUConfig
from tpu_estimator_compat.engine.inputs import padding, splitting
from tpu_estimator_compat.engine.inputs.calling import CalledInput, check_is_dataset, warn_of_queues
from tpu_estimator_compat.engine.topology.replicas import Topology
from tpu_estimator_compat.spec import ModeKeys

Dataset: TypeAlias = tf.data.Dataset

_CALLS = {ModeKeys.TRAIN: "train", ModeKeys.EVAL: "evaluate", ModeKeys.PREDICT: "predict"}


@dataclasses.dataclass(frozen=True)
class Invocation:
    """One call of input_fn: its host, and its 0-based index among the calls of all hosts."""

    host: int
    index: int


@dataclasses.dataclass(frozen=True)
class InputMode(abc.ABC):
    """An input mode: divides calls of input_fn, batch sizes and elements among replicas.

    Attributes:
      batch_size: the global batch size; None if not given.
      batch_axis: the dimension to split, per flat tensor of an element; None for 0 everywhere.
      same_for_all: whether all replicas get the same elements.
    """

    mode: str
    topology: Topology
    batch_size: int | None
    batch_axis: Sequence[int] | None
    same_for_all: ClassVar[bool] = False
    sleep_secs: ClassVar[float] = 0

    @property
    def input_batch_size(self) -> int | None:
        """The batch size in input_fn's `params`; model_fn's is `model_batch_size`."""
        return self.batch_size

    @property
    def model_batch_size(self) -> int | None:
        return self.batch_size

    @abc.abstractmethod
    def check(self) -> None:
        """Raises ValueError where batch size or mode do not fit the replicas."""

    @abc.abstractmethod
    def invocations(self) -> list[Invocation]:
        """The calls of input_fn that this process makes, host by host."""

    @abc.abstractmethod
    def check_called(self, called: CalledInput) -> None:
        """Refuses a result of input_fn that does not fit this mode."""

    @abc.abstractmethod
    def deal(self, datasets: Sequence[Dataset]) -> Sequence[Dataset]:
        """One dataset per host of this process: the elements of the host's replicas, in turn.

        `datasets` has one per call of input_fn, in the order of `invocations`.
        """


@dataclasses.dataclass(frozen=True)
class Plain(InputMode):
    """Input without `use_tpu=True`: whole batches, one input_fn call per host.

    Replicas take the batches of their host in turn; SLICED is an error.
    """

    sliced: bool = False

    def check(self) -> None:
        if self.sliced:
            raise ValueError(
                "Invalid TPUConfig `eval_training_input_configuration` value. SLICED mode only "
                "works on use_tpu = True."
            )

    def invocations(self) -> list[Invocation]:
        return [Invocation(host, host) for host in self.topology.hosts]

    def check_called(self, called: CalledInput) -> None:
        del called

    def deal(self, datasets: Sequence[Dataset]) -> Sequence[Dataset]:
        return datasets


@dataclasses.dataclass(frozen=True)
class TPUInputMode(InputMode):
    """An input mode with `use_tpu=True`: by default one input_fn call per host.

    Replicas share the batch as TPUConfig's documentation says. With `replicas_span_hosts`, a
    replica may have more cores than a host has.
    """

    tpu_config: TPUConfig
    replicas_span_hosts: ClassVar[bool] = False

    @property
    def sleep_secs(self) -> float:  # type: ignore[override]
        return self.tpu_config.initial_infeed_sleep_secs or 0

    @property
    def calls(self) -> int:
        return self.topology.num_hosts

    @property
    def input_batch_size(self) -> int | None:
        """One replica's share of the global batch size."""
        return self.batch_size and self.batch_size // self.topology.num_replicas

    @property
    def model_batch_size(self) -> int | None:
        """One replica's share, unless all replicas get the same batch."""
        parts = 1 if self.same_for_all else self.topology.num_replicas
        return self.batch_size and self.batch_size // parts

    def invocations(self) -> list[Invocation]:
        topology = self.topology
        if topology.this_host is not None:
            return [Invocation(topology.this_host, topology.this_host)]
        # Where a replica spans hosts, only the host of its first core calls input_fn.
        callers = topology.hosts[: min(topology.num_hosts, topology.num_replicas)]
        return [Invocation(host, index) for index, host in enumerate(callers)]

    def check(self) -> None:
        self._check_size()
        self._check_num_shards()
        self._check_cores_of_host()
        if self.mode != ModeKeys.TRAIN and self.topology.num_hosts != 1:
            self._check_several_hosts()

    def _check_size(self) -> None:
        replicas, size = self.topology.num_replicas, self.batch_size
        name = {"infer": "predict"}.get(self.mode, self.mode)
        if size is None:
            raise ValueError(
                f"{name}_batch_size in TPUEstimator constructor cannot be `None` if "
                f".{_CALLS[self.mode]} is running on TPU."
            )
        if size % replicas and not self.same_for_all:
            raise ValueError(
                f"{name} batch size {size} must be divisible by number of replicas {replicas}"
            )

    def _check_num_shards(self) -> None:
        replicas, shards = self.topology.num_replicas, self.tpu_config.num_shards
        if shards is None or shards == replicas:
            return
        if self.topology.stands_in and shards > replicas:
            logging.warning(
                "TPUConfig.num_shards is %d, but there is no TPU, and this machine has %d "
                "replica(s): %s goes on with %d. For as many as on the TPU, split the CPU: "
                "python -m tpu_estimator_compat run --logical-cpus %d SCRIPT.",
                shards,
                replicas,
                _CALLS[self.mode],
                replicas,
                shards,
            )
        else:
            raise ValueError(
                "TPUConfig.num_shards is not set correctly. According to TPU system metadata for "
                f"Tensorflow master (local): num_replicas should be ({replicas}), got ({shards}). "
                "For non-model-parallelism, num_replicas should be the total num of TPU cores in "
                "the system. For model-parallelism, the total number of TPU cores should be "
                "num_cores_per_replica * num_replicas. Please set it accordingly or leave it as "
                "`None`"
            )

    def _check_cores_of_host(self) -> None:
        cores = self.tpu_config.num_cores_per_replica
        if not cores or self.replicas_span_hosts:
            return
        of_host = cores * self.topology.num_replicas // self.topology.num_hosts
        if cores > of_host:
            raise ValueError(
                "Except the PER_HOST_V2 mode, the num of cores required by model parallelism "
                "specified by TPUConfig.num_cores_per_replica should be less than or equal to the "
                f"num_cores_per_host. num_cores_per_replica: {cores}, num_cores_per_host: {of_host}"
            )

    def _check_several_hosts(self) -> None:
        """Raises ValueError; modes that allow several hosts override this."""
        alone = " with num_replicas=1" if self.mode == ModeKeys.PREDICT else ""
        raise ValueError(
            f"TPUEstimator.{_CALLS[self.mode]} is only supported under three conditions: 1. "
            f"num_hosts=1; 2. BROADCAST mode; 3. PER_HOST_V2 mode{alone}. mode: "
            f"{self.tpu_config.per_host_input_for_training}; num_hosts: {self.topology.num_hosts}; "
            f"num_replicas: {self.topology.num_replicas}"
        )

    def check_called(self, called: CalledInput) -> None:
        """Also warns of queues, and of batches of another size than `params['batch_size']`."""
        warn_of_queues(called)
        if self.mode == ModeKeys.PREDICT:
            check_is_dataset(
                called,
                "For mode PREDICT, `input_fn` must return `Dataset` instead of `features` and "
                "`labels`.",
            )
            return
        sizes = splitting.sizes(called.element_spec, self.batch_axis)
        if self.batch_size is None or not sizes or sizes & {self.input_batch_size, None}:
            return
        logging.warning(
            "input_fn was told params['batch_size'] = %d, but gives batches of %s. Batch by "
            "params['batch_size']: train_batch_size and the others count examples of all replicas.",
            self.input_batch_size,
            sorted(sizes),
        )

    def deal(self, datasets: Sequence[Dataset]) -> Sequence[Dataset]:
        """See `InputMode.deal`; in PREDICT the elements are `padding.Padded`."""
        return [self._of_host(host, datasets) for host in self.topology.hosts]

    def _of_host(self, host: int, datasets: Sequence[Dataset]) -> Dataset:
        calls = zip(datasets, self.invocations(), strict=True)
        own = [dataset for dataset, call in calls if call.host == host]
        dataset = _in_turn(own or datasets[:1])  # all hosts share a broadcast's dataset
        if self.mode == ModeKeys.PREDICT and self.input_batch_size is not None:
            dataset = padding.pad(dataset, self.input_batch_size)
        if self.tpu_config.experimental_allow_per_host_v2_parallel_get_next:
            options = tf.data.Options()
            options.deterministic = False
            dataset = dataset.with_options(options)
        return self._per_replica(host, dataset)

    @abc.abstractmethod
    def _per_replica(self, host: int, dataset: Dataset) -> Dataset:
        """The elements of a host's replicas, in turn, from the host's `dataset`."""


def _in_turn(datasets: Sequence[Dataset]) -> Dataset:
    if len(datasets) == 1:
        return datasets[0]
    turns = Dataset.range(len(datasets)).repeat()
    return Dataset.choose_from_datasets(list(datasets), turns, stop_on_empty_dataset=True)
